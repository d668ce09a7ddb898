// Command changes writes the annotation that Artifact Hub shows as a release's changes into Chart.yaml: the first
// sentence of every entry in CHANGELOG.md's newest section. With -check it only says whether that is up to date.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/google/renameio/v2"
)

const annotation = "  artifacthub.io/changes: |\n"

// change is an entry of the annotation, as Artifact Hub reads it.
type change struct {
	Kind        string `yaml:"kind"`
	Description string `yaml:"description"`
}

// kinds are Artifact Hub's names for Keep a Changelog's headings.
var kinds = map[string]string{
	"Added": "added", "Changed": "changed", "Deprecated": "deprecated",
	"Removed": "removed", "Fixed": "fixed", "Security": "security",
}

func main() {
	changelog := flag.String("changelog", "CHANGELOG.md", "file to read")
	chart := flag.String("chart", "charts/kubevirt/Chart.yaml", "file to write")
	check := flag.Bool("check", false, "write nothing; exit with 1 unless the annotation is up to date")
	flag.Parse()
	if err := run(*changelog, *chart, *check); err != nil {
		fmt.Fprintln(os.Stderr, "changes:", err)
		os.Exit(1)
	}
}

func run(changelog, chart string, check bool) error {
	log, err := os.ReadFile(changelog)
	if err != nil {
		return err
	}
	changes, err := newest(string(log))
	if err != nil {
		return fmt.Errorf("%s: %w", changelog, err)
	}
	before, err := os.ReadFile(chart)
	if err != nil {
		return err
	}
	after, err := annotate(string(before), changes)
	if err != nil {
		return fmt.Errorf("%s: %w", chart, err)
	}
	switch {
	case after == string(before):
		return nil
	case check:
		return fmt.Errorf("%s: artifacthub.io/changes is not what %s says; expected:\n%s", chart, changelog, block(changes))
	}
	return renameio.WriteFile(chart, []byte(after), 0o644)
}

var (
	bold     = regexp.MustCompile(`^\*\*(.+?)\*\*`)
	sentence = regexp.MustCompile(`^.+?[.!?](?:\s|$)`)
	link     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// newest returns the changes of the first section that the changelog has.
func newest(changelog string) ([]change, error) {
	var changes []change
	var kind string
	inSection, inEntry := false, false
	for i, line := range strings.Split(changelog, "\n") {
		switch {
		case strings.HasPrefix(line, "## "):
			if inSection {
				return finished(changes)
			}
			inSection = true
		case strings.HasPrefix(line, "### "):
			heading := strings.TrimPrefix(line, "### ")
			if kind = kinds[heading]; kind == "" {
				return nil, fmt.Errorf("line %d: %q is not a heading of Keep a Changelog; expected Added, Changed, Deprecated, Removed, Fixed or Security", i+1, heading)
			}
			inEntry = false
		case strings.HasPrefix(line, "- "):
			if kind == "" {
				return nil, fmt.Errorf("line %d: an entry that stands under no ### heading; put it under one", i+1)
			}
			changes = append(changes, change{kind, line[2:]})
			inEntry = true
		case inEntry && strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "  - "):
			last := &changes[len(changes)-1]
			last.Description += " " + strings.TrimSpace(line)
		default:
			inEntry = false // a list below the entry, or its end
		}
	}
	return finished(changes)
}

func finished(changes []change) ([]change, error) {
	if len(changes) == 0 {
		return nil, errors.New("the newest section holds no entry; expected \"- …\" under a ### heading")
	}
	for i, c := range changes {
		text := c.Description
		if match := bold.FindStringSubmatch(text); match != nil {
			text = match[1]
		} else if match := sentence.FindString(text); match != "" {
			text = match
		}
		changes[i].Description = strings.TrimSpace(strings.NewReplacer("`", "", "**", "").Replace(link.ReplaceAllString(text, "$1")))
	}
	return changes, nil
}

// annotate replaces the annotation's block and nothing else.
func annotate(chart string, changes []change) (string, error) {
	before, rest, found := strings.Cut(chart, annotation)
	if !found || strings.Contains(rest, annotation) {
		return "", fmt.Errorf("expected the line %q once, under annotations; add it, and run make docs", strings.TrimSuffix(annotation, "\n"))
	}
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		if line != "" && !strings.HasPrefix(line, "   ") {
			break
		}
		rest = after
	}
	return before + annotation + block(changes) + rest, nil
}

// block is the annotation's text, indented as it stands in Chart.yaml.
func block(changes []change) string {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	_ = encoder.Encode(changes) // strings, into memory
	return "    " + strings.ReplaceAll(strings.TrimSuffix(text.String(), "\n"), "\n", "\n    ") + "\n"
}

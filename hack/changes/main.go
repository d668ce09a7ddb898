// Command changes takes what a release changes from CHANGELOG.md. It writes the first sentence of every entry of the newest
// section into Chart.yaml, for Artifact Hub, and those that break something into NOTES.txt; with -check it only says
// whether both are up to date. With -notes it prints the notes of one release.
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
	helmNotes := flag.String("helm-notes", "charts/kubevirt/templates/NOTES.txt", "file to write")
	check := flag.Bool("check", false, "write nothing; exit with 1 unless both files are up to date")
	version := flag.String("notes", "", "print the notes of this version instead")
	unreleased := flag.Bool("unreleased", false, "with -notes: take the section Unreleased where the version has none yet")
	flag.Parse()
	var err error
	if *version != "" {
		err = printNotes(os.Stdout, *changelog, *version, *unreleased)
	} else {
		err = run(*changelog, *chart, *helmNotes, *check)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "changes:", err)
		os.Exit(1)
	}
}

func run(changelog, chart, helmNotes string, check bool) error {
	log, err := os.ReadFile(changelog)
	if err != nil {
		return err
	}
	changes, err := newest(string(log))
	if err != nil {
		return fmt.Errorf("%s: %w", changelog, err)
	}
	for _, file := range []struct {
		path, what string
		edit       func(text string, changes []change) (string, error)
		block      string
	}{
		{chart, "artifacthub.io/changes", annotate, block(changes)},
		{helmNotes, "what breaks", warn, warning(changes)},
	} {
		before, err := os.ReadFile(file.path)
		if err != nil {
			return err
		}
		after, err := file.edit(string(before), changes)
		if err != nil {
			return fmt.Errorf("%s: %w", file.path, err)
		}
		switch {
		case after == string(before):
		case check:
			return fmt.Errorf("%s: %s is not what %s says; expected:\n%s", file.path, file.what, changelog, file.block)
		default:
			if err := renameio.WriteFile(file.path, []byte(after), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
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

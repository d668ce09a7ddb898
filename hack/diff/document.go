// Rendered documents, and how two versions of one are compared: as a tree, by their comments, by their lines.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/gonvenience/ytbx"
	"github.com/homeport/dyff/pkg/dyff"
	"github.com/pmezard/go-difflib/difflib"
	"gopkg.in/yaml.v3" // what dyff takes
	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
)

// document is one YAML document, its tree relieved of the comments.
type document struct {
	text     string
	tree     *yaml.Node
	comments map[string][]string // by path
}

// parse returns the documents of the manifests by what they are called.
func parse(manifests []string) (map[string]document, error) {
	documents := map[string]document{}
	for _, manifest := range manifests {
		reader := k8syaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
		for {
			text, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			if len(bytes.TrimSpace(text)) == 0 {
				continue
			}
			d := document{text: string(text), tree: &yaml.Node{}, comments: map[string][]string{}}
			if err := yaml.Unmarshal(text, d.tree); err != nil {
				return nil, fmt.Errorf("what the chart renders is not YAML: %w\n%s", err, text)
			}
			name := nameOf(text)
			if d.tree.IsZero() { // nothing but comments
				d.comments["(no document)"] = strings.Split(strings.TrimSpace(d.text), "\n")
			}
			d.takeComments("", d.tree)
			for unique, i := name, 2; ; i++ {
				if _, taken := documents[unique]; !taken {
					documents[unique] = d
					break
				}
				unique = fmt.Sprintf("%s (%d)", name, i)
			}
		}
	}
	return documents, nil
}

// nameOf is what identifies a document in a cluster.
func nameOf(text []byte) string {
	var d struct {
		Kind     string
		Metadata struct{ Namespace, Name string }
	}
	if yaml.Unmarshal(text, &d) != nil || d.Kind == "" {
		return "a document without a kind"
	}
	return d.Kind + " " + strings.TrimPrefix(d.Metadata.Namespace+"/"+d.Metadata.Name, "/")
}

// takeComments moves the comments of a tree out of it. An entry of a list goes by no index, so that another entry
// before it does not move its comment.
func (d *document) takeComments(path string, node *yaml.Node) {
	for _, comment := range []*string{&node.HeadComment, &node.LineComment, &node.FootComment} {
		if *comment != "" {
			d.comments[path] = append(d.comments[path], *comment)
			*comment = ""
		}
	}
	for i, child := range node.Content {
		below := path
		switch node.Kind {
		case yaml.MappingNode:
			below = strings.TrimPrefix(path+"."+node.Content[i-i%2].Value, ".")
		case yaml.SequenceNode:
			below += "[]"
		}
		d.takeComments(below, child)
	}
}

// structural compares the trees: what a cluster would notice.
func structural(before, after document) (string, error) {
	if before.tree.IsZero() || after.tree.IsZero() {
		if before.tree.IsZero() && after.tree.IsZero() {
			return "", nil
		}
		return lines(before.text, after.text), nil
	}
	report, err := dyff.CompareInputFiles(
		ytbx.InputFile{Documents: []*yaml.Node{before.tree}},
		ytbx.InputFile{Documents: []*yaml.Node{after.tree}},
	)
	if err != nil {
		return "", err
	}
	var body strings.Builder
	for _, diff := range report.Diffs {
		body.WriteString(hunk(diff.Path.ToDotStyle()))
		for _, detail := range diff.Details {
			if detail.Kind == dyff.ORDERCHANGE {
				body.WriteString("the order changed\n")
			}
			for _, part := range []struct {
				sign string
				node *yaml.Node
			}{{"-", detail.From}, {"+", detail.To}} {
				if part.node == nil {
					continue
				}
				text, err := yaml.Marshal(part.node)
				if err != nil {
					return "", err
				}
				body.WriteString(signed(part.sign, string(text)))
			}
		}
	}
	return body.String(), nil
}

// commentary compares the comments as text, path by path.
func commentary(before, after document) string {
	paths := maps.Clone(before.comments)
	maps.Copy(paths, after.comments)
	var body strings.Builder
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		old, new := strings.Join(before.comments[path], "\n"), strings.Join(after.comments[path], "\n")
		if old != new {
			body.WriteString(hunk(path) + signed("-", old) + signed("+", new))
		}
	}
	return body.String()
}

// lines compares texts line by line, without line numbers: so that renderings which differ elsewhere agree here.
func lines(before, after string) string {
	old, new := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	var body strings.Builder
	for _, code := range difflib.NewMatcher(old, new).GetOpCodes() {
		if code.Tag != 'e' {
			body.WriteString(hunk("lines") + signed("-", strings.Join(old[code.I1:code.I2], "")) + signed("+", strings.Join(new[code.J1:code.J2], "")))
		}
	}
	return body.String()
}

func hunk(path string) string {
	if path == "" {
		path = "(top)"
	}
	return "@@ " + path + " @@\n"
}

// signed puts a sign before every line of a text.
func signed(sign, text string) string {
	if text == "" {
		return ""
	}
	text = strings.TrimSuffix(text, "\n")
	return sign + " " + strings.ReplaceAll(text, "\n", "\n"+sign+" ") + "\n"
}

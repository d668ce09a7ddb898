package main

import (
	"path"
	"slices"
	"strings"

	"cozy-kubevirt/hack/internal/render"
)

// mutant is the chart with one change.
type mutant struct {
	File string `json:"file"`
	// Line is the first line that the change touches.
	Line int    `json:"line"`
	Kind string `json:"kind"`
	// Change is the change as -/+ lines.
	Change string `json:"change"`
	data   string
}

// mutants lists every mutant of a chart, by file and line. Two mutations with the same result are one.
func mutants(chart *render.Chart) ([]mutant, error) {
	var all []mutant
	for _, name := range chart.Names() {
		source := string(chart.Data(name))
		var made []mutation
		switch {
		case strings.HasPrefix(name, "templates/") && slices.Contains([]string{".yaml", ".yml", ".tpl", ".txt"}, path.Ext(name)):
			made = templateMutations(name, source)
		case name == "values.yaml":
			made = valuesMutations(source)
		case name == "values.schema.json":
			var err error
			if made, err = schemaMutations(source); err != nil {
				return nil, err
			}
		}
		seen := map[string]bool{source: true}
		var of []mutant
		for _, m := range made {
			data := source[:m.start] + m.text + source[m.end:]
			if !seen[data] {
				seen[data] = true
				at, change := difference(source, data)
				of = append(of, mutant{File: name, Line: at, Kind: m.kind, Change: change, data: data})
			}
		}
		slices.SortStableFunc(of, func(a, b mutant) int { return a.Line - b.Line })
		all = append(all, of...)
	}
	return all, nil
}

// valuesMutations are those of lines of YAML, without the comments.
func valuesMutations(source string) []mutation {
	var kept []mutation
	for _, m := range lineMutations(source, nil, true) {
		if !strings.HasPrefix(strings.TrimSpace(source[m.start:m.end]), "#") {
			kept = append(kept, m)
		}
	}
	return kept
}

// difference returns the first line that differs and the lines that do, before (-) and after (+).
func difference(before, after string) (int, string) {
	a, b := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	for len(a) > from && len(b) > from && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var out strings.Builder
	for _, text := range a[from:] {
		out.WriteString("-" + strings.TrimSuffix(text, "\n") + "\n")
	}
	for _, text := range b[from:] {
		out.WriteString("+" + strings.TrimSuffix(text, "\n") + "\n")
	}
	return from + 1, out.String()
}

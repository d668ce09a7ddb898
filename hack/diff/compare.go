// What differs between two charts, for every values set and Kubernetes version.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"helm.sh/helm/v3/pkg/chartutil"

	"cozy-kubevirt/hack/internal/render"
	facts "cozy-kubevirt/internal/chart"
	"cozy-kubevirt/internal/git"
)

// kind is a kind of difference, and the heading that it is reported under.
type kind string

const (
	inDocuments kind = "Changed in the documents"
	inComments  kind = "Changed in the comments"
	inNotes     kind = "Changed in the notes"
	inText      kind = "Changed only in how it is written (quotes, order of keys, blanks)"
	onOneSide   kind = "Rendered by one side only"
)

// finding is one difference of one document in one rendering.
type finding struct {
	kind           kind
	document, body string
	rendering      rendering
}

// rendering names what a chart is rendered with.
type rendering struct{ set, kubeVersion string }

// set is a ci values set.
type set struct {
	name string // for the reader
	file string
}

// result is everything that there is to report.
type result struct {
	base         string
	sets         []string
	remarks      []string
	findings     []finding
	incomparable []error // renderings that fail on both sides
}

// compare renders the chart of the base and the one in the working tree, and compares what comes out.
func compare(ctx context.Context, base, tree side) (*result, error) {
	r := &result{base: base.name}
	sets, err := r.union(base, tree)
	if err != nil {
		return nil, err
	}
	before, after := open(base), open(tree)
	for _, set := range sets {
		r.sets = append(r.sets, set.name)
		for _, version := range facts.KubeVersions {
			if ctx.Err() != nil {
				return nil, git.ErrInterrupted
			}
			r.compareRendering(rendering{set.name, version}, before(set.file, version), after(set.file, version))
		}
	}
	return r, nil
}

// union returns the values sets of both sides, and remarks on those that the sides don't share. Both charts are
// rendered with every set: what is compared is the charts, not the sets.
func (r *result) union(base, tree side) ([]set, error) {
	before, err := facts.Sets(base.dir)
	if err != nil {
		return nil, err
	}
	after, err := facts.Sets(tree.dir)
	if err != nil {
		return nil, err
	}
	if len(before)+len(after) == 0 {
		return nil, fmt.Errorf("neither %s nor %s holds a ci/*-values.yaml in the chart, so nothing would be compared", base.name, tree.name)
	}
	names := maps.Clone(before)
	maps.Copy(names, after)
	var sets []set
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, isOld := before[name]
		new, isNew := after[name]
		switch {
		case !isOld:
			r.remarks = append(r.remarks, fmt.Sprintf("Only %s has the values set %s; both charts are rendered with it.", tree.name, name))
			sets = append(sets, set{name, new})
		case !isNew:
			r.remarks = append(r.remarks, fmt.Sprintf("Only %s has the values set %s; both charts are rendered with it.", base.name, name))
			sets = append(sets, set{name, old})
		default:
			equal, err := equalFiles(old, new)
			if err != nil {
				return nil, err
			}
			sets = append(sets, set{name, new})
			if !equal {
				r.remarks = append(r.remarks, fmt.Sprintf("The values set %s differs; both charts are rendered with either version of it.", name))
				sets = append(sets, set{name + " of the base", old})
			}
		}
	}
	return sets, nil
}

func equalFiles(a, b string) (bool, error) {
	textA, err := os.ReadFile(a)
	if err != nil {
		return false, err
	}
	textB, err := os.ReadFile(b)
	return string(textA) == string(textB), err
}

// rendered is what a side makes of a rendering: documents by name, or the reason why there are none.
type rendered struct {
	side      string
	documents map[string]document
	notes     string
	err       error
}

// open returns how a side's chart is rendered. A chart that cannot be read fails every rendering, as a template
// that does not parse would.
func open(s side) func(valuesFile, kubeVersion string) rendered {
	chart, openErr := render.Open(s.dir)
	return func(valuesFile, kubeVersion string) rendered {
		if openErr != nil {
			return rendered{side: s.name, err: openErr}
		}
		values, err := chartutil.ReadValuesFile(valuesFile)
		if err != nil {
			return rendered{side: s.name, err: err}
		}
		files, err := chart.Render(values, render.Target{KubeVersion: kubeVersion})
		if err != nil {
			return rendered{side: s.name, err: err}
		}
		result := rendered{side: s.name}
		var manifests []string
		for _, file := range slices.Sorted(maps.Keys(files)) {
			if filepath.Base(file) == "NOTES.txt" {
				result.notes += files[file]
				continue
			}
			manifests = append(manifests, files[file])
		}
		result.documents, result.err = parse(manifests)
		return result
	}
}

// compareRendering adds the differences of one rendering.
func (r *result) compareRendering(in rendering, before, after rendered) {
	add := func(kind kind, document, body string) {
		if body != "" {
			r.findings = append(r.findings, finding{kind, document, body, in})
		}
	}
	switch {
	case before.err != nil && after.err != nil:
		r.incomparable = append(r.incomparable, fmt.Errorf("values set %s, Kubernetes %s: neither side renders, so nothing was compared:\n%s: %w\n%s: %w",
			in.set, in.kubeVersion, before.side, before.err, after.side, after.err))
		return
	case before.err != nil:
		add(onOneSide, after.side, before.side+" fails: "+before.err.Error())
		return
	case after.err != nil:
		add(onOneSide, before.side, after.side+" fails: "+after.err.Error())
		return
	}
	add(inNotes, "NOTES.txt", lines(before.notes, after.notes))
	names := maps.Clone(before.documents)
	maps.Copy(names, after.documents)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, isOld := before.documents[name]
		new, isNew := after.documents[name]
		switch {
		case !isOld:
			add(inDocuments, name, "added, as a whole\n"+signed("+", new.text))
		case !isNew:
			add(inDocuments, name, "removed, as a whole\n"+signed("-", old.text))
		case old.text == new.text:
		default:
			structure, err := structural(old, new)
			if err != nil {
				r.incomparable = append(r.incomparable, fmt.Errorf("values set %s, Kubernetes %s, %s: %w", in.set, in.kubeVersion, name, err))
				continue
			}
			comments := commentary(old, new)
			add(inDocuments, name, structure)
			add(inComments, name, comments)
			if structure == "" && comments == "" {
				add(inText, name, lines(old.text, new.text))
			}
		}
	}
}

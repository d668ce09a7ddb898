package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"text/template/parse"

	"helm.sh/helm/v3/pkg/chartutil"

	"cozy-kubevirt/hack/internal/inputs"
	"cozy-kubevirt/hack/internal/render"
	facts "cozy-kubevirt/internal/chart"
)

// probe is an input that may tell a mutant from the chart, with what the chart makes of it.
type probe struct {
	name   string
	values map[string]any
	target render.Target
	want   outcome
	// merged are the values over the chart's defaults, which is what a schema sees.
	merged map[string]any
	// sight is what the chart's schema says of them, empty if it accepts them.
	sight string
	reach reach
}

// outcome is what a rendering gives: files, or a refusal in words.
type outcome struct {
	files   map[string]string
	refusal string
}

func outcomeOf(files map[string]string, err error) outcome {
	if err != nil {
		return outcome{refusal: words(err)}
	}
	return outcome{files: files}
}

// words is a message without what is no part of its meaning: the lines of the templates that it comes
// from, and the order in which a schema's faults are listed, which is another in every run.
func words(err error) string {
	if err == nil {
		return ""
	}
	lines := strings.Split(render.WithoutPositions(err.Error()), "\n")
	slices.Sort(lines)
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// referee decides whether a mutant that no case kills is a gap in the suites or no change at all.
type referee struct {
	chart *render.Chart
	// ofCases are the inputs of the suites; named are the values sets of ci/ for every target.
	ofCases, named []probe
	// made are generated from the schema, which accepts them; outside are those that it refuses, which are
	// only good for judging a schema.
	made, outside []probe
}

// Of the generated inputs so many are rendered for a mutant: valid ones, and those that the schema accepts
// with something suspicious in one place.
const generatedValid, generatedOdd = 100, 100

// seed makes the generated inputs the same in every process and every run.
const seed = 1

func newReferee(dir string, chart *render.Chart, cases []*unitCase) (*referee, error) {
	r := &referee{chart: chart}
	valueFiles := map[string]bool{}
	apis := [][]string{nil}
	for _, c := range cases {
		p, err := c.probe()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name(), err)
		}
		r.ofCases = append(r.ofCases, p)
		for _, path := range slices.Concat(c.suite.Values, c.job.Values) {
			valueFiles[c.below(path)] = true
		}
		if !slices.ContainsFunc(apis, func(known []string) bool { return slices.Equal(known, p.target.APIVersions) }) {
			apis = append(apis, p.target.APIVersions)
		}
	}
	var targets []render.Target
	for _, version := range facts.KubeVersions {
		for _, served := range apis {
			targets = append(targets, render.Target{KubeVersion: version, APIVersions: served})
		}
	}
	named, err := facts.Sets(dir)
	if err != nil {
		return nil, err
	}
	sets := slices.Sorted(maps.Values(named))
	if len(sets) == 0 {
		sets = slices.Sorted(maps.Keys(valueFiles))
	}
	for _, set := range append(sets, "") {
		name, values := "the defaults", map[string]any{}
		if set != "" {
			if values, err = chartutil.ReadValuesFile(set); err != nil {
				return nil, fmt.Errorf("%s: %w", set, err)
			}
			name = filepath.Base(set)
		}
		for _, target := range targets {
			at := strings.Join(append([]string{"Kubernetes " + target.KubeVersion}, target.APIVersions...), ", ")
			r.named = append(r.named, probe{name: name + " on " + at, values: values, target: target})
		}
	}
	marked := marked(chart)
	if err := r.generate(targets, marked); err != nil {
		return nil, err
	}
	for _, probes := range [][]probe{r.ofCases, r.named} {
		for i := range probes {
			if err := probes[i].see(chart, marked); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// see notes what the chart makes of a probe, and which lists of the marked chart it runs.
func (p *probe) see(chart, marked *render.Chart) (err error) {
	if p.merged, err = chart.Coalesce(p.values); err != nil {
		return err
	}
	if p.sight = words(chart.Validate(p.merged)); p.sight != "" {
		p.want = outcome{refusal: p.sight}
		p.reach = reach{}
	} else {
		p.want = outcomeOf(chart.RenderAccepted(p.values, p.target))
		p.reach = p.reachOf(marked)
	}
	return nil
}

func (r *referee) generate(targets []render.Target, marked *render.Chart) error {
	if r.chart.Schema() == nil {
		return nil
	}
	generator := inputs.New(r.chart.Schema(), seed, func(text string) bool {
		values, err := chartutil.ReadValues([]byte(text))
		if err == nil {
			_, err = r.chart.Render(values, targets[0])
		}
		return err == nil
	})
	round, err := generator.Round()
	if err != nil {
		return err
	}
	for i := range generatedValid {
		p := probe{name: fmt.Sprintf("the generated values %d", i), target: targets[i%len(targets)]}
		text := generator.Valid()
		if p.values, err = chartutil.ReadValues([]byte(text)); err != nil {
			return err
		}
		if err := p.see(r.chart, marked); err != nil {
			return err
		}
		p.name += " (" + strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ") + ")"
		r.made = append(r.made, p)
	}
	for i, input := range round {
		values, err := chartutil.ReadValues([]byte(input.YAML))
		if err != nil {
			continue
		}
		name := strings.TrimSpace(fmt.Sprintf("%s being %s", input.Dotted(), input.Change))
		p := probe{name: name, values: values, target: targets[i%len(targets)]}
		if p.merged, err = r.chart.Coalesce(values); err != nil {
			return err
		}
		p.sight = words(r.chart.Validate(p.merged))
		if p.sight == "" && len(r.made) < generatedValid+generatedOdd {
			p.want = outcomeOf(r.chart.RenderAccepted(values, p.target))
			p.reach = p.reachOf(marked)
			r.made = append(r.made, p)
		} else {
			r.outside = append(r.outside, p)
		}
	}
	return nil
}

// difference says how a changed chart treats a probe otherwise than the chart, empty if it does not. Of a
// template and of a schema only what can differ is looked at: either leaves the other's judgement alone.
func (p probe) difference(file string, changed *render.Chart) string {
	var got outcome
	switch {
	case file == "values.schema.json":
		sight := words(changed.Validate(p.merged))
		switch {
		case sight == p.sight:
			return ""
		case sight == "":
			return "no longer refused: " + faults(p.sight)
		case p.sight == "":
			return "now refused: " + faults(sight)
		}
		return otherWords + faults(sight)
	case strings.HasPrefix(file, "templates/"):
		if p.sight != "" {
			return ""
		}
		got = outcomeOf(changed.RenderAccepted(p.values, p.target))
	default:
		if merged, err := changed.Coalesce(p.values); err == nil && reflect.DeepEqual(merged, p.merged) {
			return ""
		}
		got = outcomeOf(changed.Render(p.values, p.target))
	}
	if reflect.DeepEqual(p.want, got) {
		return ""
	}
	return p.want.difference(got)
}

// judge returns the reason why a mutant is equivalent, or what shows that it is not.
func (r *referee) judge(file string, data []byte) (reason, witness string, err error) {
	changed, err := r.chart.With(file, data)
	if err != nil {
		return "", "", err
	}
	looked := [][]probe{r.named, r.ofCases}
	switch {
	case file == "values.schema.json":
		looked = append(looked, r.made, r.outside)
	case strings.HasPrefix(file, "templates/"):
		looked = append(looked, r.made)
	}
	lists := changedLists(file, r.chart.Data(file), data)
	if !slices.ContainsFunc(r.ofCases, func(p probe) bool { return p.reach.runs(lists) }) {
		return "", unrun, nil
	}
	tried := 0
	for _, probes := range looked {
		for _, p := range probes {
			if !p.reach.runs(lists) {
				continue
			}
			tried++
			difference := p.difference(file, changed)
			if difference == "" {
				continue
			}
			witness = p.name + ": " + difference
			if !strings.HasPrefix(difference, otherWords) {
				return "", witness, nil
			}
		}
	}
	if witness != "" {
		return "", witness, nil
	}
	return fmt.Sprintf("the same bytes and the same refusals, in the same words, for the %d inputs that run it, of the values sets for every target, the suites and generated ones", tried), "", nil
}

// unrun is what shows a gap where there is no input to show it.
const unrun = "since no case runs it"

const otherWords = "refused in other words: "

func (o outcome) difference(other outcome) string {
	switch {
	case o.refusal == "" && other.refusal != "":
		return "now refused: " + faults(other.refusal)
	case o.refusal != "" && other.refusal == "":
		return "no longer refused: " + faults(o.refusal)
	case o.refusal != "":
		return otherWords + faults(other.refusal)
	}
	for _, name := range slices.Sorted(maps.Keys(o.files)) {
		if o.files[name] != other.files[name] {
			_, change := difference(o.files[name], other.files[name])
			return name + " is rendered otherwise:\n" + change
		}
	}
	return "rendered otherwise"
}

// faults are the lines of a schema's message that name a fault; of another message they are all of it.
func faults(refusal string) string {
	var kept []string
	for line := range strings.Lines(refusal) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "- at '") && !strings.HasSuffix(line, "validation failed") {
			kept = append(kept, line)
		}
	}
	if kept == nil {
		return refusal
	}
	return strings.Join(kept, "\n")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// topOfFile is the name of what a template holds outside of its defines.
const topOfFile = "file"

// parsed is a template by its defines.
func parsed(source string) (map[string]*parse.Tree, error) {
	set := map[string]*parse.Tree{}
	tree := parse.New(topOfFile)
	tree.Mode = parse.SkipFuncCheck
	_, err := tree.Parse(source, "", "", set)
	return set, err
}

// sameTree says whether two templates are parsed into the same thing.
func sameTree(before, after []byte) bool {
	a, errA := parsed(string(before))
	b, errB := parsed(string(after))
	return errA == nil && errB == nil && maps.EqualFunc(a, b, func(x, y *parse.Tree) bool { return x.Root.String() == y.Root.String() })
}

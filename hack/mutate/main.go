// Command mutate proves that the unit suites of a chart notice every change to it: it changes the chart's
// templates, values and schema at one place at a time, and runs the suites on each.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"cozy-kubevirt/hack/internal/render"
)

const help = `usage: mutate [-v] [-json] [-suites GLOB] [-workers N] CHART

Makes small changes to a Helm chart, one at a time and in memory, and runs the chart's helm-unittest suites
on each. A change that makes a case fail is killed; one that no case notices survives, and is a gap.

What is changed:
  templates/            lines and blocks go; scalars become another string, the next number, the other
                        boolean, null; items go and swap; conditions are negated; ranges are emptied; a with
                        loses its question or its body; default, quote, int64, fail and other functions go;
                        lines move two columns to the left
  values.yaml           lines, blocks, scalars and indents
  values.schema.json    constraints go or are off by one; types, patterns and required get wider; types,
                        enums and properties get narrower

What is not: Chart.yaml, crds/, subcharts, README, and what only describes a schema. A change stands alone:
two mistakes that hide each other are not found. Suites that a chart renders (helm unittest --chart-tests-path)
are not run.

A survivor is equivalent, and not counted, if nothing can notice it: it is the same template once parsed; or
the suites run it, and every values set of ci/ (without ci/: every values file of the suites) renders the same bytes under Kubernetes
1.34.2 and 1.35.0 with every set of API versions that a case names, and the inputs of the suites and those
generated from the schema are rendered or refused alike. -v lists all of them with the reason, and the list is
worth a look. There is no ignore list. A line of a template that no case runs is a gap.

Exit status: 0 if every change was noticed, 1 if one survived, 2 if the suites are missing or fail anyway.

`

func main() {
	// Helm logs a warning for every value that it overwrites a default with.
	log.SetOutput(io.Discard)
	if os.Getenv(workerVariable) != "" {
		if err := work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		return
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// report is what --json prints.
type report struct {
	Chart      string            `json:"chart"`
	Suites     int               `json:"suites"`
	Cases      int               `json:"cases"`
	Mutants    int               `json:"mutants"`
	Killed     int               `json:"killed"`
	Unparsable int               `json:"unparsable"`
	Kinds      map[string]*tally `json:"kinds"`
	Survivors  []judged          `json:"survivors"`
	Equivalent []judged          `json:"equivalent"`
	killed     []judged
}

// tally counts the mutants of a kind, without the equivalent ones.
type tally struct {
	Killed  int `json:"killed"`
	Mutants int `json:"mutants"`
}

// judged is a mutant with its verdict.
type judged struct {
	mutant
	verdict
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, help); flags.PrintDefaults() }
	verbose := flags.Bool("v", false, "list the equivalent changes with the reason, and the case that killed each other one")
	asJSON := flags.Bool("json", false, "print the report as JSON")
	suites := flags.String("suites", "tests/*_test.yaml", "where the suites are, below the chart")
	workers := flags.Int("workers", runtime.NumCPU(), "how many changes to try at a time")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() != 1 || *workers < 1 {
		flags.Usage()
		return 2
	}
	// Hundreds of renderings make more garbage than they keep: time is dearer here than memory.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	start := time.Now()
	done, err := mutate(flags.Arg(0), *suites, *workers, progress(stderr))
	if err != nil {
		fmt.Fprintln(stderr, "mutate:", err)
		return 2
	}
	if *asJSON {
		encoder := json.NewEncoder(stdout)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(done)
	} else {
		_, err = io.WriteString(stdout, done.text(*verbose, time.Since(start)))
	}
	if err != nil {
		fmt.Fprintln(stderr, "mutate:", err)
		return 2
	}
	if len(done.Survivors) > 0 {
		return 1
	}
	return 0
}

// mutate judges every mutant of the chart in dir.
func mutate(dir, suites string, workers int, progress func(done, of int)) (*report, error) {
	chart, err := render.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	cases, err := loadCases(dir, chart.Helm().Name(), suites)
	if err != nil {
		return nil, err
	}
	files := map[string]bool{}
	for _, c := range cases {
		files[c.file] = true
		if failure := c.run(chart); failure != nil {
			return nil, fmt.Errorf("a case fails on the chart as it is, alone at least, so it can notice nothing: %s\n%w", c.name(), failure)
		}
	}
	all, err := mutants(chart)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has nothing to change", dir)
	}
	verdicts := make([]verdict, len(all))
	count := 0
	if err := dispatch(dir, suites, workers, all, func(i int, v verdict) {
		verdicts[i] = v
		count++
		progress(count, len(all))
	}); err != nil {
		return nil, err
	}
	if err := referees(dir, chart, cases, workers, all, verdicts); err != nil {
		return nil, err
	}
	done := &report{Chart: filepath.ToSlash(dir), Suites: len(files), Cases: len(cases), Kinds: map[string]*tally{}, Survivors: []judged{}, Equivalent: []judged{}}
	for i, v := range verdicts {
		j := judged{all[i], v}
		if v.Equivalent != "" {
			done.Equivalent = append(done.Equivalent, j)
			continue
		}
		kind := done.Kinds[j.Kind]
		if kind == nil {
			kind = &tally{}
			done.Kinds[j.Kind] = kind
		}
		done.Mutants++
		kind.Mutants++
		if v.Killer == "" {
			done.Survivors = append(done.Survivors, j)
			continue
		}
		done.Killed++
		kind.Killed++
		if v.Unparsable {
			done.Unparsable++
		}
		done.killed = append(done.killed, j)
	}
	return done, nil
}

// referees judges the mutants that are neither killed nor known to be equivalent or not.
func referees(dir string, chart *render.Chart, cases []*unitCase, workers int, all []mutant, verdicts []verdict) error {
	r, err := newReferee(dir, chart, cases)
	if err != nil {
		return err
	}
	failures := make([]error, len(all))
	var group sync.WaitGroup
	slots := make(chan struct{}, workers)
	for i, v := range verdicts {
		if v != (verdict{}) {
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			verdicts[i].Equivalent, verdicts[i].Witness, failures[i] = r.judge(all[i].File, []byte(all[i].data))
			<-slots
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

func (r *report) text(verbose bool, took time.Duration) string {
	var b strings.Builder
	print := func(j judged, label, why string) {
		fmt.Fprintf(&b, "%s/%s:%d: %s %s\n%s", r.Chart, j.File, j.Line, label, j.Kind, j.Change)
		for line := range strings.Lines(why) {
			fmt.Fprintf(&b, "  %s\n", strings.TrimSuffix(line, "\n"))
		}
		b.WriteString("\n")
	}
	if verbose {
		for _, j := range r.killed {
			fmt.Fprintf(&b, "%s/%s:%d: killed %s\n%s  by %s\n\n", r.Chart, j.File, j.Line, j.Kind, j.Change, j.Killer)
		}
		for _, j := range r.Equivalent {
			print(j, "equivalent", j.Equivalent)
		}
	}
	for _, j := range r.Survivors {
		print(j, "survived", "no case notices "+j.Witness)
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		if t := r.Kinds[kind]; verbose || len(r.Survivors) > 0 {
			fmt.Fprintf(&b, "%-28s %4d of %d\n", kind, t.Killed, t.Mutants)
		}
	}
	fmt.Fprintf(&b, "mutate: killed %d of %d by %d cases in %d suite files (%d of them Helm cannot even parse); %d more are equivalent; %.1f s\n",
		r.Killed, r.Mutants, r.Cases, r.Suites, r.Unparsable, len(r.Equivalent), took.Seconds())
	return b.String()
}

// progress writes to a terminal and to nothing else.
func progress(to io.Writer) func(int, int) {
	file, ok := to.(*os.File)
	if !ok {
		return func(int, int) {}
	}
	if info, err := file.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(int, int) {}
	}
	return func(done, of int) {
		fmt.Fprintf(file, "\rmutate: %d of %d", done, of)
		if done == of {
			fmt.Fprint(file, "\r\x1b[K")
		}
	}
}

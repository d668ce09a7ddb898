// Command fuzzvalues proves that no values file makes the chart render what it does not mean: it makes
// thousands, each valid but for one suspicious place, and demands of each that Helm refuses it and names
// the place, or that the documents hold exactly what the values say.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"slices"
	"sync"

	"helm.sh/helm/v3/pkg/chartutil"

	"cozy-kubevirt/hack/internal/inputs"
	"cozy-kubevirt/hack/internal/render"
	"cozy-kubevirt/internal/chart"
)

const help = `usage: fuzzvalues [-seed N] [-n N] CHART

Makes values files from CHART/values.schema.json: valid ones, each changed at one place into something
suspicious (another type, case or range, an unknown key, null, a duplicate, what YAML 1.1 reads as another
type, template syntax, line ends, colons, quotes, unicode, very long strings). For each of them, either

  refused   Helm refuses it, and the message names the path; or Helm cannot read the file as YAML
  rendered  the documents decode strictly, hold every value unchanged at its place, and have no key, no
            document and no comment that the chart did not mean

Anything else is a failure: it is printed with the values file, to replay with helm template -f.
What fuzzvalues does not do: it knows where the values of this chart go (expect.go), so it works on no
other; it does not judge whether KubeVirt accepts what is rendered (make contract does).

`

// targets are what the inputs are rendered for, in turn.
var targets = []render.Target{
	{KubeVersion: chart.KubeVersions[0]},
	{KubeVersion: chart.KubeVersions[1], APIVersions: []string{"gateway.networking.k8s.io/v1/TLSRoute"}},
	{KubeVersion: chart.KubeVersions[0], APIVersions: []string{"gateway.networking.k8s.io/v1alpha2/TLSRoute", "gateway.networking.k8s.io/v1alpha3/TLSRoute"}},
	{KubeVersion: chart.KubeVersions[1], APIVersions: []string{"gateway.networking.k8s.io/v1alpha2/TLSRoute"}},
}

func main() {
	// Helm logs a warning for every value that it overwrites a default with, thousands of lines.
	log.SetOutput(io.Discard)
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("fuzzvalues", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, help); flags.PrintDefaults() }
	seed := flags.Uint64("seed", 1, "what the inputs are made from; the same `N` makes the same inputs")
	n := flags.Int("n", 0, "try `N` inputs; 0 tries every change at every place once")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() != 1 || *n < 0 {
		flags.Usage()
		return 2
	}
	chart, err := render.Open(flags.Arg(0))
	if err != nil {
		fmt.Fprintln(stderr, "fuzzvalues:", err)
		return 2
	}
	if chart.Schema() == nil {
		fmt.Fprintf(stderr, "fuzzvalues: %s has no values.schema.json, which the values are made from\n", flags.Arg(0))
		return 2
	}
	all, err := makeInputs(chart, *seed, *n)
	if err != nil {
		fmt.Fprintln(stderr, "fuzzvalues:", err)
		return 2
	}
	totals, failures, err := fuzz(chart, flags.Arg(0), all)
	if err != nil {
		fmt.Fprintln(stderr, "fuzzvalues:", err)
		return 2
	}
	return conclude(stdout, *seed, totals, failures)
}

// conclude prints what came of a run, and returns its exit status.
func conclude(stdout io.Writer, seed uint64, totals map[class]int, failures []string) int {
	for _, failure := range failures[:min(len(failures), 20)] {
		fmt.Fprintln(stdout, failure)
	}
	tried := totals[refused] + totals[unreadable] + totals[rendered] + len(failures)
	fmt.Fprintf(stdout, "fuzz-values: tried %d, refused %d (%d of them no readable YAML), rendered %d, neither %d (seed %d)\n",
		tried, totals[refused]+totals[unreadable], totals[unreadable], totals[rendered], len(failures), seed)
	if len(failures) > 0 {
		return 1
	}
	return 0
}

// fuzz tries inputs, and counts them by class; inputs of no class come back as text.
func fuzz(chart *render.Chart, dir string, all []inputs.Input) (totals map[class]int, failures []string, err error) {
	var known []expectation
	for _, target := range targets {
		expected, err := expect(chart, target)
		if err != nil {
			return nil, nil, err
		}
		known = append(known, expected)
	}
	n := len(all)
	classes, faults := make([]class, n), make([]error, n)
	var workers sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				turn := i % len(targets)
				classes[i], faults[i] = judge(chart, known[turn], targets[turn], all[i])
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()

	totals = map[class]int{}
	for i, fault := range faults {
		if fault == nil {
			totals[classes[i]]++
			continue
		}
		target := targets[i%len(targets)]
		api := ""
		for _, version := range target.APIVersions {
			api += " --api-versions " + version
		}
		failures = append(failures, fmt.Sprintf("--- input %d: %s: %s\n%v\nreplay: helm template release %s --namespace %s --kube-version %s%s -f - <<'END'\n%s\nEND\n",
			i, cmp.Or(all[i].Dotted(), "the top"), all[i].Change, fault, dir, render.Namespace, target.KubeVersion, api, all[i].YAML))
	}
	slices.Sort(failures)
	return totals, failures, nil
}

// makeInputs makes n inputs, or one for every change at every place if n is 0.
func makeInputs(chart *render.Chart, seed uint64, n int) ([]inputs.Input, error) {
	generator := inputs.New(chart.Schema(), seed, func(text string) bool {
		values, err := chartutil.ReadValues([]byte(text))
		if err == nil {
			_, err = chart.Render(values, targets[0])
		}
		return err == nil
	})
	var all []inputs.Input
	for len(all) == 0 || len(all) < n {
		round, err := generator.Round()
		if err != nil {
			return nil, err
		}
		all = append(all, round...)
	}
	if n == 0 {
		n = len(all)
	}
	return all[:n], nil
}

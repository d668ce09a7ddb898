// Command mutatego proves that the tests of the Go packages that decide notice every fault: it compiles small faults
// into a package, all at once and each behind a switch, and runs the tests that meet it for each.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const help = `usage: mutatego [PACKAGE…]

Without a package, the files that are held at no survivor (packages.go). Nothing is written into the tree.

What is changed: conditions hold always or never; conditions of && and || go; < and <= change places, == and !=
are turned round; a ! goes; calls, assignments, continue and break go; cases do nothing; results are the zero value, or true.

A fault is killed if a test fails, or doesn't end where it did before (those are counted apart). A skipped test has noticed
nothing. What can't be noticed is listed in equivalent.yaml with the reason; an entry that matches no fault, or one
that a test notices, is an error.

Exit status: 0 if every fault was noticed, 1 if one survived, 2 if the tests fail anyway or the list is wrong.
`

//go:embed equivalent.yaml
var equivalentList []byte

// equivalent is a mutant that changes nothing that can be seen.
type equivalent struct {
	mutant
	Reason string `json:"reason"`
}

func main() { os.Exit(run(os.Args[1:], ".", targets, equivalentList, os.Stdout, os.Stderr)) }

func run(args []string, root string, known []target, list []byte, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("mutatego", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, help) }
	if err := flags.Parse(args); err != nil {
		return 2
	}
	start := time.Now()
	total, err := judge(flags.Args(), root, known, list, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "mutatego:", err)
		return 2
	}
	fmt.Fprintf(stdout, "mutatego: killed %d of %d faults in %d packages (%d of them by a loop that did not end); %d more are equivalent; %.1f s\n",
		total.killed, total.killed+total.survived, total.packages, total.endless, total.equivalent, time.Since(start).Seconds())
	if total.survived > 0 {
		return 1
	}
	return 0
}

type counts struct{ packages, killed, endless, survived, equivalent int }

func judge(names []string, root string, known []target, list []byte, out io.Writer) (counts, error) {
	var total counts
	var excused []equivalent
	if err := yaml.UnmarshalStrict(list, &excused); err != nil {
		return total, fmt.Errorf("equivalent.yaml: %w", err)
	}
	var chosen []target
	for _, t := range known {
		if len(names) == 0 && len(t.held) > 0 || slices.Contains(names, t.name()) {
			chosen = append(chosen, t)
		}
	}
	if len(chosen) == 0 || len(chosen) < len(names) {
		var all []string
		for _, t := range known {
			all = append(all, t.name())
		}
		return total, fmt.Errorf("no such package, or none: %s; expected some of %s", strings.Join(names, " "), strings.Join(all, " "))
	}
	var wrong []error
	for _, t := range chosen {
		of, faults, err := judgeOne(root, t, len(names) == 0, excused, out)
		if err != nil {
			return total, err
		}
		wrong = append(wrong, faults...)
		total.packages++
		total.killed += of.killed
		total.endless += of.endless
		total.survived += of.survived
		total.equivalent += of.equivalent
	}
	return total, errors.Join(wrong...)
}

func judgeOne(root string, t target, heldOnly bool, excused []equivalent, out io.Writer) (of counts, wrong []error, err error) {
	start := time.Now()
	scratch, err := os.MkdirTemp("", "mutatego-")
	if err != nil {
		return of, nil, err
	}
	defer os.RemoveAll(scratch)
	tried, err := newTrial(root, scratch, t, heldOnly)
	if err != nil {
		return of, nil, err
	}
	matched := map[int]bool{}
	for n, ended := range tried.verdicts() {
		m := tried.mutants[n]
		entry := slices.IndexFunc(excused, func(e equivalent) bool {
			e.place = m.place // which an entry has not
			return e.mutant == m
		})
		if entry >= 0 {
			matched[entry] = true
		}
		switch {
		case entry >= 0 && ended != survived:
			wrong = append(wrong, fmt.Errorf("equivalent.yaml: a test notices what is said to be equivalent (%s): %s", excused[entry].Reason, m))
		case entry >= 0:
			of.equivalent++
		case ended == survived:
			of.survived++
			met := "no test meets it"
			if slices.ContainsFunc(tried.tests, func(t *test) bool { return t.meets[n] }) {
				met = "no test notices it"
			}
			fmt.Fprintf(out, "%s\n  survived: %s\n\n", m, met)
		default:
			of.killed++
			if ended == endless {
				of.endless++
			}
		}
	}
	for i, e := range excused {
		if e.Package != t.name() {
			continue
		}
		if !matched[i] {
			wrong = append(wrong, fmt.Errorf("equivalent.yaml: no fault matches this entry; take it away or mend it: %s: %s: %s", e.Package, e.Function, e.Mutation))
		}
		if strings.TrimSpace(e.Reason) == "" {
			wrong = append(wrong, fmt.Errorf("equivalent.yaml: an entry has no reason: %s: %s: %s", e.Package, e.Function, e.Mutation))
		}
	}
	fmt.Fprintf(out, "%-44s %4d faults, %4d killed, %3d survived, %2d equivalent; %.1f s\n", t.name(), len(tried.mutants), of.killed, of.survived, of.equivalent, time.Since(start).Seconds())
	return of, wrong, nil
}

package main

// Damages the shipped template in every small way there is. Whatever the damage, the outcome is the template's
// bytes, or a refusal, or, where only lines of the author's were touched, a file that is left alone.

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

type damage struct {
	name string
	do   func(string) []string
}

// damages are what can happen to a line; each returns the lines that stand in its place.
var damages = []damage{
	{"deleted", func(string) []string { return nil }},
	{"doubled", func(l string) []string { return []string{l, l} }},
	{"commented", func(l string) []string { return []string{"# " + l} }},
	{"changed at its end", func(l string) []string { return []string{l + "x"} }},
	// The pairs stop here.
	{"commented in place", func(l string) []string {
		text := strings.TrimLeft(l, " ")
		return []string{l[:len(l)-len(text)] + "# " + text}
	}},
	{"commented for Helm", func(l string) []string { return []string{"{{- /* " + l + " */}}"} }},
	{"given a blank before", func(l string) []string { return []string{" " + l} }},
	{"given a blank behind", func(l string) []string { return []string{l + " "} }},
	{"changed at its beginning", func(l string) []string {
		text := strings.TrimLeft(l, " ")
		return []string{l[:len(l)-len(text)] + "x" + text}
	}},
	{"replaced", func(string) []string { return []string{"another: line"} }},
	{"emptied", func(string) []string { return []string{""} }},
}

const pairDamages = 4

// blockAt returns for each line of the template the block that it is part of. Blocks stand in their order.
func blockAt(t testing.TB, lines []string) []*block {
	t.Helper()
	at := make([]*block, len(lines))
	first := 0
	for i := range blocks {
		want := blocks[i].lines()
		for !slices.Equal(lines[first:first+len(want)], want) {
			if first++; first+len(want) > len(lines) {
				t.Fatalf("%s is not in the template, or above the block that is declared before it", &blocks[i])
			}
		}
		for range want {
			at[first] = &blocks[i]
			first++
		}
	}
	return at
}

// losing returns the template without some blocks, each with the lines that stand in its place.
func losing(lines []string, at []*block, lost map[*block][]string) []byte {
	var kept []string
	for i, l := range lines {
		instead, gone := lost[at[i]]
		if !gone {
			kept = append(kept, l)
		} else if i == 0 || at[i-1] != at[i] {
			kept = append(kept, instead...)
		}
	}
	return []byte(strings.Join(kept, "\n") + "\n")
}

// judge runs the merge on a damaged file and returns the outcome, failing if it is none of those allowed.
func judge(t *testing.T, what string, whole, damaged []byte, touched ...*block) string {
	t.Helper()
	r := merge(damaged)
	if len(r.faults) > 0 {
		for _, f := range r.faults {
			if f.subject == "" || f.problem == "" || f.remedy == "" || f.line > bytes.Count(damaged, []byte("\n")) {
				t.Errorf("%s: the fault %+v does not say it all", what, f)
			}
		}
		return "refused"
	}
	if bytes.Equal(r.data, whole) {
		return "restored"
	}
	if err := unsound(t, damaged, r.data); err != nil {
		t.Errorf("%s: accepted, but %v", what, err)
	}
	for _, b := range touched {
		if b != nil {
			t.Errorf("%s: %s was touched and is neither restored nor refused:\n%s", what, b, r.data)
		}
	}
	if !bytes.Equal(r.data, damaged) {
		t.Errorf("%s: neither restored nor refused nor left alone:\n%s", what, r.data)
	}
	return "left alone"
}

func (d damage) to(lines []string, at int) []string {
	return slices.Concat(lines[:at], d.do(lines[at]), lines[at+1:])
}

func TestEverySingleDamagedLineIsRestoredRefusedOrLeftAlone(t *testing.T) {
	whole := shipped(t)
	lines := strings.Split(strings.TrimSuffix(string(whole), "\n"), "\n")
	at := blockAt(t, lines)
	count := map[string]int{}
	for _, d := range damages {
		for i, l := range lines {
			if at[i] != nil && len(at[i].lines()) == 1 && (d.name == "replaced" || d.name == "emptied") {
				continue // the whole block is lost, and a line of the author's has come: not a damaged block
			}
			what := fmt.Sprintf("line %d %s, %s", i+1, d.name, show(l))
			damaged := []byte(strings.Join(d.to(lines, i), "\n") + "\n")
			outcome := judge(t, what, whole, damaged, at[i])
			count[outcome]++
			if d.name == "deleted" && at[i] != nil && len(at[i].lines()) == 1 && outcome != "restored" {
				t.Errorf("%s: %s, although the whole block was lost and nothing else", what, outcome)
			}
		}
	}
	report(t, count)
}

func TestEveryPairOfDamagedLinesInBlocksIsRestoredOrRefused(t *testing.T) {
	whole := shipped(t)
	lines := strings.Split(strings.TrimSuffix(string(whole), "\n"), "\n")
	at := blockAt(t, lines)
	count := map[string]int{}
	for _, first := range damages[:pairDamages] {
		for _, second := range damages[:pairDamages] {
			for i := range lines {
				for k := i + 1; k < len(lines); k++ {
					if at[i] == nil || at[k] == nil {
						continue
					}
					what := fmt.Sprintf("line %d %s and line %d %s", i+1, first.name, k+1, second.name)
					damaged := []byte(strings.Join(first.to(second.to(lines, k), i), "\n") + "\n")
					outcome := judge(t, what, whole, damaged, at[i], at[k])
					count[outcome]++
					lost := first.name == "deleted" && second.name == "deleted" && len(at[i].lines()) == 1 && len(at[k].lines()) == 1
					if lost && outcome != "restored" {
						t.Errorf("%s: %s, although whole blocks were lost and nothing else", what, outcome)
					}
				}
			}
		}
	}
	report(t, count)
}

// report prints the count, and fails if an outcome never came up: then the damage was not what it should be.
func report(t *testing.T, count map[string]int) {
	t.Helper()
	total := 0
	for _, n := range count {
		total += n
	}
	t.Logf("%d variants: %d restored, %d refused, %d left alone", total, count["restored"], count["refused"], count["left alone"])
	if count["restored"] == 0 || count["refused"] == 0 {
		t.Error("no variant was restored, or none refused")
	}
}

package output

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"cozy-kubevirt/cmd/kubectl-drain_preview/report"
	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// This file puts the parts of a report into words, for every format that people read.

// unbroken is a space at which no line is broken; it is printed as a space.
const unbroken = "\u00a0"

// carries is the strategy of a VM and where it came from.
func carries(vm report.VM) string {
	if vm.Strategy == "" {
		return "its strategy is not known"
	}
	return fmt.Sprintf("%s (%s)", vm.Strategy, vm.StrategySource)
}

// migration is whether a VM can migrate, with KubeVirt's reason.
func migration(vm report.VM) string {
	switch {
	case vm.LiveMigratable:
		return "can migrate"
	case vm.Reason == "" && vm.Phase != "Running":
		return "cannot migrate yet"
	case vm.Reason == "":
		return "cannot migrate"
	}
	return "cannot migrate: " + vm.Reason
}

func runs(vm report.VM) string {
	if vm.RunStrategy == "unknown" {
		return "runStrategy not known"
	}
	return cmp.Or(vm.RunStrategy, "no VM")
}

func upgrade(u report.Upgrade) string {
	if u.Batch == "" {
		return string(u.Outcome)
	}
	return fmt.Sprintf("%s (%s)", u.Outcome, strings.ReplaceAll(u.Batch, " ", unbroken))
}

// answer is the first thing that a reader wants to know.
func answer(r *report.Report) string {
	if len(r.VMs) == 0 {
		return "No VM is there."
	}
	switch r.Drains {
	case verdict.Waits:
		return "A drain would not end by itself."
	case verdict.NoTell:
		return "Whether a drain would end is not known."
	}
	return "A drain would end."
}

// counts are how many VMs meet each outcome, the most frequent first. A VM that is on two nodes counts once for each outcome.
func counts(vms []report.VM, outcomeOf func(report.VM) verdict.Outcome) string {
	type met struct {
		namespace, name string
		outcome         verdict.Outcome
	}
	number, counted := map[verdict.Outcome]int{}, map[met]bool{}
	for _, vm := range vms {
		if m := (met{vm.Namespace, vm.Name, outcomeOf(vm)}); !counted[m] {
			counted[m] = true
			number[m.outcome]++
		}
	}
	var outcomes []verdict.Outcome
	for outcome := range number {
		outcomes = append(outcomes, outcome)
	}
	slices.SortFunc(outcomes, func(a, b verdict.Outcome) int {
		return cmp.Or(number[b]-number[a], strings.Compare(string(a), string(b)))
	})
	var parts []string
	for _, outcome := range outcomes {
		parts = append(parts, string(outcome)+":"+unbroken+fmt.Sprint(number[outcome]))
	}
	return strings.Join(parts, ", ")
}

func drainOutcome(vm report.VM) verdict.Outcome   { return vm.Drain.Outcome }
func upgradeOutcome(vm report.VM) verdict.Outcome { return vm.Upgrade.Outcome }

// pace says how long the updater needs, for the whole cluster.
func pace(p report.Pace) string {
	if p.Unknown != "" {
		return "How long an upgrade of KubeVirt takes is not known: " + p.Unknown + "."
	}
	text := "An upgrade of KubeVirt, over the whole cluster:"
	if p.Migrations > 0 {
		text += fmt.Sprintf(" %s, at most %d at once;", of(p.Migrations, "VM migrates", "VMs migrate"), p.Parallel)
	}
	switch {
	case p.Batches == 1:
		text += fmt.Sprintf(" %s evicted in one batch;", of(p.Evictions, "VM is", "VMs are"))
	case p.Batches > 1:
		text += fmt.Sprintf(" %s evicted, %d every %s, so the last batch starts %s after the first;", of(p.Evictions, "VM is", "VMs are"),
			p.BatchSize, short(p.BatchInterval.Duration), short(p.AtLeast.Duration))
	}
	if p.Refused > 0 {
		text += fmt.Sprintf(" %s refused and asked again, which takes places in later batches;", of(p.Refused, "VM is", "VMs are"))
	}
	if p.Migrations+p.Evictions+p.Refused == 0 {
		text += " it touches no VM;"
	}
	return strings.TrimSuffix(text, ";") + "."
}

func of(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// short is a duration without its zeros: 1m, not 1m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

package output

import (
	"slices"

	"cozy-kubevirt/cmd/kubectl-drain_preview/plain"
	"cozy-kubevirt/cmd/kubectl-drain_preview/report"
)

// printable is a report whose text others wrote can be printed.
func printable(r *report.Report) *report.Report {
	p := *r
	p.Nodes, p.Notes, p.VMs, p.Advice = slices.Clone(r.Nodes), slices.Clone(r.Notes), slices.Clone(r.VMs), slices.Clone(r.Advice)
	all := []*string{&p.Read, &p.Pace.Unknown}
	for i := range p.Nodes {
		all = append(all, &p.Nodes[i])
	}
	for i := range p.Notes {
		all = append(all, &p.Notes[i])
	}
	for i := range p.VMs {
		vm := &p.VMs[i]
		all = append(all, &vm.Namespace, &vm.Name, &vm.Node, &vm.Phase, &vm.Strategy, &vm.Reason, &vm.RunStrategy, &vm.Drain.Why, &vm.Upgrade.Why)
		if vm.Verified != nil {
			v := *vm.Verified
			vm.Verified = &v
			all = append(all, &v.Said, &v.Expected)
		}
	}
	for i := range p.Advice {
		a := &p.Advice[i]
		a.Commands = slices.Clone(a.Commands)
		all = append(all, &a.Do)
		for n := range a.Commands {
			all = append(all, &a.Commands[n])
		}
	}
	for _, text := range all {
		*text = plain.Text(*text)
	}
	return &p
}

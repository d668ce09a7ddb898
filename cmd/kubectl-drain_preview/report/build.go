package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/inventory"
	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/source"
	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// Selection is which VMs are asked about. Its zero value is all.
type Selection struct {
	Nodes     []string        // each as if it alone were drained; none is all
	Namespace string          // "" is all
	Labels    labels.Selector // of the VMIs; nil is all
	VMs       []string        // by NAME or NAMESPACE/NAME; none is all
}

// Build answers the question. A node that is not known is an error.
func Build(objects *source.Objects, asked Selection) (*Report, error) {
	f, err := inventory.Judge(objects, asked.Namespace)
	if err != nil {
		return nil, err
	}
	nodes := asked.Nodes
	if err := known(nodes, f.Nodes()); err != nil {
		return nil, err
	}
	r := &Report{Drains: verdict.Ends, Pace: paceOf(f), Notes: f.Unread(), Read: f.Read(), VMs: []VM{}, Nodes: slices.Compact(slices.Sorted(slices.Values(nodes)))}
	r.SetGroupVersionKind(GroupVersionKind)
	for _, vm := range f.VMs {
		if !asked.holds(vm) {
			continue
		}
		if len(nodes) == 0 && !slices.Contains(r.Nodes, vm.Node) {
			r.Nodes = append(r.Nodes, vm.Node)
		}
		r.VMs = append(r.VMs, row(f, vm))
		r.Drains = worse(r.Drains, vm.Drained.End)
	}
	if err := asked.empty(r, f); err != nil {
		return nil, err
	}
	r.Advice = advice(r)
	return r, nil
}

// empty says what is wrong with a question that is about nothing: it was misspelt, or asked of the wrong cluster. A node
// without VMs is an answer.
func (asked Selection) empty(r *Report, f *inventory.Inventory) error {
	for _, name := range asked.VMs {
		if !slices.ContainsFunc(r.VMs, func(vm VM) bool { return name == vm.Name || name == vm.Namespace+"/"+vm.Name }) {
			return fmt.Errorf("--vm %s: no such VM runs%s", name, asked.where())
		}
	}
	switch {
	case len(r.VMs) > 0:
		return nil
	case asked.Namespace != "" && !f.Namespaces()[asked.Namespace]:
		return fmt.Errorf("namespace %q has no VM; expected one of: %s", asked.Namespace, strings.Join(slices.Sorted(maps.Keys(f.Namespaces())), ", "))
	case asked.Labels != nil && !asked.Labels.Empty():
		return fmt.Errorf("no VMI matches -l %q", asked.Labels)
	}
	return nil
}

func (asked Selection) where() string {
	where := ""
	if asked.Namespace != "" {
		where += " in namespace " + asked.Namespace
	}
	if len(asked.Nodes) > 0 {
		where += " on " + strings.Join(asked.Nodes, ", ")
	}
	return where
}

func known(asked, nodes []string) error {
	for _, node := range asked {
		if !slices.Contains(nodes, node) {
			return fmt.Errorf("node %q is not known; expected one of: %s", node, strings.Join(nodes, ", "))
		}
	}
	return nil
}

func (asked Selection) holds(vm inventory.VM) bool {
	if len(asked.Nodes) > 0 && !slices.Contains(asked.Nodes, vm.Node) {
		return false
	}
	if asked.Namespace != "" && asked.Namespace != vm.Name.Namespace {
		return false
	}
	if len(asked.VMs) > 0 && !slices.Contains(asked.VMs, vm.Name.Name) && !slices.Contains(asked.VMs, vm.Name.String()) {
		return false
	}
	if asked.Labels == nil {
		return true
	}
	if vm.VMI == nil {
		return asked.Labels.Empty()
	}
	return asked.Labels.Matches(labels.Set(vm.VMI.Labels))
}

// worse is the answer for two VMs.
func worse(a, b verdict.End) verdict.End {
	for _, end := range []verdict.End{verdict.Waits, verdict.NoTell} {
		if a == end || b == end {
			return end
		}
	}
	return verdict.Ends
}

func row(f *inventory.Inventory, vm inventory.VM) VM {
	r := VM{
		Namespace: vm.Name.Namespace, Name: vm.Name.Name, Node: vm.Node,
		Drain: Drain{Outcome: vm.Drained.Outcome, Why: vm.Drained.Why, End: vm.Drained.End, Cause: vm.Drained.Cause},
		Upgrade: Upgrade{
			Outcome: vm.Upgraded.Outcome, Why: vm.Upgraded.Why, Batch: batchOf(f, vm.Upgraded),
		},
	}
	if vm.Launcher != nil && !verdict.Ended(vm.Launcher) && (vm.VMI == nil || vm.VMI.Spec.EvictionStrategy != nil || f.Platform.Unknown == "") {
		r.Launcher, r.launcher, r.vmi = vm.Launcher.Name, vm.Launcher, vm.VMI
		r.launchers = append(slices.Clone(vm.Launchers), vm.Launcher)
		r.eviction = verdict.Evict(f.Platform, vm.VMI, vm.Launcher)
		r.budget = verdict.HeldByBudget(vm.Launcher, vm.Budgets)
	}
	if vm.VMI == nil {
		return r
	}
	r.Phase = string(vm.VMI.Status.Phase)
	r.StrategySource = verdict.SourceOf(vm.Situation)
	if r.StrategySource != verdict.Cluster || f.Platform.Unknown == "" {
		r.Strategy = string(f.Platform.Carried(vm.VMI))
	}
	r.LiveMigratable = vm.VMI.IsMigratable()
	for _, condition := range vm.VMI.Status.Conditions {
		if condition.Type == v1.VirtualMachineInstanceIsMigratable && !r.LiveMigratable {
			r.Reason = condition.Reason
		}
	}
	if vm.VM == nil && vm.Unknown.VM != "" {
		r.RunStrategy = "unknown"
	}
	if vm.VM != nil {
		if strategy, err := vm.VM.RunStrategy(); err == nil {
			r.RunStrategy = string(strategy)
		}
		r.NextStrategy = string(f.Platform.AfterRestart(vm.VM)) // "" is what is not known of a cluster
	}
	return r
}

// batchOf says in which batch an eviction falls. The updater takes each batch from an unordered map, so mostly there is
// only a last one.
func batchOf(f *inventory.Inventory, u verdict.Upgraded) string {
	if !u.InBatch || !u.Leaves() {
		return ""
	}
	last := f.Pace.LastBatch(f.Platform)
	switch {
	case !f.AllVMs():
		return "some batch"
	case last == 0:
		return "batch ≥ 1"
	case last == 1:
		return "batch 1"
	}
	return fmt.Sprintf("batch ≤ %d", last)
}

func paceOf(f *inventory.Inventory) Pace {
	p := Pace{
		Evictions: f.Pace.Evictions, Refused: f.Pace.Refused, Migrations: f.Pace.Migrating, Parallel: f.Platform.Migrations,
		BatchSize: f.Platform.BatchSize, BatchInterval: metav1.Duration{Duration: f.Platform.BatchInterval},
		Batches: f.Pace.Batches, AtLeast: metav1.Duration{Duration: f.Pace.AtLeast},
	}
	switch {
	case f.Platform.Unknown != "":
		p.Unknown = f.Platform.Unknown
	case !f.AllVMs():
		p.Unknown = "may not list the VMs of all namespaces"
	}
	return p
}

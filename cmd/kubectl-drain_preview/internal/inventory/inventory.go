// Package inventory joins what was read of a cluster into one situation for each VMI on each node, and judges them.
package inventory

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/scheduling"
	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/source"
	"cozy-kubevirt/cmd/kubectl-drain_preview/launcher"
	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// VM is the verdict on one VMI on one node.
type VM struct {
	verdict.Situation
	Name     types.NamespacedName
	Node     string
	Drained  verdict.Drained
	Upgraded verdict.Upgraded
}

// Inventory is the verdict on every VMI of a cluster.
type Inventory struct {
	Platform verdict.Platform
	Pace     verdict.Pace
	VMs      []VM // by node, namespace and name
	objects  *source.Objects
}

// Judge judges everything that was read. The namespace is the one that is asked about, if it is one.
func Judge(objects *source.Objects, namespace string) (*Inventory, error) {
	v := &Inventory{objects: objects}
	cr := kubeVirt(objects, namespace)
	rules := launcher.Rules{}
	if cr != nil {
		v.Platform, rules = verdict.NewPlatform(cr), launcher.NewRules(cr)
	} else {
		v.Platform = verdict.Platform{Unknown: whyNoKubeVirt(objects)}
	}
	var x *index
	var indexed sync.WaitGroup
	indexed.Go(func() { x = newIndex(objects) })
	snapshot, err := scheduling.New(objects)
	indexed.Wait()
	if err != nil {
		return nil, err
	}
	all, err := inParallel(snapshot)
	if err != nil {
		return nil, err
	}
	mains, upgrades := make([]verdict.Situation, len(objects.VMIs)), make([]verdict.Upgraded, len(objects.VMIs))
	all.do(len(objects.VMIs), func(snapshot *scheduling.Snapshot, i int) {
		mains[i] = x.situation(objects.VMIs[i], objects.VMIs[i].Status.NodeName)
		upgrades[i] = v.upgrade(mains[i], snapshot, rules)
	})
	for i, vmi := range objects.VMIs {
		for _, node := range x.nodesOf(vmi) {
			s := mains[i]
			if node != vmi.Status.NodeName {
				s = x.situation(vmi, node)
			}
			v.VMs = append(v.VMs, VM{Situation: s, Name: nameOf(vmi), Node: node, Upgraded: upgrades[i]})
		}
	}
	v.VMs = append(v.VMs, x.leftovers(v.Platform)...)
	v.Pace = verdict.PaceOf(v.Platform, upgrades)
	slices.SortFunc(v.VMs, func(a, b VM) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Name.Namespace, b.Name.Namespace), strings.Compare(a.Name.Name, b.Name.Name))
	})
	var byNode [][]VM
	for begin, end := 0, 0; begin < len(v.VMs); begin = end {
		for end = begin; end < len(v.VMs) && v.VMs[end].Node == v.VMs[begin].Node; end++ {
		}
		byNode = append(byNode, v.VMs[begin:end])
	}
	all.do(len(byNode), func(snapshot *scheduling.Snapshot, i int) { drain(v.Platform, byNode[i], snapshot, rules) })
	return v, nil
}

// parallel is as many snapshots of the cluster as there are processors.
type parallel []*scheduling.Snapshot

func inParallel(first *scheduling.Snapshot) (all parallel, err error) {
	all = parallel{first}
	for range runtime.GOMAXPROCS(0) - 1 {
		fork, err := first.Fork()
		if err != nil {
			return nil, err
		}
		all = append(all, fork)
	}
	return all, nil
}

// do does n things, each with a snapshot that nothing else uses meanwhile.
func (p parallel) do(n int, act func(*scheduling.Snapshot, int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for _, snapshot := range p {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				act(snapshot, int(i))
			}
		})
	}
	workers.Wait()
}

// upgrade is the verdict on an upgrade, in which a VMI migrates alone.
func (v *Inventory) upgrade(s verdict.Situation, snapshot *scheduling.Snapshot, rules launcher.Rules) verdict.Upgraded {
	u := verdict.Upgrade(v.Platform, s)
	if verdict.Upgrade(v.Platform, withoutUnread(s)).Outcome == verdict.Migrates {
		s.Migrated = snapshot.Alone(s.VMI.Status.NodeName, rules.MigrationTarget(s.VMI, s.Launcher, s.Node))
		u = verdict.Upgrade(v.Platform, s)
	}
	return u
}

// drain is the verdict on the VMs of one node, which share room elsewhere and PodDisruptionBudgets.
func drain(p verdict.Platform, vms []VM, snapshot *scheduling.Snapshot, rules launcher.Rules) {
	var leavers []launcher.Leaver
	var places []*verdict.Place
	for i := range vms {
		vm := &vms[i]
		first := verdict.Drain(p, withoutUnread(vm.Situation)) // as if there were a place, and nothing in the way
		switch first.Outcome {
		case verdict.Migrates:
			leavers, places = append(leavers, rules.MigrationTarget(vm.VMI, vm.Launcher, vm.Situation.Node)), append(places, &vm.Migrated)
		case verdict.Restarts, verdict.StaysOffIfClean:
			leavers, places = append(leavers, rules.NextLauncher(vm.VM, vm.VMI, vm.Launcher)), append(places, &vm.Restarted)
		case verdict.OwnerDecides:
			if first.End == verdict.Ends {
				leavers, places = append(leavers, rules.NextLauncher(vm.VM, vm.VMI, vm.Launcher)), append(places, &verdict.Place{})
			}
		}
	}
	for i, place := range snapshot.Drain(vms[0].Node, leavers) {
		*places[i] = place
	}
	situations, drained := make([]verdict.Situation, len(vms)), make([]verdict.Drained, len(vms))
	for i := range vms {
		situations[i], drained[i] = vms[i].Situation, verdict.Drain(p, vms[i].Situation)
	}
	verdict.Share(situations, drained)
	for i := range vms {
		vms[i].Drained = drained[i]
	}
}

// withoutUnread is what would be so if nothing had to be read but what was.
func withoutUnread(s verdict.Situation) verdict.Situation {
	s.Unknown.Migrations, s.Unknown.Budgets = "", ""
	return s
}

// kubeVirt is the CR. KubeVirt works with one; where a rehearsal has several, the one in the namespace that is asked about
// counts.
func kubeVirt(objects *source.Objects, namespace string) *v1.KubeVirt {
	for _, cr := range objects.KubeVirts {
		if len(objects.KubeVirts) == 1 || cr.Namespace == namespace {
			return cr
		}
	}
	return nil
}

func whyNoKubeVirt(objects *source.Objects) string {
	if len(objects.KubeVirts) > 1 {
		return fmt.Sprintf("there are %d KubeVirt CRs, and KubeVirt works with one", len(objects.KubeVirts))
	}
	return objects.Unknown[source.KubeVirts]
}

// Nodes are the nodes that are known: of the cluster, or where they could not be read, of its VMs.
func (v *Inventory) Nodes() []string {
	var names []string
	for _, node := range v.objects.Nodes {
		names = append(names, node.Name)
	}
	for _, vm := range v.VMs {
		names = append(names, vm.Node)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Namespaces are those that anything was read in.
func (v *Inventory) Namespaces() map[string]bool {
	names := map[string]bool{}
	for _, vm := range v.VMs {
		names[vm.Name.Namespace] = true
	}
	for _, namespace := range v.objects.Namespaces {
		names[namespace.Name] = true
	}
	return names
}

// Unread says what could not be read, in the order of the kinds' names.
func (v *Inventory) Unread() []string {
	var unread []string
	for _, why := range v.objects.Unknown {
		unread = append(unread, why)
	}
	if namespace := v.objects.Namespace; namespace != "" {
		unread = append(unread, fmt.Sprintf("may list VMs in namespace %s only, and the batches of an upgrade go over all", namespace))
	}
	slices.Sort(unread)
	return unread
}

// AllVMs says whether the VMs of all namespaces could be read, which the batches of an upgrade go over.
func (v *Inventory) AllVMs() bool { return v.objects.Namespace == "" }

// Read is what was read, as counts by kind in a line.
func (v *Inventory) Read() string {
	var parts []string
	for _, count := range v.objects.Counts() {
		parts = append(parts, fmt.Sprintf("%d %s", count.N, count.Kind))
	}
	return strings.Join(parts, ", ")
}

// leftovers are the launchers whose VMI is gone.
func (x *index) leftovers(platform verdict.Platform) []VM {
	var found []VM
	for name, launchers := range x.launchers {
		if x.vmis[name] || x.objects.Namespace != "" && name.Namespace != x.objects.Namespace {
			continue
		}
		for _, pod := range launchers {
			if !verdict.Ended(pod) && pod.Spec.NodeName != "" {
				s := verdict.Situation{Launcher: pod}
				found = append(found, VM{Situation: s, Name: name, Node: pod.Spec.NodeName, Upgraded: verdict.Upgrade(platform, s)})
			}
		}
	}
	return found
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// vmiOf names the VMI of a launcher, as virt-api's webhook finds it.
func vmiOf(launcher *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: launcher.Namespace, Name: launcher.Annotations[v1.DomainAnnotation]}
}

// Package fleet joins what was read of a cluster into one situation for each VMI on each node, and judges them.
package fleet

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/source"
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

// Fleet is the verdict on every VMI of a cluster.
type Fleet struct {
	Platform verdict.Platform
	Pace     verdict.Pace
	VMs      []VM // by node, namespace and name
	objects  *source.Objects
}

// Judge judges everything that was read. The namespace is the one that is asked about, if it is one.
func Judge(objects *source.Objects, namespace string) *Fleet {
	f := &Fleet{Platform: platform(objects, namespace), objects: objects}
	x := newIndex(objects)
	var upgrades []verdict.Upgraded
	for _, vmi := range objects.VMIs {
		main := x.situation(vmi, vmi.Status.NodeName)
		upgraded := verdict.Upgrade(f.Platform, main)
		upgrades = append(upgrades, upgraded)
		for _, node := range x.nodesOf(vmi) {
			s := main
			if node != vmi.Status.NodeName {
				s = x.situation(vmi, node)
			}
			f.VMs = append(f.VMs, VM{s, nameOf(vmi), node, verdict.Drain(f.Platform, s), upgraded})
		}
	}
	f.VMs = append(f.VMs, x.leftovers(f.Platform)...)
	f.Pace = verdict.PaceOf(f.Platform, upgrades)
	slices.SortFunc(f.VMs, func(a, b VM) int {
		return strings.Compare(a.Node+"\x00"+a.Name.String(), b.Node+"\x00"+b.Name.String())
	})
	f.shareBudgets()
	return f
}

// platform is what the KubeVirt CR says. KubeVirt works with one; where a rehearsal has several, the one in the namespace
// that is asked about counts.
func platform(objects *source.Objects, namespace string) verdict.Platform {
	for _, cr := range objects.KubeVirts {
		if len(objects.KubeVirts) == 1 || cr.Namespace == namespace {
			return verdict.NewPlatform(cr)
		}
	}
	if len(objects.KubeVirts) > 1 {
		return verdict.Platform{Gap: fmt.Sprintf("there are %d KubeVirt CRs, and KubeVirt works with one", len(objects.KubeVirts))}
	}
	return verdict.Platform{Gap: objects.Gaps[source.KubeVirts]}
}

// shareBudgets lets the VMs of each node share their PodDisruptionBudgets.
func (f *Fleet) shareBudgets() {
	for begin := 0; begin < len(f.VMs); {
		end := begin
		var situations []verdict.Situation
		var drained []verdict.Drained
		for ; end < len(f.VMs) && f.VMs[end].Node == f.VMs[begin].Node; end++ {
			situations, drained = append(situations, f.VMs[end].Situation), append(drained, f.VMs[end].Drained)
		}
		verdict.Share(situations, drained)
		for i, d := range drained {
			f.VMs[begin+i].Drained = d
		}
		begin = end
	}
}

// Nodes are the nodes that are known: of the cluster, or where they could not be read, of its VMs.
func (f *Fleet) Nodes() []string {
	var names []string
	for _, node := range f.objects.Nodes {
		names = append(names, node.Name)
	}
	for _, vm := range f.VMs {
		names = append(names, vm.Node)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Gaps say what could not be read, in the order of the kinds' names.
func (f *Fleet) Gaps() []string {
	var gaps []string
	for _, gap := range f.objects.Gaps {
		gaps = append(gaps, gap)
	}
	if namespace := f.objects.Namespace; namespace != "" {
		gaps = append(gaps, fmt.Sprintf("may list VMs in namespace %s only, and the batches of an upgrade go over all", namespace))
	}
	slices.Sort(gaps)
	return gaps
}

// AllVMs says whether the VMs of all namespaces could be read, which the batches of an upgrade go over.
func (f *Fleet) AllVMs() bool { return f.objects.Namespace == "" }

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// vmiOf names the VMI of a launcher, as virt-api's webhook finds it.
func vmiOf(launcher *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: launcher.Namespace, Name: launcher.Annotations[v1.DomainAnnotation]}
}

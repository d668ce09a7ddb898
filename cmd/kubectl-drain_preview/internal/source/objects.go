// Package source reads what a verdict is about, from a cluster or from dumps of one.
package source

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
)

// Objects is everything that was read, each kind in the order of namespace and name.
type Objects struct {
	KubeVirts  []*v1.KubeVirt
	VMs        []*v1.VirtualMachine
	VMIs       []*v1.VirtualMachineInstance
	Migrations []*v1.VirtualMachineInstanceMigration
	Nodes      []*corev1.Node
	Pods       []*corev1.Pod // all, also those that are no VM's: they take room
	Claims     []*corev1.PersistentVolumeClaim
	Volumes    []*corev1.PersistentVolume
	Budgets    []*policyv1.PodDisruptionBudget
	CSINodes   []*storagev1.CSINode
	Namespaces []*corev1.Namespace

	// Unknown are the kinds that could not be read, each with the reason.
	Unknown map[Kind]string
	// Namespace is set where the VMIs of other namespaces could not be read.
	Namespace string
	// FromDump says that an object that is missing may just not be in the dump.
	FromDump bool
	// Now is when the cluster was as it was read: for a dump, the latest time that anything in it names.
	Now time.Time

	others int           // objects of kinds that a preview has no use for
	listed map[Kind]bool // kinds of which a list was there, be it an empty one
}

// Kind is the plural name by which kubectl knows a kind.
type Kind string

const (
	KubeVirts  Kind = "kubevirts"
	VMs        Kind = "virtualmachines"
	VMIs       Kind = "virtualmachineinstances"
	Migrations Kind = "virtualmachineinstancemigrations"
	Nodes      Kind = "nodes"
	Pods       Kind = "pods"
	Claims     Kind = "persistentvolumeclaims"
	Volumes    Kind = "persistentvolumes"
	Budgets    Kind = "poddisruptionbudgets"
	CSINodes   Kind = "csinodes"
	Namespaces Kind = "namespaces"

	// OtherPods are those of namespaces other than the one that is asked about.
	OtherPods Kind = "pods of other namespaces"
)

// Command makes a dump with all that a preview reads.
const Command = "kubectl get kubevirts,vm,vmi,vmim,nodes,pods,pvc,pv,pdb,csinodes,namespaces -A -o json"

// Count is how many objects of a kind were read.
type Count struct {
	Kind Kind
	N    int
}

// Counts are in the order of Command. Kinds of which none was read are left out.
func (o *Objects) Counts() []Count {
	var counts []Count
	for _, k := range kinds {
		if n := k.count(o); n > 0 {
			counts = append(counts, Count{k.name, n})
		}
	}
	if o.others > 0 {
		counts = append(counts, Count{"others, not used", o.others})
	}
	return counts
}

// merge adds what another reader has read.
func (o *Objects) merge(other *Objects) {
	for _, k := range kinds {
		k.merge(o, other)
	}
	o.others += other.others
	if other.Now.After(o.Now) {
		o.Now = other.Now
	}
}

// settle orders the objects and drops those that were read before.
func (o *Objects) settle() {
	for _, k := range kinds {
		k.settle(o)
	}
}

// lackFromDump notes the kinds that a dump has nothing of: what is not there may not have been asked for.
func (o *Objects) lackFromDump(complete bool) {
	o.FromDump = true
	o.Unknown = map[Kind]string{}
	for _, k := range kinds {
		always := k.name == KubeVirts || k.name == Nodes || k.name == Pods
		if k.count(o) == 0 && !o.listed[k.name] && (!complete || always) {
			o.Unknown[k.name] = fmt.Sprintf("the dump has no %s", k.name)
		}
	}
}

// object is what every kind has.
type object interface{ metav1.Object }

// settled orders objects, and of those that are there twice keeps the newer one.
func settled[T object](list []T) []T {
	slices.SortStableFunc(list, func(a, b T) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()),
			newerFirst(a.GetResourceVersion(), b.GetResourceVersion()))
	})
	return slices.CompactFunc(list, func(a, b T) bool { return a.GetNamespace() == b.GetNamespace() && a.GetName() == b.GetName() })
}

// newerFirst compares resource versions, which are numbers in every cluster that Kubernetes' own API server serves.
func newerFirst(a, b string) int {
	if len(a) != len(b) {
		return len(b) - len(a)
	}
	return strings.Compare(b, a)
}

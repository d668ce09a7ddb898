// Package source reads what a verdict is about, from a cluster or from a dump of one.
package source

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1 "kubevirt.io/api/core/v1"
)

// Objects is everything that was read.
type Objects struct {
	KubeVirts  []*v1.KubeVirt
	VMs        []*v1.VirtualMachine
	VMIs       []*v1.VirtualMachineInstance
	Migrations []*v1.VirtualMachineInstanceMigration
	Nodes      []*corev1.Node
	Pods       []*corev1.Pod // launchers and hotplug pods
	Claims     []*corev1.PersistentVolumeClaim
	Volumes    []*corev1.PersistentVolume
	Budgets    []*policyv1.PodDisruptionBudget

	// Gaps are the kinds that could not be read, each with the reason.
	Gaps map[Kind]string
	// Namespace is set where the VMIs of other namespaces could not be read.
	Namespace string
	// FromDump says that what is missing may just not be in the dump.
	FromDump bool
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
)

// decoder writes what was read into an object of its type.
type decoder func(object any) error

// kind is how one kind is read.
type kind struct {
	name     Kind
	object   schema.GroupVersionKind
	local    bool   // about a VM of a namespace, those of the namespace are enough
	selector string // what to ask a cluster for
	keep     fields // what of an object is needed; the rest of a dump is not even parsed
	add      func(o *Objects, decode decoder) error
}

func (k kind) resource() schema.GroupVersionResource {
	return k.object.GroupVersion().WithResource(string(k.name))
}

// launchersAndHotplug are the pods of VMs
// (pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go:229-235).
const launchersAndHotplug = v1.AppLabel + " in (virt-launcher,hotplug-disk)"

var kinds = []kind{
	{KubeVirts, v1.GroupVersion.WithKind("KubeVirt"), false, "", kubeVirtFields,
		into(func(o *Objects) *[]*v1.KubeVirt { return &o.KubeVirts })},
	{VMs, v1.GroupVersion.WithKind("VirtualMachine"), true, "", vmFields,
		into(func(o *Objects) *[]*v1.VirtualMachine { return &o.VMs })},
	{VMIs, v1.GroupVersion.WithKind("VirtualMachineInstance"), true, "", vmiFields,
		into(func(o *Objects) *[]*v1.VirtualMachineInstance { return &o.VMIs })},
	{Migrations, v1.GroupVersion.WithKind("VirtualMachineInstanceMigration"), true, "", migrationFields,
		into(func(o *Objects) *[]*v1.VirtualMachineInstanceMigration { return &o.Migrations })},
	{Nodes, corev1.SchemeGroupVersion.WithKind("Node"), false, "", nodeFields,
		into(func(o *Objects) *[]*corev1.Node { return &o.Nodes })},
	{Pods, corev1.SchemeGroupVersion.WithKind("Pod"), true, launchersAndHotplug, podFields, addPod},
	{Claims, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), true, "", claimFields,
		into(func(o *Objects) *[]*corev1.PersistentVolumeClaim { return &o.Claims })},
	{Volumes, corev1.SchemeGroupVersion.WithKind("PersistentVolume"), false, "", volumeFields,
		into(func(o *Objects) *[]*corev1.PersistentVolume { return &o.Volumes })},
	{Budgets, policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), true, "", budgetFields,
		into(func(o *Objects) *[]*policyv1.PodDisruptionBudget { return &o.Budgets })},
}

// into reads objects of one type into their list.
func into[T any](list func(*Objects) *[]*T) func(*Objects, decoder) error {
	return func(o *Objects, decode decoder) error {
		object := new(T)
		if err := decode(object); err != nil {
			return err
		}
		*list(o) = append(*list(o), object)
		return nil
	}
}

// addPod leaves out the pods that are no VM's: a dump has them all.
func addPod(o *Objects, decode decoder) error {
	pod := &corev1.Pod{}
	if err := decode(pod); err != nil {
		return err
	}
	if app := pod.Labels[v1.AppLabel]; app == "virt-launcher" || app == "hotplug-disk" {
		o.Pods = append(o.Pods, pod)
	}
	return nil
}

// merge adds what another reader has read.
func (o *Objects) merge(other *Objects) {
	o.KubeVirts = append(o.KubeVirts, other.KubeVirts...)
	o.VMs = append(o.VMs, other.VMs...)
	o.VMIs = append(o.VMIs, other.VMIs...)
	o.Migrations = append(o.Migrations, other.Migrations...)
	o.Nodes = append(o.Nodes, other.Nodes...)
	o.Pods = append(o.Pods, other.Pods...)
	o.Claims = append(o.Claims, other.Claims...)
	o.Volumes = append(o.Volumes, other.Volumes...)
	o.Budgets = append(o.Budgets, other.Budgets...)
}

// kindOf finds a kind by what an object says of itself. Only the group counts: the fields that are needed are the same in
// every version.
func kindOf(apiVersion, name string) (kind, error) {
	group, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return kind{}, err
	}
	for _, k := range kinds {
		if k.object.Kind == name && k.object.Group == group.Group {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("a %s of %s is none of the objects that a preview reads", name, apiVersion)
}

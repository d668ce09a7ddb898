package source

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1 "kubevirt.io/api/core/v1"
)

// This file is the list of the kinds that a preview reads.

// kind is how one kind is read.
type kind struct {
	name   Kind
	object schema.GroupVersionKind
	local  bool // about a VM of a namespace, those of the namespace are enough
	add    func(o *Objects, text []byte) error
	count  func(o *Objects) int
	merge  func(into, from *Objects)
	settle func(o *Objects)
}

var kinds = []kind{
	read(KubeVirts, v1.GroupVersion.WithKind("KubeVirt"), false, whole[v1.KubeVirt], func(o *Objects) *[]*v1.KubeVirt { return &o.KubeVirts }),
	read(VMs, v1.GroupVersion.WithKind("VirtualMachine"), true, vmOf, func(o *Objects) *[]*v1.VirtualMachine { return &o.VMs }),
	read(VMIs, v1.GroupVersion.WithKind("VirtualMachineInstance"), true, vmiOf, func(o *Objects) *[]*v1.VirtualMachineInstance { return &o.VMIs }),
	read(Migrations, v1.GroupVersion.WithKind("VirtualMachineInstanceMigration"), true, whole[v1.VirtualMachineInstanceMigration],
		func(o *Objects) *[]*v1.VirtualMachineInstanceMigration { return &o.Migrations }),
	read(Nodes, corev1.SchemeGroupVersion.WithKind("Node"), false, nodeOf, func(o *Objects) *[]*corev1.Node { return &o.Nodes }),
	read(Pods, corev1.SchemeGroupVersion.WithKind("Pod"), true, podOf, func(o *Objects) *[]*corev1.Pod { return &o.Pods }),
	read(Claims, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), true, claimOf,
		func(o *Objects) *[]*corev1.PersistentVolumeClaim { return &o.Claims }),
	read(Volumes, corev1.SchemeGroupVersion.WithKind("PersistentVolume"), false, volumeOf,
		func(o *Objects) *[]*corev1.PersistentVolume { return &o.Volumes }),
	read(Budgets, policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), true, whole[policyv1.PodDisruptionBudget],
		func(o *Objects) *[]*policyv1.PodDisruptionBudget { return &o.Budgets }),
	read(CSINodes, storagev1.SchemeGroupVersion.WithKind("CSINode"), false, whole[storagev1.CSINode],
		func(o *Objects) *[]*storagev1.CSINode { return &o.CSINodes }),
	read(Namespaces, corev1.SchemeGroupVersion.WithKind("Namespace"), false, whole[corev1.Namespace],
		func(o *Objects) *[]*corev1.Namespace { return &o.Namespaces }),
}

// read says how a kind is read into its list.
func read[T any, P interface {
	*T
	object
}](name Kind, gvk schema.GroupVersionKind, local bool, decode func([]byte) (*T, error), list func(*Objects) *[]*T) kind {
	return kind{
		name: name, object: gvk, local: local,
		add: func(o *Objects, text []byte) error {
			decoded, err := decode(text)
			if err != nil {
				return err
			}
			if P(decoded).GetName() == "" {
				return fmt.Errorf("a %s without a metadata.name", gvk.Kind)
			}
			*list(o) = append(*list(o), decoded)
			o.sawTimeOf(P(decoded))
			return nil
		},
		count: func(o *Objects) int { return len(*list(o)) },
		merge: func(into, from *Objects) { *list(into) = append(*list(into), *list(from)...) },
		settle: func(o *Objects) {
			named := make([]P, len(*list(o)))
			for i, decoded := range *list(o) {
				named[i] = decoded
			}
			named = settled(named)
			for i, decoded := range named {
				(*list(o))[i] = decoded
			}
			*list(o) = (*list(o))[:len(named)]
		},
	}
}

func (k kind) resource() schema.GroupVersionResource {
	return k.object.GroupVersion().WithResource(string(k.name))
}

// kindOf finds a kind by what an object says of itself. Only the group counts: the fields that are needed are the same in
// every version.
func kindOf(apiVersion, name string) (*kind, error) {
	group, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	for i := range kinds {
		if kinds[i].object.Kind == name && kinds[i].object.Group == group.Group {
			return &kinds[i], nil
		}
	}
	return nil, nil
}

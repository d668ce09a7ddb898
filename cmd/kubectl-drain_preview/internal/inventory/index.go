package inventory

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/source"
	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// This file finds what belongs to a VMI.

type index struct {
	objects    *source.Objects
	vms        map[types.NamespacedName]*v1.VirtualMachine
	vmis       map[types.NamespacedName]bool
	launchers  map[types.NamespacedName][]*corev1.Pod                         // by VMI
	hotplug    map[types.NamespacedName][]*corev1.Pod                         // by VMI
	migrations map[types.NamespacedName][]*v1.VirtualMachineInstanceMigration // by VMI
	nodes      map[string]*corev1.Node
	budgets    map[string][]budget // by namespace
}

type budget struct {
	*policyv1.PodDisruptionBudget
	selects labels.Selector
}

func newIndex(objects *source.Objects) *index {
	x := &index{
		objects:    objects,
		vms:        map[types.NamespacedName]*v1.VirtualMachine{},
		vmis:       map[types.NamespacedName]bool{},
		launchers:  map[types.NamespacedName][]*corev1.Pod{},
		hotplug:    map[types.NamespacedName][]*corev1.Pod{},
		migrations: map[types.NamespacedName][]*v1.VirtualMachineInstanceMigration{},
		nodes:      map[string]*corev1.Node{},
		budgets:    map[string][]budget{},
	}
	for _, vm := range objects.VMs {
		x.vms[nameOf(vm)] = vm
	}
	for _, vmi := range objects.VMIs {
		x.vmis[nameOf(vmi)] = true
	}
	for _, migration := range objects.Migrations {
		name := types.NamespacedName{Namespace: migration.Namespace, Name: migration.Spec.VMIName}
		x.migrations[name] = append(x.migrations[name], migration)
	}
	for _, node := range objects.Nodes {
		x.nodes[node.Name] = node
	}
	for _, pdb := range objects.Budgets {
		// kube-apiserver passes over a selector that it cannot read as well.
		if selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector); err == nil {
			x.budgets[pdb.Namespace] = append(x.budgets[pdb.Namespace], budget{pdb, selector})
		}
	}
	x.addPods()
	return x
}

// addPods finds the VMI of each launcher, and of each hotplug pod by the launcher that owns it.
func (x *index) addPods() {
	byName := map[types.NamespacedName]*corev1.Pod{}
	for _, pod := range x.objects.Pods {
		if pod.Labels[v1.AppLabel] == "virt-launcher" && pod.Annotations[v1.DomainAnnotation] != "" {
			byName[nameOf(pod)] = pod
			x.launchers[vmiOf(pod)] = append(x.launchers[vmiOf(pod)], pod)
		}
	}
	for _, pod := range x.objects.Pods {
		if pod.Labels[v1.AppLabel] != "hotplug-disk" || len(pod.OwnerReferences) != 1 {
			continue
		}
		launcher := byName[types.NamespacedName{Namespace: pod.Namespace, Name: pod.OwnerReferences[0].Name}]
		if launcher != nil && !verdict.Ended(launcher) {
			x.hotplug[vmiOf(launcher)] = append(x.hotplug[vmiOf(launcher)], pod)
		}
	}
}

// nodesOf are the nodes on which a VMI has anything, its own first.
func (x *index) nodesOf(vmi *v1.VirtualMachineInstance) []string {
	var nodes []string
	add := func(node string) {
		if node != "" && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	add(vmi.Status.NodeName)
	for _, pods := range [][]*corev1.Pod{x.launchers[nameOf(vmi)], x.hotplug[nameOf(vmi)]} {
		for _, pod := range pods {
			if !verdict.Ended(pod) {
				add(pod.Spec.NodeName)
			}
		}
	}
	return nodes
}

// situation is what is known of a VMI on a node.
func (x *index) situation(vmi *v1.VirtualMachineInstance, node string) verdict.Situation {
	name := nameOf(vmi)
	s := verdict.Situation{
		VMI: vmi, VM: x.vmOf(vmi), Launcher: newest(x.launchers[name], node), Migrations: x.migrations[name],
		Node: x.nodes[node], Now: x.objects.Now,
		Unknown: verdict.Unread{
			VM:         x.objects.Unknown[source.VMs],
			Pods:       x.objects.Unknown[source.Pods],
			Budgets:    x.objects.Unknown[source.Budgets],
			Migrations: x.objects.Unknown[source.Migrations],
			Nodes:      x.objects.Unknown[source.Nodes],
		},
	}
	for _, pod := range x.launchers[name] {
		if !verdict.Ended(pod) && (vmi.UID == "" || metav1.IsControlledBy(pod, vmi)) {
			s.Launchers = append(s.Launchers, pod)
		}
	}
	for _, pod := range x.hotplug[name] {
		if pod.Spec.NodeName == node {
			s.Hotplug = append(s.Hotplug, pod)
		}
	}
	if s.Launcher != nil {
		for _, b := range x.budgets[s.Launcher.Namespace] {
			if b.selects.Matches(labels.Set(s.Launcher.Labels)) {
				s.Budgets = append(s.Budgets, b.PodDisruptionBudget)
			}
		}
	}
	return s
}

func (x *index) vmOf(vmi *v1.VirtualMachineInstance) *v1.VirtualMachine {
	owner := metav1.GetControllerOf(vmi)
	if owner == nil || owner.Kind != "VirtualMachine" {
		return nil
	}
	return x.vms[types.NamespacedName{Namespace: vmi.Namespace, Name: owner.Name}]
}

// newest is the launcher on a node that counts (CurrentVMIPod, pkg/controller/controller.go:323-358).
func newest(launchers []*corev1.Pod, node string) *corev1.Pod {
	var found *corev1.Pod
	for _, pod := range launchers {
		if pod.Spec.NodeName == node && (found == nil || verdict.Ended(found) || found.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			found = pod
		}
	}
	return found
}

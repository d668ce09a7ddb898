package verdict

import (
	corev1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
)

// This file is what virt-api's webhook answers to the eviction of one pod. The contract tests put every situation to the
// webhook itself as well.

// Hold is why the webhook does not let a pod go; every hold is a 429, which kubectl drain retries.
type Hold string

// The holds, by the line of pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go that answers
// with them (KubeVirt v1.9.0).
const (
	NotMigratable Hold = "not migratable"     // 149: LiveMigrate, and the VMI cannot
	Evacuating    Hold = "evacuating already" // 167: marked by an earlier eviction
	TargetPod     Hold = "migration target"   // 170: the VMI runs on another node than the pod
	Marked        Hold = "marked"             // 182: this eviction marks the VMI
	HotplugPod    Hold = "hotplug pod"        // 124: its launcher and its VMI are there
	NoVMI         Hold = "VMI is gone"        // 135: a launcher that nobody has taken away yet
)

// Answer is a reply of the webhook. The zero value lets the pod go.
type Answer struct {
	Hold Hold // "" lets the pod go
}

// Allowed says whether the webhook lets the pod go. The API server asks the PodDisruptionBudgets only then.
func (a Answer) Allowed() bool { return a.Hold == "" }

// Marks says whether the eviction sets the VMI's status.evacuationNodeName.
func (a Answer) Marks() bool { return a.Hold == Marked }

// Evict is the answer to an eviction of a launcher pod (pod-eviction-admitter.go:86-183). A VMI that is gone is nil.
func Evict(p Platform, vmi *v1.VirtualMachineInstance, launcher *corev1.Pod) Answer {
	if Ended(launcher) {
		return Answer{}
	}
	if vmi == nil {
		return Answer{NoVMI}
	}
	switch p.Carried(vmi) {
	case v1.EvictionStrategyLiveMigrate:
		if !vmi.IsMigratable() {
			return Answer{NotMigratable}
		}
	case v1.EvictionStrategyLiveMigrateIfPossible:
		if !vmi.IsMigratable() {
			return Answer{}
		}
	case v1.EvictionStrategyExternal:
	default:
		return Answer{}
	}
	switch {
	case vmi.IsMarkedForEviction():
		return Answer{Evacuating}
	case vmi.Status.NodeName != launcher.Spec.NodeName:
		return Answer{TargetPod}
	}
	return Answer{Marked}
}

// EvictHotplug is the answer to an eviction of a hotplug pod (pod-eviction-admitter.go:100-125). A launcher or a VMI that
// is gone is nil.
func EvictHotplug(launcher *corev1.Pod, vmi *v1.VirtualMachineInstance) Answer {
	if launcher == nil || vmi == nil || Ended(launcher) {
		return Answer{}
	}
	return Answer{HotplugPod}
}

// Ended says whether a pod has run to its end; an eviction just removes it.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

package e2e

import (
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "kubevirt.io/api/core/v1"
)

// This file is what answers, and lies about them, are made of.

const overBudget = "Cannot evict pod as it would violate the pod's disruption budget."

const denied = `admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: `

func evacuates(vm string) string {
	return fmt.Sprintf("Eviction triggered evacuation of VMI %q", "default/"+vm)
}

func allowed() *metav1.Status {
	return &metav1.Status{TypeMeta: status, Status: metav1.StatusSuccess, Code: http.StatusCreated}
}

func refused(code int32, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{TypeMeta: status, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}
}

// mayNotEvict names the resource that the user has no right to, as the API server does.
func mayNotEvict() *metav1.Status {
	forbidden := refused(http.StatusForbidden, metav1.StatusReasonForbidden, "may not create pods/eviction")
	forbidden.Details = &metav1.StatusDetails{Name: "virt-launcher", Kind: "pods"}
	return forbidden
}

var status = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}

// kubeVirtRefuses gives no reason (pod-eviction-admitter.go:219-227).
func kubeVirtRefuses(message string) *metav1.Status {
	return refused(http.StatusTooManyRequests, "", denied+message)
}

// budgetRefuses is what the API server answers (k8s.io/kubernetes v1.34.2, pkg/registry/core/pod/storage/eviction.go:436).
func budgetRefuses() *metav1.Status {
	return refused(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, overBudget)
}

func onVMI(change func(*v1.VirtualMachineInstance)) lies {
	return lies{vmi: func(vmi *v1.VirtualMachineInstance, _ bool) { change(vmi) }}
}

func carrying(strategy v1.EvictionStrategy) func(*v1.VirtualMachineInstance) {
	return func(vmi *v1.VirtualMachineInstance) { vmi.Spec.EvictionStrategy = &strategy }
}

func without(vmi *v1.VirtualMachineInstance, condition v1.VirtualMachineInstanceConditionType) (left []v1.VirtualMachineInstanceCondition) {
	for _, one := range vmi.Status.Conditions {
		if one.Type != condition {
			left = append(left, one)
		}
	}
	return left
}

func afterwards(change func([]corev1.Pod) []corev1.Pod) func([]corev1.Pod, bool) []corev1.Pod {
	return func(pods []corev1.Pod, asked bool) []corev1.Pod {
		if asked {
			return change(pods)
		}
		return pods
	}
}

func terminating(pods []corev1.Pod) []corev1.Pod {
	now := metav1.Now()
	pods[0].DeletionTimestamp = &now
	return pods
}

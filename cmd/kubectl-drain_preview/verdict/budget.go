package verdict

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// This file is what kube-apiserver makes of PodDisruptionBudgets once the webhook has let a pod go
// (k8s.io/kubernetes v1.34.2, pkg/registry/core/pod/storage/eviction.go:212-262 and 410-440). KubeVirt creates none.

// HeldByBudget says why the budgets do not let a pod go, or "".
func HeldByBudget(pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) string {
	if Ended(pod) || pod.Status.Phase == corev1.PodPending || pod.DeletionTimestamp != nil || len(budgets) == 0 {
		return ""
	}
	if len(budgets) > 1 {
		return fmt.Sprintf("PodDisruptionBudgets %s and %s both select it, which ends every eviction in an error", budgets[0].Name, budgets[1].Name)
	}
	budget := budgets[0]
	switch {
	case !ready(pod) && unhealthyMayGo(budget):
		return ""
	case budget.Status.ObservedGeneration < budget.Generation:
		return fmt.Sprintf("PodDisruptionBudget %s is not processed yet", budget.Name)
	case budget.Status.DisruptionsAllowed <= 0:
		return fmt.Sprintf("PodDisruptionBudget %s allows no disruption", budget.Name)
	}
	return ""
}

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func unhealthyMayGo(budget *policyv1.PodDisruptionBudget) bool {
	if policy := budget.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
		return true
	}
	return budget.Status.DesiredHealthy > 0 && budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy
}

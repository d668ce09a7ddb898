package verdict

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestABudgetHoldsALauncherAsKubeAPIServerDoes(t *testing.T) {
	always, healthy := policyv1.AlwaysAllow, policyv1.IfHealthyBudget
	for name, c := range map[string]struct {
		pod    func(*corev1.Pod)
		budget func(*policyv1.PodDisruptionBudget)
		held   bool
	}{
		"it allows one":                       {nil, nil, false},
		"it allows none":                      {nil, func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 0 }, true},
		"it is not processed yet":             {nil, func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }, true},
		"it allows none, the pod has not run": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, none, false},
		"it allows none, the pod has ended":   {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, none, false},
		"it allows none, the pod is going":    {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, none, false},
		"it allows none, the pod is not ready and enough others are": {notReady,
			func(b *policyv1.PodDisruptionBudget) { none(b); b.Status.CurrentHealthy = 2 }, false},
		"it allows none, the pod is not ready and too few others are": {notReady, none, true},
		"it allows none, but pods that are not ready may always go": {notReady,
			func(b *policyv1.PodDisruptionBudget) { none(b); b.Spec.UnhealthyPodEvictionPolicy = &always }, false},
		"it allows none, and pods that are not ready may go with a healthy budget only": {notReady,
			func(b *policyv1.PodDisruptionBudget) { none(b); b.Spec.UnhealthyPodEvictionPolicy = &healthy }, true},
		"it allows none and wants no pod healthy, the pod is not ready": {notReady,
			func(b *policyv1.PodDisruptionBudget) { none(b); b.Status.DesiredHealthy = 0 }, true},
		"it allows none, the pod says that it is not ready and enough others are": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		}, func(b *policyv1.PodDisruptionBudget) { none(b); b.Status.CurrentHealthy = 2 }, false},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "budget", Generation: 1},
			Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 1, DesiredHealthy: 2, CurrentHealthy: 1}}
		if c.pod != nil {
			c.pod(pod)
		}
		if c.budget != nil {
			c.budget(budget)
		}
		assert.Equal(t, c.held, HeldByBudget(pod, []*policyv1.PodDisruptionBudget{budget}) != "", name)
	}
}

func none(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 0 }

func notReady(p *corev1.Pod) { p.Status.Conditions = nil }

package workers

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"
	provider "sigs.k8s.io/cluster-api-provider-kubevirt/api/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file shows how the provider takes a marked worker down: pkg/kubevirt/machine.go:414-588 (v0.1.10), which
// controllers/kubevirtmachine_controller.go:276-312 lets it come to only while the VMI is ready and has an address.

// The provider means to drain the worker's node first. It looks for it under the name in the mark (machine.go:534),
// which is the infra node's, finds none, and goes on (machine.go:537-541).
func TestW2_AMarkedWorkersVMIIsDeletedUndrainedAndItsVMStartsAnother(t *testing.T) {
	g := newGroup(t, 1, fixed)
	worker := g.workers()[0]
	vm, vmi := g.vm(worker), g.vmi(worker)
	pod, _ := g.undrainable(worker)
	g.mark(worker)
	g.restarted(vmi)
	if g.vm(worker).UID != vm.UID {
		t.Error("the VM is another one")
	}
	if gone(t.Context(), pod) || g.node(worker).Spec.Unschedulable {
		t.Error("the worker's node was drained")
	}
}

func TestW2_OnlyAMarkedExternalAndReadyVMIIsDeleted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		strategy       kubevirtv1.EvictionStrategy
		marked, unwell bool
	}{
		"not marked":   {kubevirtv1.EvictionStrategyExternal, false, false},
		"not External": {kubevirtv1.EvictionStrategyLiveMigrateIfPossible, true, false},
		"not ready":    {kubevirtv1.EvictionStrategyExternal, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, 1, workload{c.strategy, corev1.ConditionTrue})
			worker := g.workers()[0]
			vmi := g.vmi(worker)
			if c.unwell {
				const patch = `[{"op":"replace","path":"/status/conditions/0/status","value":"False"}]`
				g.check(infra.Patch(t.Context(), vmi.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(patch))))
			}
			if c.marked {
				g.mark(worker)
			}
			g.looked(worker)
			if now := g.vmi(worker); now.UID != vmi.UID || now.DeletionTimestamp != nil {
				t.Error("the VMI was deleted")
			}
		})
	}
}

// A tenant may have a node with an infra node's name. It is that one which is drained in the worker's place.
func TestW2_ATenantsNodeWithTheInfraNodesNameIsDrainedInItsPlace(t *testing.T) {
	g := newGroup(t, 1, movable)
	worker := g.workers()[0]
	vmi := g.vmi(worker)
	namesake := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: infraNode(g.name)}}
	g.create(namesake)
	pod, allow := g.undrainable(namesake.Name)
	g.mark(worker)
	g.until("the namesake is cordoned", func() bool { return g.node(namesake.Name).Spec.Unschedulable })
	g.looked(worker)
	if now := g.vmi(worker); now.UID != vmi.UID || now.DeletionTimestamp != nil {
		t.Error("the VMI was deleted before the drain was done")
	}
	end, err := time.Parse(time.RFC3339, g.kubevirtMachine(worker).Annotations[provider.VmiDeletionGraceTime])
	if left := time.Until(end); err != nil || left < 9*time.Minute || left > 10*time.Minute {
		t.Errorf("the drain may take %v from now (%v), not ten minutes", left, err)
	}
	allow()
	g.restarted(vmi)
	if !gone(t.Context(), pod) || g.node(worker).Spec.Unschedulable {
		t.Error("another node than the namesake was drained")
	}
}

func TestW2_ADrainThatTakesTooLongIsGivenUp(t *testing.T) {
	g := newGroup(t, 1, movable)
	worker := g.workers()[0]
	vmi := g.vmi(worker)
	namesake := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: infraNode(g.name)}}
	g.create(namesake)
	pod, _ := g.undrainable(namesake.Name)
	g.mark(worker)
	g.until("the drain has begun", func() bool { return g.node(namesake.Name).Spec.Unschedulable })
	g.change(&provider.KubevirtMachine{ObjectMeta: g.called(worker)},
		`{"metadata":{"annotations":{"`+provider.VmiDeletionGraceTime+`":"2006-01-02T15:04:05Z"}}}`)
	g.restarted(vmi)
	if gone(t.Context(), pod) {
		t.Error("the drain was done after all")
	}
}

// Nothing in the provider's way to the deletion asks whether the VMI can migrate (machine.go:468-487), and KubeVirt
// itself migrates no External one (kubevirt v1.9.0, pkg/util/migrations/migrations.go:124-136).
func TestW5_AMarkedWorkerThatMigratesIsRestartedAndStaysHealthy(t *testing.T) {
	g := newGroup(t, 1, movable)
	g.checkHealth("100%")
	worker := g.workers()[0]
	vmi := g.vmi(worker)
	pod, _ := g.undrainable(worker)
	g.mark(worker)
	g.restarted(vmi)
	g.looked(worker)
	g.notFailed(worker)
	if gone(t.Context(), pod) {
		t.Error("the worker's node was drained")
	}
	if healthy := g.health().Status.CurrentHealthy; healthy != 1 || g.machine(worker).DeletionTimestamp != nil {
		t.Errorf("%d Machines are healthy, and this one is being deleted: %t", healthy, g.machine(worker).DeletionTimestamp != nil)
	}
}

// restarted waits until the provider has deleted a VMI and looked at it again, as it does while a guest shuts down (its own
// writes call it back), and then until another VMI runs.
func (g *group) restarted(vmi kubevirtv1.VirtualMachineInstance) {
	g.Helper()
	g.until("the VMI is deleted", func() bool { return g.vmi(vmi.Name).DeletionTimestamp != nil })
	g.looked(vmi.Name)
	g.endGuest(vmi.Name)
	g.until("another VMI runs", func() bool {
		now := g.vmi(vmi.Name)
		return now.UID != vmi.UID && now.Status.Phase == kubevirtv1.Running
	})
}

// endGuest lets go a VMI that is being deleted: the provider deletes it in the foreground, which holds it by a finalizer.
func (g *group) endGuest(name string) {
	g.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	g.check(client.IgnoreNotFound(infra.Patch(g.Context(), &kubevirtv1.VirtualMachineInstance{ObjectMeta: g.called(name)}, patch)))
}

// undrainable puts a pod on a node of the tenant's whose two disruption budgets make every eviction of it an error at
// once, until they are taken away.
func (g *group) undrainable(node string) (pod *corev1.Pod, allow func()) {
	g.Helper()
	labels := map[string]string{"pod": "undrainable"}
	pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: "undrainable", Labels: labels},
		Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "none"}},
			TerminationGracePeriodSeconds: ptr.To(int64(0)), // there is no kubelet to wait for
		},
	}
	g.create(pod)
	pod.Status.Phase = corev1.PodRunning // a pending one has no protection
	g.check(infra.Status().Update(g.Context(), pod))
	var budgets []*policyv1.PodDisruptionBudget
	for _, name := range []string{"one", "another"} {
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: g.called(name),
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
		}
		g.create(budget)
		budgets = append(budgets, budget)
	}
	return pod, func() {
		for _, budget := range budgets {
			g.check(infra.Delete(g.Context(), budget))
		}
	}
}

package workers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// This file is the stand-in for KubeVirt and for the guest, a worker of the tenant's cluster. It decides nothing: whether
// a VMI can migrate, the test says by the annotation below, and who marks or deletes a VMI, and how long its guest then
// takes to shut down, is not up to it.
//
//	VM with runStrategy Always, no VMI → a VMI of its template
//	VMI that is new                    → running and ready, and its guest a node of the tenant's cluster
//	VMI whose VM is gone               → deleted
//
// The tenant's cluster is the same API server: to the controllers it is what the secret with its kubeconfig points at.

// canMigrate on a VMI is the status of its condition LiveMigratable; without it there is no such condition yet.
const canMigrate = "workers/can-migrate"

// infraNode is where a VMI of the namespace runs. The platform's own nodes are not on this API server.
func infraNode(namespace string) string { return "infra-" + namespace }

type kubeVirt struct{ client.Client }

func standIn(_ context.Context, manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named("kubevirt").
		For(&kubevirtv1.VirtualMachine{}).
		Watches(&kubevirtv1.VirtualMachineInstance{}, &handler.EnqueueRequestForObject{}). // they bear the same name
		WithOptions(concurrent).
		Complete(kubeVirt{manager.GetClient()})
}

func (k kubeVirt) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var vm kubevirtv1.VirtualMachine
	if err := k.Get(ctx, request.NamespacedName, &vm); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	var vmi kubevirtv1.VirtualMachineInstance
	if err := k.Get(ctx, request.NamespacedName, &vmi); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	switch {
	case vmi.Name != "" && vm.Name == "":
		return ctrl.Result{}, client.IgnoreNotFound(k.Delete(ctx, &vmi))
	case vmi.Name != "" && vmi.Status.Phase == "":
		return ctrl.Result{}, k.boot(ctx, &vmi)
	case vmi.Name == "" && vm.Spec.RunStrategy != nil && *vm.Spec.RunStrategy == kubevirtv1.RunStrategyAlways:
		return ctrl.Result{}, k.Create(ctx, &kubevirtv1.VirtualMachineInstance{
			ObjectMeta: metav1.ObjectMeta{
				Name: vm.Name, Namespace: vm.Namespace,
				Labels: vm.Spec.Template.ObjectMeta.Labels, Annotations: vm.Spec.Template.ObjectMeta.Annotations,
			},
			Spec: vm.Spec.Template.Spec,
		})
	}
	return ctrl.Result{}, nil
}

// boot is what the guest's kubelet and virt-handler report.
func (k kubeVirt) boot(ctx context.Context, vmi *kubevirtv1.VirtualMachineInstance) error {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: vmi.Name},
		Spec:       corev1.NodeSpec{ProviderID: "kubevirt://" + vmi.Name},
	}
	if err := client.IgnoreAlreadyExists(k.Create(ctx, node)); err != nil {
		return err
	}
	vmi.Status.Phase = kubevirtv1.Running
	vmi.Status.NodeName = infraNode(vmi.Namespace)
	vmi.Status.Interfaces = []kubevirtv1.VirtualMachineInstanceNetworkInterface{{Name: "default", IP: "192.0.2.1"}}
	vmi.Status.Conditions = []kubevirtv1.VirtualMachineInstanceCondition{{
		Type: kubevirtv1.VirtualMachineInstanceReady, Status: corev1.ConditionTrue,
	}}
	if status, known := vmi.Annotations[canMigrate]; known {
		vmi.Status.Conditions = append(vmi.Status.Conditions, kubevirtv1.VirtualMachineInstanceCondition{
			Type: kubevirtv1.VirtualMachineInstanceIsMigratable, Status: corev1.ConditionStatus(status), Reason: "SaidByTheTest",
		})
	}
	return k.Update(ctx, vmi)
}

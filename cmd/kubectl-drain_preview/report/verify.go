package report

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// This file asks the cluster itself: a dry-run eviction of each launcher, which the eviction webhook and the budgets answer
// as they would a real one, and which changes nothing.

// Verified is what the cluster says of an eviction.
type Verified struct {
	Agreed bool `json:"agreed"`
	// Said is the cluster's answer.
	Said string `json:"said"`
	// Expected is the answer that follows from what was read, where the cluster's is another.
	Expected string `json:"expected,omitempty"`
}

// Cluster is what is asked of it.
type Cluster interface {
	// Evict asks for an eviction in a dry run.
	Evict(ctx context.Context, eviction *policyv1.Eviction) error
	// Launchers are those of a pod's VMI, the pod among them.
	Launchers(ctx context.Context, of *corev1.Pod) ([]corev1.Pod, error)
	VMI(ctx context.Context, namespace, name string) (*v1.VirtualMachineInstance, error)
}

// Verify asks about every launcher in the report. An error is one of the question, not an answer.
func (r *Report) Verify(ctx context.Context, cluster Cluster) error {
	for i := range r.VMs {
		vm := &r.VMs[i]
		if vm.launcher == nil {
			continue
		}
		verified, err := vm.verify(ctx, cluster)
		if err != nil {
			return fmt.Errorf("%s/%s cannot be verified: %w", vm.Namespace, vm.Name, err)
		}
		vm.Verified = verified
	}
	return nil
}

func (vm *VM) verify(ctx context.Context, cluster Cluster) (*Verified, error) {
	asked := vm.launcher.UID
	err := cluster.Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: vm.Namespace, Name: vm.Launcher},
		DeleteOptions: &metav1.DeleteOptions{
			DryRun: []string{metav1.DryRunAll}, Preconditions: &metav1.Preconditions{UID: &asked},
		},
	})
	if mayNotAsk(err) {
		return nil, err
	}
	code, said := int32(http.StatusCreated), "it may go"
	if err != nil {
		code, said = 0, err.Error()
		if status, isStatus := err.(apierrors.APIStatus); isStatus {
			code, said = status.Status().Code, status.Status().Message
		}
	}
	v := &Verified{Said: fmt.Sprintf("%d, %s", code, said), Agreed: true}
	wanted, part := vm.expected()
	if code != wanted || !strings.Contains(said, part) {
		v.Agreed, v.Expected = false, fmt.Sprintf("%d, %s", wanted, part)
		return v, nil
	}
	if changed, err := vm.changed(ctx, cluster); err != nil {
		return nil, err
	} else if changed != "" {
		v.Agreed, v.Expected = false, "that a dry run changes nothing; "+changed
	}
	return v, nil
}

// mayNotAsk tells a missing right from a webhook's refusal, which is an answer and may have the same status; only the right
// is one to a resource that the status names.
func mayNotAsk(err error) bool {
	if apierrors.IsUnauthorized(err) {
		return true
	}
	status, isStatus := err.(apierrors.APIStatus)
	return apierrors.IsForbidden(err) && isStatus && status.Status().Details != nil && status.Status().Details.Kind != ""
}

// expected is the status, and a part of the message, with which the cluster answers
// (pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go:86-183).
func (vm *VM) expected() (code int32, part string) {
	triggered := fmt.Sprintf("Eviction triggered evacuation of VMI %q", vm.Namespace+"/"+vm.Name)
	switch vm.eviction.Hold {
	case verdict.NotMigratable:
		return http.StatusTooManyRequests, fmt.Sprintf("VMI %s is configured with an eviction strategy but is not live-migratable", vm.Name)
	case verdict.Evacuating:
		return http.StatusTooManyRequests, "Evacuation in progress: " + triggered
	case verdict.Marked:
		return http.StatusTooManyRequests, "denied the request: " + triggered
	case verdict.TargetPod:
		return http.StatusTooManyRequests, "Eviction request for target Pod"
	case verdict.NoVMI:
		return http.StatusTooManyRequests, "kubevirt failed getting the vmi"
	}
	switch {
	case vm.budget == "":
		return http.StatusCreated, "it may go"
	case strings.Contains(vm.budget, "both select it"): // k8s.io/kubernetes v1.34.2, pkg/registry/core/pod/storage/eviction.go:224
		return http.StatusInternalServerError, "This pod has more than one PodDisruptionBudget"
	}
	return http.StatusTooManyRequests, "Cannot evict pod as it would violate the pod's disruption budget"
}

// changed says what is other than it was before the dry run.
func (vm *VM) changed(ctx context.Context, cluster Cluster) (string, error) {
	launchers, err := cluster.Launchers(ctx, vm.launcher)
	if err != nil {
		return "", err
	}
	still := slices.IndexFunc(launchers, func(pod corev1.Pod) bool { return pod.UID == vm.launcher.UID })
	other := slices.IndexFunc(launchers, func(pod corev1.Pod) bool {
		return !verdict.Ended(&pod) && !slices.ContainsFunc(vm.launchers, func(was *corev1.Pod) bool { return was.UID == pod.UID })
	})
	switch {
	case still < 0 && other < 0:
		return "its launcher is gone", nil
	case still < 0:
		return "its launcher was replaced by " + launchers[other].Name, nil
	case launchers[still].DeletionTimestamp != nil && vm.launcher.DeletionTimestamp == nil:
		return "its launcher is being deleted", nil
	case other >= 0:
		return "a second launcher was started, " + launchers[other].Name, nil
	case vm.vmi == nil:
		return "", nil
	}
	vmi, err := cluster.VMI(ctx, vm.Namespace, vm.Name)
	switch {
	case apierrors.IsNotFound(err):
		return "its VMI is gone", nil
	case err != nil:
		return "", err
	case vmi.UID != vm.vmi.UID:
		return "its VMI was replaced", nil
	case vmi.Status.EvacuationNodeName != vm.vmi.Status.EvacuationNodeName:
		return fmt.Sprintf("it is marked for evacuation from %q now", vmi.Status.EvacuationNodeName), nil
	}
	return "", nil
}

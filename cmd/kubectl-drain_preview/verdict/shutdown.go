package verdict

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
)

// This file is what follows when a VMI has been shut down: whether its VM starts another.

// afterShutdown is the outcome of a VM whose VMI ends, wherever it would start again, and why
// (syncRunStrategy, pkg/virt-controller/watch/vm/vm.go:970-1178).
func afterShutdown(s Situation) (Outcome, string) {
	if s.VM == nil {
		return withoutVM(s)
	}
	if s.VM.DeletionTimestamp != nil {
		return StaysOff, "its VM is being deleted"
	}
	if s.VMI.IsDecentralizedMigration() {
		return Unknown, "it is migrating to another cluster, which decides where it goes on"
	}
	if recovery := hasToBeRecovered(s); recovery != "" {
		return StaysOff, recovery
	}
	strategy, err := s.VM.RunStrategy()
	if err != nil {
		return Unknown, "its VM has both running and runStrategy, which KubeVirt refuses to act on"
	}
	// A VMI that is deleted is not there afterwards; one that is evicted ends, and stays until the VM's controller acts.
	deleted := s.VMI.DeletionTimestamp != nil
	asked := startAsked(s.VM)
	switch strategy {
	case v1.RunStrategyAlways:
		return Restarts, ""
	case v1.RunStrategyRerunOnFailure: // vm.go:1039-1086
		switch {
		case deleted && asked:
			return Restarts, "a start has been asked for"
		case deleted:
			return StaysOff, "runStrategy RerunOnFailure starts none in place of a VMI that was deleted"
		case beforeRunning(s.VMI):
			return Restarts, "a VMI that has not run yet ends as Failed"
		}
		return StaysOffIfClean, "if its guest shuts down cleanly"
	case v1.RunStrategyManual: // vm.go:1088-1113
		if deleted && asked {
			return Restarts, "a start has been asked for"
		}
		return StaysOff, "runStrategy Manual"
	case v1.RunStrategyOnce, v1.RunStrategyWaitAsReceiver: // vm.go:1140-1174
		if deleted {
			return Restarts, fmt.Sprintf("runStrategy %s starts another in place of a VMI that was deleted", strategy)
		}
		return StaysOff, "runStrategy " + string(strategy)
	case v1.RunStrategyHalted:
		if asked {
			return Restarts, "a start has been asked for"
		}
		return StaysOff, "runStrategy " + string(strategy)
	}
	return Unknown, fmt.Sprintf("what runStrategy %s does after a shutdown is not decided here", strategy)
}

// startAsked says whether the VM's next change of state is a start (hasStartRequest, vm.go).
func startAsked(vm *v1.VirtualMachine) bool {
	for _, request := range vm.Status.StateChangeRequests {
		if request.Action == v1.StartRequest {
			return true
		}
	}
	return false
}

// hasToBeRecovered says why the VM's next VMI would not start from the volumes that it runs on: while they are migrated, its
// template names the new ones, which are not complete, and a VM whose volume migration was broken off is not started
// (vm.go:1268-1271, 1605-1655).
func hasToBeRecovered(s Situation) string {
	for _, condition := range s.VM.Status.Conditions {
		if condition.Type == v1.VirtualMachineManualRecoveryRequired && condition.Status == corev1.ConditionTrue {
			return "its volume migration was broken off, and it is not started until its volumes are reassigned"
		}
	}
	state := s.VM.Status.VolumeUpdateState
	if state == nil || state.VolumeMigrationState == nil || len(s.VMI.Status.MigratedVolumes) == 0 {
		return ""
	}
	return "its volumes are being migrated, and it is not started from them until they are reassigned"
}

// withoutVM is afterShutdown for a VMI whose owner is no VM that is known.
func withoutVM(s Situation) (Outcome, string) {
	owner := metav1.GetControllerOf(s.VMI)
	switch {
	case owner == nil:
		return StaysOff, "no VM owns it, so nothing starts it again"
	case owner.Kind == "VirtualMachine" && s.Unknown.VM != "":
		return Unknown, "whether it starts again: " + s.Unknown.VM
	case owner.Kind == "VirtualMachine":
		return StaysOff, "its VM is gone"
	case owner.Kind == "VirtualMachineInstanceReplicaSet": // pkg/virt-controller/watch/replicaset/replicaset.go:223-230
		return Restarts, "its VirtualMachineInstanceReplicaSet starts another in its place"
	}
	return Unknown, fmt.Sprintf("whether it starts again is up to its owner, a %s", owner.Kind)
}

// beforeRunning says whether the guest has not started. Such a VMI fails when its pod goes
// (pkg/virt-controller/watch/vmi/lifecycle.go:352-353, 442-458 and 516-529).
func beforeRunning(vmi *v1.VirtualMachineInstance) bool {
	switch vmi.Status.Phase {
	case v1.VmPhaseUnset, v1.Pending, v1.Scheduling, v1.Scheduled:
		return true
	}
	return false
}

// elsewhere says where a VM that starts again while its node is drained does so.
func elsewhere(outcome Outcome, why string, place Place) (Outcome, string) {
	switch {
	case outcome != Restarts && outcome != StaysOffIfClean:
		return outcome, why
	case place.Unknown != "":
		return Unknown, "whether another node can take it: " + place.Unknown
	case place.Bound == "":
		return outcome, why
	case outcome == Restarts:
		return RestartsWithNode, place.Bound
	}
	return outcome, join(why, "otherwise it starts when there is a place again: "+place.Bound)
}

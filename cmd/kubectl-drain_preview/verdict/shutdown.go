package verdict

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
)

// This file is what follows when a VMI has been shut down: whether its VM starts another.

// afterShutdown is the fate of a VM whose VMI ends, wherever it would start again, and why
// (syncRunStrategy, pkg/virt-controller/watch/vm/vm.go:970-1178).
func afterShutdown(s Situation) (Fate, string) {
	if s.VM == nil {
		return withoutVM(s)
	}
	if s.VM.DeletionTimestamp != nil {
		return StaysOff, "its VM is being deleted"
	}
	if s.VMI.IsDecentralizedMigration() {
		return Unknown, "it is migrating to another cluster, which decides where it goes on"
	}
	strategy, err := s.VM.RunStrategy()
	if err != nil {
		return Unknown, "its VM has both running and runStrategy, which KubeVirt refuses to act on"
	}
	switch strategy {
	case v1.RunStrategyAlways:
		return Restarts, ""
	case v1.RunStrategyRerunOnFailure:
		if beforeRunning(s.VMI) {
			return Restarts, "a VMI that has not run yet ends as Failed"
		}
		return StaysOffIfClean, ""
	case v1.RunStrategyManual, v1.RunStrategyOnce, v1.RunStrategyHalted:
		return StaysOff, "runStrategy " + string(strategy)
	}
	return Unknown, fmt.Sprintf("what runStrategy %s does after a shutdown is not decided here", strategy)
}

// withoutVM is afterShutdown for a VMI whose owner is no VM that is known.
func withoutVM(s Situation) (Fate, string) {
	owner := metav1.GetControllerOf(s.VMI)
	switch {
	case owner == nil:
		return StaysOff, "no VM owns it, so nothing starts it again"
	case owner.Kind == "VirtualMachine" && s.Gaps.VM != "":
		return Unknown, "whether it starts again: " + s.Gaps.VM
	case owner.Kind == "VirtualMachine":
		return StaysOff, "its VM is gone"
	case owner.Kind == "VirtualMachineInstanceReplicaSet": // pkg/virt-controller/watch/replicaset/replicaset.go:223-230
		return Restarts, "its VirtualMachineInstanceReplicaSet starts another in its place"
	}
	return Unknown, fmt.Sprintf("whether it starts again is up to its owner, a %s", owner.Kind)
}

// beforeRunning says whether the guest has not started. Such a VMI fails when its pod goes
// (pkg/virt-controller/watch/vmi/lifecycle.go:352-353, 440-456 and 516-529).
func beforeRunning(vmi *v1.VirtualMachineInstance) bool {
	switch vmi.Status.Phase {
	case v1.VmPhaseUnset, v1.Pending, v1.Scheduling, v1.Scheduled:
		return true
	}
	return false
}

// elsewhere says where a VM that starts again while its node is drained does so.
func elsewhere(fate Fate, why string, place Place) (Fate, string) {
	switch {
	case fate != Restarts && fate != StaysOffIfClean:
		return fate, why
	case place.Gap != "":
		return Unknown, "whether another node can take it: " + place.Gap
	case place.Bound == "":
		return fate, why
	case fate == Restarts:
		return RestartsWithNode, place.Bound
	}
	return fate, "otherwise it starts when this node is back: " + place.Bound
}

package verdict

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
)

// This file is the verdict on a drain: kubectl drain evicts every pod of the node, and again while the answer is a 429.

// Drain says what a drain of the node of the situation's pods does to the VM.
func Drain(p Platform, s Situation) Drained {
	switch {
	case s.Gaps.Pods != "":
		return Drained{Unknown, s.Gaps.Pods, NoTell, ByGap}
	case s.VMI == nil:
		return Drained{Blocks, "its VMI is gone, and the eviction webhook denies what it cannot find", Waits, ByLeftover}
	case s.VMI.IsFinal():
		return Drained{Nothing, "it has ended", Ends, NoCause}
	case s.Launcher == nil && len(s.Hotplug) > 0:
		return Drained{Held, "hotplug pod " + s.Hotplug[0].Name + " is here, and its launcher on another node", Waits, ByHotplug}
	case s.Launcher == nil || Ended(s.Launcher):
		return Drained{Nothing, "it has no launcher here", Ends, NoCause}
	case s.VMI.Spec.EvictionStrategy == nil && p.Gap != "":
		return Drained{Unknown, "it carries no strategy, and the cluster's is not known: " + p.Gap, NoTell, ByGap}
	case s.Launcher.DeletionTimestamp != nil || s.VMI.DeletionTimestamp != nil:
		return leaving(s)
	}
	answer := Evict(p, s.VMI, s.Launcher)
	away := s.VMI.Status.NodeName != "" && s.VMI.Status.NodeName != s.Launcher.Spec.NodeName
	switch {
	case answer.Hold == NotMigratable:
		return stuck(s)
	case answer.Allowed() && away:
		return Drained{Nothing, "it was migrating to this node, which fails; it runs on where it is", Ends, NoCause}
	case answer.Allowed():
		return shutDown(s)
	case away:
		return arriving(p, s)
	case p.Carried(s.VMI) == v1.EvictionStrategyExternal:
		return leftToOwner(s)
	}
	return evacuated(s)
}

// shutDown is for a launcher that the webhook lets go.
func shutDown(s Situation) Drained {
	if s.Gaps.Budgets != "" {
		return Drained{Unknown, s.Gaps.Budgets, NoTell, ByGap}
	}
	if held := heldByBudget(s.Launcher, s.Budgets); held != "" {
		return Drained{Blocks, held, Waits, ByBudget}
	}
	return leaving(s)
}

// leaving is for a VMI that is on its way down.
func leaving(s Situation) Drained {
	fate, why := afterShutdown(s)
	fate, why = elsewhere(fate, why, s.Restarted)
	return Drained{fate, why, Ends, NoCause}
}

// stuck is for a VMI that carries LiveMigrate and cannot migrate.
func stuck(s Situation) Drained {
	if beforeRunning(s.VMI) {
		return Drained{Unknown, fmt.Sprintf("it is %s; whether it can migrate is known once it runs", phase(s.VMI)), NoTell, ByGap}
	}
	return Drained{Blocks, "it carries LiveMigrate and cannot migrate", Waits, ByStrategy}
}

// evacuated is for a VMI that KubeVirt moves away by a migration.
func evacuated(s Situation) Drained {
	// A mark for another node is of an evacuation that is over: it answers each eviction, and nobody acts on it
	// (pkg/virt-controller/watch/drain/evacuation/evacuation.go:326-333, 412-414).
	if mark := s.VMI.Status.EvacuationNodeName; mark != "" && mark != s.VMI.Status.NodeName {
		return Drained{Blocks, "it is still marked for an evacuation from " + mark, Waits, ByStaleMark}
	}
	switch {
	case s.Migrated.Gap != "":
		return Drained{Unknown, "whether another node can take it: " + s.Migrated.Gap, NoTell, ByGap}
	case s.Migrated.Bound != "":
		return Drained{Blocks, "it can migrate, but to no other node: " + s.Migrated.Bound, Waits, ByPlace}
	case s.Migrating:
		return Drained{Migrates, "a migration is under way", Ends, NoCause}
	case s.VMI.IsMarkedForEviction():
		return Drained{Migrates, "its evacuation is under way", Ends, NoCause}
	}
	return Drained{Migrates, "", Ends, NoCause}
}

// arriving is for a VMI that a migration brings to the node: what a drain does to it once it is there.
func arriving(p Platform, s Situation) Drained {
	s.VMI = s.VMI.DeepCopy()
	s.VMI.Status.NodeName = s.Launcher.Spec.NodeName
	s.VMI.Status.EvacuationNodeName = "" // pkg/virt-handler/migration-target.go:303
	s.Migrating = false
	there := Drain(p, s)
	there.Why = join("it arrives by a migration first", there.Why)
	return there
}

// tenantWorker is the label of VMIs that Cluster API's KubeVirt provider owns (v0.1.10, api/v1alpha1/kubevirtcluster_types.go:32).
const tenantWorker = "capk.cluster.x-k8s.io/kubevirt-machine-name"

// leftToOwner is for a VMI that is marked for its owner to act on. The one owner that is known to act is Cluster API's
// provider: it deletes a marked worker's VMI (pkg/kubevirt/machine.go:414-487), but leaves one alone that can migrate and is
// not ready or has no address (controllers/kubevirtmachine_controller.go:260-306). tests/workers proves it.
func leftToOwner(s Situation) Drained {
	_, worker := s.VMI.Labels[tenantWorker]
	switch {
	case !worker || s.VMI.Spec.EvictionStrategy == nil:
		return Drained{OwnerDecides, "External: the drain waits until its owner acts", Waits, ByOwner}
	case s.VMI.IsMigratable() && !wellKnown(s.VMI):
		return Drained{OwnerDecides, "Cluster API's provider leaves it alone while it is not ready or has no address", Waits, ByOwner}
	}
	return Drained{OwnerDecides, "Cluster API's provider restarts it", Ends, NoCause}
}

func wellKnown(vmi *v1.VirtualMachineInstance) bool {
	if len(vmi.Status.Interfaces) == 0 || vmi.Status.Interfaces[0].IP == "" {
		return false
	}
	for _, condition := range vmi.Status.Conditions {
		if condition.Type == v1.VirtualMachineInstanceReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func phase(vmi *v1.VirtualMachineInstance) string {
	if vmi.Status.Phase == v1.VmPhaseUnset {
		return "new"
	}
	return string(vmi.Status.Phase)
}

func join(first, second string) string {
	if second == "" {
		return first
	}
	return first + "; " + second
}

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
	case s.Unknown.Pods != "":
		return unknown(s.Unknown.Pods)
	case s.VMI == nil:
		return Drained{Blocks, "its VMI is gone, and the eviction webhook denies what it cannot find", Waits, ByLeftover}
	case s.Launcher == nil && len(s.Hotplug) > 0 && !s.VMI.IsFinal():
		return Drained{Held, "hotplug pod " + s.Hotplug[0].Name + " is here, and its launcher on another node", Waits, ByHotplug}
	case s.Launcher == nil || Ended(s.Launcher):
		return untouched(s)
	case s.VMI.Spec.EvictionStrategy == nil && p.Unknown != "":
		return unknown("it carries no strategy, and the cluster's is not known: " + p.Unknown)
	}
	answer := Evict(p, s.VMI, s.Launcher)
	away := s.VMI.Status.NodeName != "" && s.VMI.Status.NodeName != s.Launcher.Spec.NodeName
	switch {
	case s.Launcher.DeletionTimestamp != nil || s.VMI.DeletionTimestamp != nil || s.VMI.IsFinal():
		return gone(s)
	case answer.Hold == NotMigratable:
		return stuck(s)
	case answer.Allowed() && away:
		return aside(s)
	case answer.Allowed():
		return shutDown(s)
	case away:
		return arriving(p, s)
	case p.Carried(s.VMI) == v1.EvictionStrategyExternal:
		return leftToOwner(s)
	}
	return moves(p, s, true)
}

func unknown(why string) Drained { return Drained{Unknown, why, NoTell, ByGap} }

func untouched(s Situation) Drained {
	if s.VMI.IsFinal() {
		return Drained{Nothing, "it has ended", Ends, NoCause}
	}
	return Drained{Nothing, "it has no launcher here", Ends, NoCause}
}

// aside is for a migration's target that the webhook lets go.
func aside(s Situation) Drained {
	if held := s.held(); held != (Drained{}) {
		return held
	}
	return Drained{Nothing, "it was migrating to this node, which fails; it runs on where it is", Ends, NoCause}
}

// shutDown is for a launcher that the webhook lets go.
func shutDown(s Situation) Drained {
	if ready, _ := s.nodeReady(); !ready {
		return gone(s)
	}
	if held := s.held(); held != (Drained{}) {
		return held
	}
	return gone(s)
}

// held is why kube-apiserver does not let a launcher go that the webhook lets go; the zero value lets it.
func (s Situation) held() Drained {
	if s.Unknown.Budgets != "" && s.Launcher.Status.Phase != corev1.PodPending {
		return unknown(s.Unknown.Budgets)
	}
	if held := HeldByBudget(s.Launcher, s.Budgets); held != "" {
		return Drained{Blocks, held, Waits, ByBudget}
	}
	return Drained{}
}

// gone is for a launcher that is deleted, or about to be.
func gone(s Situation) Drained {
	// Nobody but the kubelet ends a pod, and a VMI ends with its pod (pkg/virt-controller/watch/node/node.go:247-291).
	if ready, why := s.nodeReady(); why != "" {
		return unknown(why)
	} else if !ready {
		return Drained{Blocks, "its node is not ready: nothing ends its launcher there, which stays terminating", Waits, ByNode}
	}
	if s.VMI.IsFinal() {
		return untouched(s)
	}
	outcome, why := afterShutdown(s)
	outcome, why = elsewhere(outcome, why, s.Restarted)
	if outcome == Unknown {
		return unknown(why)
	}
	return Drained{outcome, why, Ends, NoCause}
}

// nodeReady says whether the kubelet of the launcher's node is there.
func (s Situation) nodeReady() (ready bool, unknown string) {
	if s.Node == nil {
		return true, s.Unknown.Nodes
	}
	for _, condition := range s.Node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue, ""
		}
	}
	return true, ""
}

// stuck is for a VMI that carries LiveMigrate and cannot migrate.
func stuck(s Situation) Drained {
	if beforeRunning(s.VMI) {
		return unknown(fmt.Sprintf("it is %s; whether it can migrate is known once it runs", phase(s.VMI)))
	}
	return Drained{Blocks, "it carries LiveMigrate and cannot migrate", Waits, ByStrategy}
}

// arriving is for a VMI that a migration brings to the node: what a drain does to it once it is there. Until then its
// target cannot be evicted (pod-eviction-admitter.go:169-171).
func arriving(p Platform, s Situation) Drained {
	if s.migration() == nil && len(s.Launchers) > 1 {
		return Drained{Nothing, "a launcher of it is left here that no migration brings; no eviction of it is let through while it is there", Waits, ByLeftover}
	}
	if stays := moves(p, s, false); stays.End == Waits && stays.Cause != ByPlace {
		return Drained{Nothing, "its migration to this node does not go on: " + stays.Why + "; until it does, its target is not let go", Waits, stays.Cause}
	}
	s.VMI = s.VMI.DeepCopy()
	s.VMI.Status.NodeName = s.Launcher.Spec.NodeName
	s.VMI.Status.EvacuationNodeName = "" // pkg/virt-handler/migration-target.go:303
	s.VMI.Status.MigrationState = nil
	s.Migrations, s.Launchers = nil, []*corev1.Pod{s.Launcher}
	s.Unknown.Migrations = ""
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
	if ready, _ := s.nodeReady(); !ready {
		return Drained{Blocks, "its node is not ready: nothing ends its launcher there, which stays terminating", Waits, ByNode}
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

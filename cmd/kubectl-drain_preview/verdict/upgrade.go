package verdict

import (
	"fmt"

	v1 "kubevirt.io/api/core/v1"
)

// This file is the verdict on an upgrade of KubeVirt, after which every VMI's launcher is outdated: KubeVirt's workload
// updater migrates what it can and asks for the eviction of the rest
// (getUpdateData, pkg/virt-controller/watch/workload-updater/workload-updater.go:366-429).

// Upgrade says what an upgrade of KubeVirt does to the VM. Which batch it is in depends on all the others: see Pace.
func Upgrade(p Platform, s Situation) Upgraded {
	switch vmi := s.VMI; {
	case vmi == nil:
		return Upgraded{Nothing, "its VMI is gone", false}
	case p.Unknown != "":
		return Upgraded{Unknown, p.Unknown, false}
	case vmi.IsFinal():
		return Upgraded{Nothing, "it has ended", false}
	case vmi.DeletionTimestamp != nil:
		return Upgraded{Nothing, "it is being shut down", false}
	case !p.LiveMigrates && !p.Evicts:
		return Upgraded{Nothing, "the CR has no workloadUpdateMethods, so it stays on the old launcher", false}
	case !vmi.IsRunning():
		return Upgraded{Unknown, fmt.Sprintf("it is %s; whether it can migrate is known once it runs", phase(vmi)), false}
	case (p.LiveMigrates || s.migrating()) && vmi.IsMigratable():
		return moved(p, s, false)
	case s.migrating(): // workload-updater.go:411-415
		return Upgraded{Refused, "a migration of it has not ended, and it is left alone until it has", false}
	case p.LiveMigrates && len(vmi.Status.MigratedVolumes) > 0:
		return Upgraded{Unknown, "its volumes are being migrated, and it with them if they can be", false}
	case !p.Evicts:
		return Upgraded{Nothing, "it cannot migrate, and the CR does not evict: it stays on the old launcher", false}
	case p.BatchSize <= 0:
		return Upgraded{Nothing, "batchEvictionSize evicts nobody: it stays on the old launcher", false}
	}
	return evicted(p, s)
}

// evicted is for a VMI whose launcher the updater evicts, as kubectl drain does.
func evicted(p Platform, s Situation) Upgraded {
	if s.Unknown.Pods != "" {
		return Upgraded{Unknown, s.Unknown.Pods, true}
	}
	// The updater asks for the launcher on the VMI's own node (CurrentVMIPod, pkg/controller/controller.go:323-358).
	if s.Launcher == nil || s.Launcher.Spec.NodeName != s.VMI.Status.NodeName {
		return Upgraded{Nothing, "it has no launcher", false}
	}
	switch Evict(p, s.VMI, s.Launcher).Hold {
	case NotMigratable:
		return Upgraded{Refused, "it carries LiveMigrate and cannot migrate", true}
	case Marked, Evacuating:
		if p.Carried(s.VMI) == v1.EvictionStrategyExternal {
			return Upgraded{OwnerDecides, "External: it is marked, and stays on the old launcher until its owner acts", true}
		}
		return moved(p, s, true) // the eviction marks it, and the evacuation migrates it
	}
	if !s.homeReady() {
		return Upgraded{Refused, "its node is not ready: nothing ends its launcher there, which stays terminating", true}
	}
	if s.Unknown.Budgets != "" {
		return Upgraded{Unknown, s.Unknown.Budgets, true}
	}
	if held := HeldByBudget(s.Launcher, s.Budgets); held != "" {
		return Upgraded{Refused, held, true}
	}
	outcome, why := afterShutdown(s) // its node stays, so it may start there again
	return Upgraded{outcome, why, true}
}

// moved is for a VMI that is migrated to a new launcher, which never is on the node it leaves
// (pkg/virt-controller/watch/migration/migration.go:889-910).
func moved(p Platform, s Situation, inBatch bool) Upgraded {
	switch drained := moves(p, s, inBatch); drained.End {
	case Waits:
		return Upgraded{Refused, drained.Why, inBatch}
	default:
		return Upgraded{drained.Outcome, drained.Why, inBatch}
	}
}

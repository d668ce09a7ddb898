package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
)

// This file is whether a VMI's migration is made, starts and finds a place, as far as the cluster shows it: what the
// evacuation controller (pkg/virt-controller/watch/drain/evacuation/evacuation.go) and the migration controller
// (pkg/virt-controller/watch/migration/migration.go) look at.

// moves says how a migration of the VMI goes. An evacuation is made by the drain; without, by the workload updater.
func moves(p Platform, s Situation, evacuation bool) Drained {
	blocks := func(cause Cause, format string, args ...any) Drained {
		return Drained{Blocks, fmt.Sprintf(format, args...), Waits, cause}
	}
	under := s.migration()
	target := s.target(under)
	running := saysItMigrates(s.VMI)
	unread := ""
	if s.Node == nil {
		unread = s.Unknown.Nodes
	}
	switch {
	case !s.homeReady():
		return blocks(ByNode, "its node is not ready: nothing migrates from it, and nothing ends its launcher there")
	case p.Unknown != "":
		return unknown(p.Unknown)
	// A mark for another node is of an evacuation that is over: it answers each eviction, and nobody acts on it
	// (evacuation.go:326-333, 412-414).
	case evacuation && under == nil && s.staleMark() && cmp.Or(s.Unknown.Migrations, unread) != "":
		return unknown(cmp.Or(s.Unknown.Migrations, unread))
	case evacuation && under == nil && s.staleMark() && !p.empties(s):
		return blocks(ByStaleMark, "it is still marked for an evacuation from %s", s.VMI.Status.EvacuationNodeName)
	case p.Migrations <= 0 && target == nil: // migration.go:1369
		return blocks(ByLimit, "parallelMigrationsPerCluster is %d, so no migration ever starts", p.Migrations)
	case p.Outbound <= 0 && target == nil: // migration.go:1380
		return blocks(ByLimit, "parallelOutboundMigrationsPerNode is %d, so no migration ever starts", p.Outbound)
	case under != nil && hasCondition(under, v1.VirtualMachineInstanceMigrationRejectedByResourceQuota) && target == nil: // migration.go:766-772
		return blocks(ByQuota, "a ResourceQuota refuses the target of its migration %s", under.Name)
	case len(s.VMI.Spec.UtilityVolumes) > 0 && !begun(under): // migration.go:1665-1715
		return blocks(ByVolume, "a migration waits until its utility volume %s is detached", s.VMI.Spec.UtilityVolumes[0].Name)
	case under != nil && target != nil && unschedulable(target): // migration.go:1501-1516
		return blocks(ByTarget, "the target of its migration, %s, is unschedulable%s", target.Name, saying(target))
	case under != nil && target != nil && pending(target):
		return starting(s, target)
	case len(s.Launchers) > 1 && (under == nil || target == nil): // evacuation.go:466-469, migration.go:1354-1358
		second := s.second()
		if second.DeletionTimestamp != nil {
			return blocks(ByLeftover, "no migration is made while its other launcher, %s, is terminating", second.Name)
		}
		return blocks(ByLeftover, "no migration is made while it has a second launcher, %s", second.Name)
	case running && under == nil && cmp.Or(s.Unknown.Migrations, unread) != "":
		return unknown(cmp.Or(s.Unknown.Migrations, unread))
	case running && under == nil && !p.empties(s): // evacuation.go:326-333, workload-updater.go:411-415
		return blocks(ByMigration, "its status says since %s that it migrates, and no migration of it is there; while it says so, no other is made",
			s.VMI.Status.MigrationState.StartTimestamp.UTC().Format(time.RFC3339))
	case under != nil && target != nil:
		return Drained{Migrates, cmp.Or(s.backupInTheWay(under, evacuation), "a migration is under way"), Ends, NoCause}
	case s.Migrated.Bound != "":
		return blocks(ByPlace, "it can migrate, but nowhere: %s", s.Migrated.Bound)
	case s.Unknown.Migrations != "":
		return unknown(s.Unknown.Migrations)
	}
	if failed, last := s.failures(); failed > 0 { // migration.go:1049-1112
		return Drained{Unknown, fmt.Sprintf("its last %s%s; the next is tried after a pause that doubles", count(failed, "migration has failed", "migrations have failed"), last), NoTell, ByMigration}
	}
	return s.finds(p, under, evacuation)
}

// finds is for a VMI whose migration can start: whether its target finds a place.
func (s Situation) finds(p Platform, under *v1.VirtualMachineInstanceMigration, evacuation bool) Drained {
	why := s.backupInTheWay(under, evacuation)
	switch {
	case s.Migrated.Unknown != "":
		return unknown("whether another node takes it: " + s.Migrated.Unknown)
	case why != "":
	case under != nil:
		why = "a migration is under way"
	case p.empties(s):
		why = fmt.Sprintf("its evacuation is under way, as its node has the taint %s", p.DrainTaint)
	case s.VMI.IsMarkedForEviction():
		why = "its evacuation is under way"
	}
	return Drained{Migrates, why, Ends, NoCause}
}

// empties says whether KubeVirt evacuates the VMI because its node has the taint of an older way to drain. It then asks
// neither for a mark nor for a migration that the VMI's status tells of (evacuation.go:416-424, 451-453).
func (p Platform) empties(s Situation) bool {
	switch p.Carried(s.VMI) {
	case v1.EvictionStrategyLiveMigrate, v1.EvictionStrategyLiveMigrateIfPossible:
		return s.Node != nil && s.Node.Name == s.VMI.Status.NodeName && slices.ContainsFunc(s.Node.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == p.DrainTaint && t.Effect == corev1.TaintEffectNoSchedule
		})
	}
	return false
}

// begun says whether a migration is past the phase in which a backup or a utility volume holds it, target or not
// (migration.go:749-756).
func begun(migration *v1.VirtualMachineInstanceMigration) bool {
	return migration != nil && migration.Status.Phase != v1.MigrationPhaseUnset && migration.Status.Phase != v1.MigrationPending
}

// backupInTheWay is what a migration that has not begun does about the VMI's backup (migration.go:1581-1633), or "".
func (s Situation) backupInTheWay(under *v1.VirtualMachineInstanceMigration, evacuation bool) string {
	backup := backupOf(s.VMI)
	switch {
	case backup == "" || begun(under):
		return ""
	case s.abortsBackup(under, evacuation):
		return fmt.Sprintf("its migration aborts its backup %s", backup)
	}
	return fmt.Sprintf("its migration waits for its backup %s to end", backup)
}

// homeReady says whether the kubelet of the node that the VMI runs on is there, as far as it is known.
func (s Situation) homeReady() bool {
	if s.Node == nil || s.Node.Name != s.VMI.Status.NodeName {
		return true
	}
	ready, _ := s.nodeReady()
	return ready
}

func (s Situation) staleMark() bool {
	return s.VMI.IsMarkedForEviction() && s.VMI.Status.EvacuationNodeName != s.VMI.Status.NodeName
}

func saysItMigrates(vmi *v1.VirtualMachineInstance) bool {
	state := vmi.Status.MigrationState
	return state != nil && state.StartTimestamp != nil && state.EndTimestamp == nil
}

// migrating says whether the workload updater takes the VMI for one that migrates.
func (s Situation) migrating() bool { return saysItMigrates(s.VMI) || s.migration() != nil }

// migration is the one that has not ended, or nil.
func (s Situation) migration() *v1.VirtualMachineInstanceMigration {
	for _, migration := range s.Migrations {
		if !migration.IsFinal() {
			return migration
		}
	}
	return nil
}

// target is the launcher to which a migration goes (migration.go:1970-1986).
func (s Situation) target(migration *v1.VirtualMachineInstanceMigration) *corev1.Pod {
	if migration == nil {
		return nil
	}
	for _, pod := range s.Launchers {
		if pod.Labels[v1.MigrationJobLabel] == string(migration.UID) && migration.UID != "" {
			return pod
		}
	}
	return nil
}

// second is a launcher other than the one that the VMI runs in.
func (s Situation) second() *corev1.Pod {
	for _, pod := range s.Launchers {
		if pod.Spec.NodeName != s.VMI.Status.NodeName {
			return pod
		}
	}
	oldest := func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }
	return slices.MaxFunc(s.Launchers, oldest)
}

func unschedulable(pod *corev1.Pod) bool {
	return pending(pod) && pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

func pending(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodPending }

// saying is what the scheduler says of a pod.
func saying(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Message != "" {
			return ": " + strings.TrimSuffix(c.Message, ".")
		}
	}
	return ""
}

// slow is how long a target may take to start: KubeVirt gives up after it where it cannot be scheduled
// (migration.go:86, defaultUnschedulablePendingTimeoutSeconds).
const slow = 5 * time.Minute

// starting is for a migration whose target has not started yet.
func starting(s Situation, target *corev1.Pod) Drained {
	if s.Now.IsZero() || target.CreationTimestamp.IsZero() || s.Now.Sub(target.CreationTimestamp.Time) < slow {
		return Drained{Unknown, fmt.Sprintf("the target of its migration, %s, has not started yet", target.Name), NoTell, ByTarget}
	}
	return Drained{Blocks, fmt.Sprintf("the target of its migration, %s, has not started in %s", target.Name,
		s.Now.Sub(target.CreationTimestamp.Time).Round(time.Minute)), Waits, ByTarget}
}

func hasCondition(migration *v1.VirtualMachineInstanceMigration, wanted v1.VirtualMachineInstanceMigrationConditionType) bool {
	return slices.ContainsFunc(migration.Status.Conditions, func(c v1.VirtualMachineInstanceMigrationCondition) bool {
		return c.Type == wanted && c.Status == corev1.ConditionTrue
	})
}

// failures are how many of the last migrations have failed in a row, and why the last one did.
func (s Situation) failures() (n int, last string) {
	ended := slices.DeleteFunc(slices.Clone(s.Migrations), func(m *v1.VirtualMachineInstanceMigration) bool {
		return !m.IsFinal() || m.DeletionTimestamp != nil
	})
	slices.SortFunc(ended, func(a, b *v1.VirtualMachineInstanceMigration) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(b.Name, a.Name))
	})
	for _, migration := range ended {
		if migration.Status.Phase != v1.MigrationFailed {
			break
		}
		if state := migration.Status.MigrationState; n == 0 && state != nil && state.FailureReason != "" {
			last = ": " + state.FailureReason
		}
		n++
	}
	return n, last
}

// backupOf is the backup of a VMI that is under way (pkg/util/migrations/migrations.go:99-105).
func backupOf(vmi *v1.VirtualMachineInstance) string {
	if vmi.Status.ChangedBlockTracking == nil || vmi.Status.ChangedBlockTracking.BackupStatus == nil ||
		vmi.Status.ChangedBlockTracking.BackupStatus.Completed {
		return ""
	}
	return vmi.Status.ChangedBlockTracking.BackupStatus.BackupName
}

// abortsBackup says whether the VMI's migration, which is yet to be made if there is none, is of the priority that does not
// wait for a backup (evacuation.go:350-353, workload-updater.go:320-330 and 583-587).
func (s Situation) abortsBackup(under *v1.VirtualMachineInstanceMigration, evacuation bool) bool {
	switch {
	case under != nil:
		return under.Spec.Priority != nil && *under.Spec.Priority == v1.PrioritySystemCritical
	case evacuation:
		return s.VMI.Annotations[v1.EvictionSourceAnnotation] != "descheduler"
	}
	return !slices.ContainsFunc(s.VMI.Status.Conditions, func(c v1.VirtualMachineInstanceCondition) bool {
		switch c.Type {
		case v1.VirtualMachineInstanceVCPUChange:
			return true
		case v1.VirtualMachineInstanceMemoryChange, v1.VirtualMachineInstanceMigrationRequired, v1.VirtualMachineInstanceVolumesChange:
			return c.Status == corev1.ConditionTrue
		}
		return false
	})
}

func count(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf("%d %s", n, many)
}

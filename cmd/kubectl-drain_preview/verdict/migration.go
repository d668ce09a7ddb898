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
	state := s.VMI.Status.MigrationState
	running := state != nil && state.StartTimestamp != nil && state.EndTimestamp == nil
	switch {
	case p.Unknown != "":
		return unknown(p.Unknown)
	case p.Migrations <= 0: // migration.go:1371
		return blocks(ByLimit, "parallelMigrationsPerCluster is %d, so no migration ever starts", p.Migrations)
	case p.Outbound <= 0: // migration.go:1381
		return blocks(ByLimit, "parallelOutboundMigrationsPerNode is %d, so no migration ever starts", p.Outbound)
	case under != nil && hasCondition(under, v1.VirtualMachineInstanceMigrationRejectedByResourceQuota) && target == nil: // migration.go:766-772
		return blocks(ByQuota, "a ResourceQuota refuses the target of its migration %s", under.Name)
	case len(s.VMI.Spec.UtilityVolumes) > 0 && (under == nil || target == nil): // migration.go:1665-1715
		return blocks(ByVolume, "a migration waits until its utility volume %s is detached", s.VMI.Spec.UtilityVolumes[0].Name)
	case under != nil && target != nil && unschedulable(target): // migration.go:1501-1516
		return blocks(ByTarget, "the target of its migration, %s, is unschedulable%s", target.Name, saying(target))
	case under != nil && target != nil && pending(target):
		return starting(s, target)
	case len(s.Launchers) > 1 && (under == nil || target == nil): // evacuation.go:466-469, migration.go:1355-1359
		second := s.second()
		if second.DeletionTimestamp != nil {
			return blocks(ByLeftover, "no migration is made while its other launcher, %s, is terminating", second.Name)
		}
		return blocks(ByLeftover, "no migration is made while it has a second launcher, %s", second.Name)
	case running && under == nil && s.Unknown.Migrations != "":
		return unknown(s.Unknown.Migrations)
	case running && under == nil && evacuation: // evacuation.go:326-333
		return blocks(ByMigration, "its status says since %s that it migrates, and no migration of it is there; while it says so, no other is made",
			state.StartTimestamp.UTC().Format(time.RFC3339))
	case under != nil && target != nil:
		return Drained{Migrates, "a migration is under way", Ends, NoCause}
	case s.Migrated.Bound != "":
		return blocks(ByPlace, "it can migrate, but nowhere: %s", s.Migrated.Bound)
	case s.Unknown.Migrations != "":
		return unknown(s.Unknown.Migrations)
	}
	if failed, last := s.failures(); failed > 0 { // migration.go:1049-1112
		return Drained{Unknown, fmt.Sprintf("its last %s%s; the next is tried after a pause that doubles", count(failed, "migration has failed", "migrations have failed"), last), NoTell, ByMigration}
	}
	return s.finds(under, evacuation)
}

// finds is for a VMI whose migration can start: whether its target finds a place.
func (s Situation) finds(under *v1.VirtualMachineInstanceMigration, evacuation bool) Drained {
	why := ""
	switch backup := backupOf(s.VMI); {
	case s.Migrated.Unknown != "":
		return unknown("whether another node takes it: " + s.Migrated.Unknown)
	case backup != "" && evacuation && (under == nil || critical(under)): // migration.go:1581-1633
		why = fmt.Sprintf("its migration aborts its backup %s", backup)
	case backup != "":
		why = fmt.Sprintf("its migration waits for its backup %s to end", backup)
	case under != nil:
		why = "a migration is under way"
	case s.VMI.IsMarkedForEviction():
		why = "its evacuation is under way"
	}
	return Drained{Migrates, why, Ends, NoCause}
}

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
// (migration.go:79, defaultUnschedulablePendingTimeoutSeconds).
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

// backupOf is the backup of a VMI that is under way (pkg/util/migrations/migrations.go:98-104).
func backupOf(vmi *v1.VirtualMachineInstance) string {
	if vmi.Status.ChangedBlockTracking == nil || vmi.Status.ChangedBlockTracking.BackupStatus == nil ||
		vmi.Status.ChangedBlockTracking.BackupStatus.Completed {
		return ""
	}
	return vmi.Status.ChangedBlockTracking.BackupStatus.BackupName
}

func critical(migration *v1.VirtualMachineInstanceMigration) bool {
	return migration.Spec.Priority != nil && *migration.Spec.Priority == v1.PrioritySystemCritical
}

func count(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf("%d %s", n, many)
}

package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
)

func TestWhatAnUpgradeDoesToAVMThatCannotMigrate(t *testing.T) {
	external := v1.EvictionStrategyExternal
	for name, c := range map[string]struct {
		change func(p *Platform, s *Situation)
		want   Upgraded // Why is left out
		why    string
	}{
		"it is evicted": {nil, Upgraded{Outcome: Restarts, InBatch: true}, ""},
		"its volumes are being migrated": {func(p *Platform, s *Situation) {
			s.VMI.Status.MigratedVolumes = []v1.StorageMigratedVolumeInfo{{}}
		}, Upgraded{Outcome: Unknown}, "volumes"},
		"its volumes are being migrated, and the updater migrates nothing": {func(p *Platform, s *Situation) {
			p.LiveMigrates, s.VMI.Status.MigratedVolumes = false, []v1.StorageMigratedVolumeInfo{{}}
		}, Upgraded{Outcome: Restarts, InBatch: true}, ""},
		"batches are of nobody":           {func(p *Platform, s *Situation) { p.BatchSize = 0 }, Upgraded{Outcome: Nothing}, "batchEvictionSize"},
		"pods were not read":              {func(p *Platform, s *Situation) { s.Unknown.Pods = "no pods" }, Upgraded{Outcome: Unknown, InBatch: true}, "no pods"},
		"its launcher is on another node": {func(p *Platform, s *Situation) { s.Launcher.Spec.NodeName = "node-b" }, Upgraded{Outcome: Nothing}, "no launcher"},
		"it has a migration": {func(p *Platform, s *Situation) { s.Migrations = []*v1.VirtualMachineInstanceMigration{{}} },
			Upgraded{Outcome: Refused}, "left alone"},
		"it says that it migrates": {func(p *Platform, s *Situation) {
			s.VMI.Status.MigrationState = &v1.VirtualMachineInstanceMigrationState{StartTimestamp: &metav1.Time{}}
		}, Upgraded{Outcome: Refused}, "left alone"},
		"its node is not ready": {func(p *Platform, s *Situation) { s.Node = unready("node-a") }, Upgraded{Outcome: Refused, InBatch: true}, "not ready"},
		"it has no launcher":    {func(p *Platform, s *Situation) { s.Launcher = nil }, Upgraded{Outcome: Nothing}, "no launcher"},
		"its owner is told": {func(p *Platform, s *Situation) { s.VMI.Spec.EvictionStrategy = &external },
			Upgraded{Outcome: OwnerDecides, InBatch: true}, "External"},
		"budgets were not read": {func(p *Platform, s *Situation) { s.Unknown.Budgets = "no budgets" }, Upgraded{Outcome: Unknown, InBatch: true}, "no budgets"},
		"a budget allows none": {func(p *Platform, s *Situation) {
			s.Budgets = []*policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Name: "budget"}}}
		}, Upgraded{Outcome: Refused, InBatch: true}, "budget"},
	} {
		p := Platform{Strategy: v1.EvictionStrategyNone, LiveMigrates: true, Evicts: true, BatchSize: 10}
		always := v1.RunStrategyAlways
		s := Situation{VMI: &v1.VirtualMachineInstance{Status: v1.VirtualMachineInstanceStatus{Phase: v1.Running, NodeName: "node-a"}},
			VM: &v1.VirtualMachine{Spec: v1.VirtualMachineSpec{RunStrategy: &always, Template: &v1.VirtualMachineInstanceTemplateSpec{}}}, Launcher: readyLauncher()}
		s.Launcher.Spec.NodeName = "node-a"
		if c.change != nil {
			c.change(&p, &s)
		}
		got := Upgrade(p, s)
		assert.Contains(t, got.Why, c.why, name)
		got.Why = ""
		assert.Equal(t, c.want, got, name)
	}
}

// The updater only asks for an eviction: whoever migrates on one has to act on the mark.
func TestWhatAnUpgradeDoesToAVMThatCanMigrate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *Platform, s *Situation)
		want   Upgraded // Why is left out
		why    string
	}{
		"it migrates":              {nil, Upgraded{Outcome: Migrates}, ""},
		"its node is not ready":    {func(p *Platform, s *Situation) { s.Node = unready("node-a") }, Upgraded{Outcome: Refused}, "not ready"},
		"it is marked for another": {func(p *Platform, s *Situation) { s.VMI.Status.EvacuationNodeName = "node-b" }, Upgraded{Outcome: Migrates}, ""},
		"it is evicted":            {func(p *Platform, s *Situation) { p.LiveMigrates = false }, Upgraded{Outcome: Migrates, InBatch: true}, ""},
		"it is evicted, and marked for another": {func(p *Platform, s *Situation) {
			p.LiveMigrates, s.VMI.Status.EvacuationNodeName = false, "node-b"
		}, Upgraded{Outcome: Refused, InBatch: true}, "still marked"},
		"it would be evicted, and says that it migrates": {func(p *Platform, s *Situation) {
			p.LiveMigrates, s.VMI.Status.MigrationState = false, &v1.VirtualMachineInstanceMigrationState{StartTimestamp: &metav1.Time{}}
		}, Upgraded{Outcome: Refused}, "says since"},
		"its backup is aborted": {backedUp, Upgraded{Outcome: Migrates}, "aborts"},
		"its backup is waited for, as it gets more memory": {func(p *Platform, s *Situation) {
			backedUp(p, s)
			s.VMI.Status.Conditions = append(s.VMI.Status.Conditions, v1.VirtualMachineInstanceCondition{Type: v1.VirtualMachineInstanceMemoryChange, Status: corev1.ConditionTrue})
		}, Upgraded{Outcome: Migrates}, "waits for its backup"},
		"its backup is waited for, as it gets more CPUs": {func(p *Platform, s *Situation) {
			backedUp(p, s)
			s.VMI.Status.Conditions = append(s.VMI.Status.Conditions, v1.VirtualMachineInstanceCondition{Type: v1.VirtualMachineInstanceVCPUChange})
		}, Upgraded{Outcome: Migrates}, "waits for its backup"},
	} {
		p := Platform{Strategy: v1.EvictionStrategyLiveMigrate, LiveMigrates: true, Evicts: true, BatchSize: 10, Migrations: 5, Outbound: 2}
		s := Situation{VMI: &v1.VirtualMachineInstance{Status: v1.VirtualMachineInstanceStatus{Phase: v1.Running, NodeName: "node-a",
			Conditions: []v1.VirtualMachineInstanceCondition{{Type: v1.VirtualMachineInstanceIsMigratable, Status: corev1.ConditionTrue}}}}, Launcher: readyLauncher()}
		s.Launcher.Spec.NodeName = "node-a"
		if c.change != nil {
			c.change(&p, &s)
		}
		got := Upgrade(p, s)
		assert.Contains(t, got.Why, c.why, name)
		got.Why = ""
		assert.Equal(t, c.want, got, name)
	}
}

func backedUp(_ *Platform, s *Situation) {
	s.VMI.Status.ChangedBlockTracking = &v1.ChangedBlockTrackingStatus{BackupStatus: &v1.VirtualMachineInstanceBackupStatus{BackupName: "nightly"}}
}

func unready(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}}}
}

func TestThePlatformIsWhatTheCRSays(t *testing.T) {
	cr := &v1.KubeVirt{}
	cr.Spec.WorkloadUpdateStrategy.WorkloadUpdateMethods = []v1.WorkloadUpdateMethod{v1.WorkloadUpdateMethodEvict, v1.WorkloadUpdateMethodLiveMigrate}
	cr.Spec.WorkloadUpdateStrategy.BatchEvictionInterval = &metav1.Duration{Duration: 90 * time.Second}
	p := NewPlatform(cr)
	assert.True(t, p.Evicts, "in whatever order the methods are")
	assert.True(t, p.LiveMigrates)
	assert.Equal(t, 90*time.Second, p.BatchInterval)
}

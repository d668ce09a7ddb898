package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
)

// deleted marks a VMI or a VM as being deleted.
func deleted(o metav1.Object) { o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)}) }

func asked(vm *v1.VirtualMachine, action v1.StateChangeRequestAction) {
	vm.Status.StateChangeRequests = []v1.VirtualMachineStateChangeRequest{{Action: action}}
}

func TestWhetherAVMStartsAgainAfterAShutdown(t *testing.T) {
	migratedVolumes := func(s *Situation, state *v1.VolumeUpdateState) {
		s.VM.Status.VolumeUpdateState = state
		s.VMI.Status.MigratedVolumes = []v1.StorageMigratedVolumeInfo{{}}
	}
	for name, c := range map[string]struct {
		strategy v1.VirtualMachineRunStrategy
		change   func(s *Situation)
		want     Outcome
		why      string // a part of it
	}{
		"Always":                  {v1.RunStrategyAlways, nil, Restarts, ""},
		"its VM is being deleted": {v1.RunStrategyAlways, func(s *Situation) { deleted(s.VM) }, StaysOff, "its VM is being deleted"},
		"it migrates to another cluster": {v1.RunStrategyAlways, func(s *Situation) {
			s.VMI.Status.MigrationState = &v1.VirtualMachineInstanceMigrationState{
				SourceState: &v1.VirtualMachineInstanceMigrationSourceState{VirtualMachineInstanceCommonMigrationState: v1.VirtualMachineInstanceCommonMigrationState{SyncAddress: new(string)}},
				TargetState: &v1.VirtualMachineInstanceMigrationTargetState{}}
		}, Unknown, "another cluster"},
		"both running and runStrategy": {v1.RunStrategyAlways, func(s *Situation) { s.VM.Spec.Running = new(bool) }, Unknown, "both running and runStrategy"},
		"RerunOnFailure":               {v1.RunStrategyRerunOnFailure, nil, StaysOffIfClean, "cleanly"},
		"RerunOnFailure, a start is asked for": {v1.RunStrategyRerunOnFailure, func(s *Situation) { asked(s.VM, v1.StartRequest) },
			StaysOffIfClean, "cleanly"},
		"RerunOnFailure, deleted": {v1.RunStrategyRerunOnFailure, func(s *Situation) { deleted(s.VMI) }, StaysOff, "was deleted"},
		"RerunOnFailure, deleted and a start is asked for": {v1.RunStrategyRerunOnFailure,
			func(s *Situation) { deleted(s.VMI); asked(s.VM, v1.StartRequest) }, Restarts, "a start has been asked for"},
		"RerunOnFailure, deleted and a stop is asked for": {v1.RunStrategyRerunOnFailure,
			func(s *Situation) { deleted(s.VMI); asked(s.VM, v1.StopRequest) }, StaysOff, "was deleted"},
		"RerunOnFailure, not running yet": {v1.RunStrategyRerunOnFailure, func(s *Situation) { s.VMI.Status.Phase = v1.Scheduled }, Restarts, "has not run yet"},
		"Manual":                          {v1.RunStrategyManual, nil, StaysOff, "Manual"},
		"Manual, a start is asked for":    {v1.RunStrategyManual, func(s *Situation) { asked(s.VM, v1.StartRequest) }, StaysOff, "Manual"},
		"Manual, deleted and a start is asked for": {v1.RunStrategyManual,
			func(s *Situation) { deleted(s.VMI); asked(s.VM, v1.StartRequest) }, Restarts, "a start has been asked for"},
		"Once":                         {v1.RunStrategyOnce, nil, StaysOff, "Once"},
		"Once, deleted":                {v1.RunStrategyOnce, func(s *Situation) { deleted(s.VMI) }, Restarts, "Once"},
		"Halted":                       {v1.RunStrategyHalted, nil, StaysOff, "Halted"},
		"Halted, a start is asked for": {v1.RunStrategyHalted, func(s *Situation) { asked(s.VM, v1.StartRequest) }, Restarts, "a start has been asked for"},
		"one that is not known":        {"Sometimes", nil, Unknown, "Sometimes"},
		"recovery is required": {v1.RunStrategyAlways, func(s *Situation) {
			s.VM.Status.Conditions = []v1.VirtualMachineCondition{{Type: v1.VirtualMachineManualRecoveryRequired, Status: corev1.ConditionTrue}}
		}, StaysOff, "broken off"},
		"another condition is true": {v1.RunStrategyAlways, func(s *Situation) {
			s.VM.Status.Conditions = []v1.VirtualMachineCondition{{Type: v1.VirtualMachineReady, Status: corev1.ConditionTrue}}
		}, Restarts, ""},
		"its volumes are migrated": {v1.RunStrategyAlways, func(s *Situation) {
			migratedVolumes(s, &v1.VolumeUpdateState{VolumeMigrationState: &v1.VolumeMigrationState{}})
		}, StaysOff, "volumes"},
		"its volumes were migrated":            {v1.RunStrategyAlways, func(s *Situation) { migratedVolumes(s, nil) }, Restarts, ""},
		"its volumes change without migrating": {v1.RunStrategyAlways, func(s *Situation) { migratedVolumes(s, &v1.VolumeUpdateState{}) }, Restarts, ""},
	} {
		s := Situation{VMI: &v1.VirtualMachineInstance{Status: v1.VirtualMachineInstanceStatus{Phase: v1.Running}},
			VM: &v1.VirtualMachine{Spec: v1.VirtualMachineSpec{RunStrategy: &c.strategy}}}
		if c.change != nil {
			c.change(&s)
		}
		outcome, why := afterShutdown(s)
		assert.Equal(t, c.want, outcome, name)
		assert.Contains(t, why, c.why, name)
	}
}

func TestWhoStartsAVMIWithoutAKnownVMAgain(t *testing.T) {
	for name, c := range map[string]struct {
		kind, unread string
		want         Outcome
		why          string
	}{
		"nobody":                          {"", "", StaysOff, "no VM owns it"},
		"a VM that is gone":               {"VirtualMachine", "", StaysOff, "its VM is gone"},
		"a VM, and VMs were not read":     {"VirtualMachine", "no VMs", Unknown, "no VMs"},
		"a replica set":                   {"VirtualMachineInstanceReplicaSet", "", Restarts, "another in its place"},
		"a replica set, and VMs were not": {"VirtualMachineInstanceReplicaSet", "no VMs", Restarts, "another in its place"},
		"somebody else":                   {"Robot", "", Unknown, "a Robot"},
	} {
		s := Situation{VMI: &v1.VirtualMachineInstance{}}
		if c.kind != "" {
			yes := true
			s.VMI.OwnerReferences = []metav1.OwnerReference{{Kind: c.kind, Controller: &yes}}
		}
		s.Unknown.VM = c.unread
		outcome, why := afterShutdown(s)
		assert.Equal(t, c.want, outcome, name)
		assert.Contains(t, why, c.why, name)
	}
}

func TestWhereAVMStartsAgainWhileItsNodeIsDrained(t *testing.T) {
	full, unread := Place{Bound: "no room"}, Place{Unknown: "no nodes"}
	for name, c := range map[string]struct {
		outcome Outcome
		place   Place
		want    Outcome
		why     string
	}{
		"it stays off, and there is no room": {StaysOff, full, StaysOff, "why"},
		"it restarts elsewhere":              {Restarts, Place{}, Restarts, "why"},
		"it restarts when there is room":     {Restarts, full, RestartsWithNode, "no room"},
		"it may start when there is room":    {StaysOffIfClean, full, StaysOffIfClean, "why; otherwise it starts when there is a place again: no room"},
		"nodes were not read":                {StaysOffIfClean, unread, Unknown, "whether another node can take it: no nodes"},
	} {
		outcome, why := elsewhere(c.outcome, "why", c.place)
		assert.Equal(t, c.want, outcome, name)
		assert.Equal(t, c.why, why, name)
	}
}

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

// This file is what the small rules say at their edges: whose strategy it is, how batches fall, and who shares a budget.

func TestTheSourceOfAStrategyIsToldApart(t *testing.T) {
	strategy := func(s v1.EvictionStrategy) *v1.EvictionStrategy { return &s }
	vm := func(own *v1.EvictionStrategy) *v1.VirtualMachine {
		return &v1.VirtualMachine{Spec: v1.VirtualMachineSpec{Template: &v1.VirtualMachineInstanceTemplateSpec{
			Spec: v1.VirtualMachineInstanceSpec{EvictionStrategy: own}}}}
	}
	live, none := strategy(v1.EvictionStrategyLiveMigrate), strategy(v1.EvictionStrategyNone)
	for name, c := range map[string]struct {
		carried *v1.EvictionStrategy
		vm      *v1.VirtualMachine
		unknown string
		want    Source
	}{
		"the VMI carries none":               {nil, vm(live), "", Cluster},
		"the VM says the same":               {live, vm(live), "", Own},
		"the VM says something else by now":  {live, vm(none), "", Defaulted},
		"the VM says nothing":                {live, vm(nil), "", Defaulted},
		"the VM has no template":             {live, &v1.VirtualMachine{}, "", Defaulted},
		"there is no VM":                     {live, nil, "", OwnOrDefaulted},
		"VMs were not read":                  {live, nil, "no VirtualMachines were read", NoSource},
		"this VM was read and others failed": {live, vm(live), "no VirtualMachines were read", Own},
	} {
		s := Situation{VMI: &v1.VirtualMachineInstance{Spec: v1.VirtualMachineInstanceSpec{EvictionStrategy: c.carried}}, VM: c.vm}
		s.Unknown.VM = c.unknown
		assert.Equal(t, c.want, SourceOf(s), name)
	}
}

func TestVMsThatFitIntoOneBatchHaveTheirTurnInIt(t *testing.T) {
	p := Platform{BatchSize: 10, BatchInterval: time.Minute}
	for name, c := range map[string]struct{ evictions, refused, last int }{
		"fewer":                        {8, 1, 1},
		"just as many":                 {8, 2, 1},
		"one more, which is refused":   {8, 3, 0},
		"one more, which leaves":       {11, 0, 2},
		"two batches to the last seat": {20, 0, 2},
	} {
		var all []Upgraded
		for range c.evictions {
			all = append(all, Upgraded{Restarts, "", true})
		}
		for range c.refused {
			all = append(all, Upgraded{Blocks, "", true})
		}
		pace := PaceOf(p, all)
		assert.Equal(t, c.last, pace.LastBatch(p), name)
		assert.Equal(t, time.Duration((c.evictions+9)/10-1)*time.Minute, pace.AtLeast, name)
	}
}

// launcherOf is a launcher that is ready.
func launcherOf() *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodInitialized, Status: corev1.ConditionFalse}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
}

func TestABudgetIsSharedByThoseThatDoNotComeBack(t *testing.T) {
	for name, c := range map[string]struct {
		allowed  int32
		outcomes []Outcome
		change   func(first *Situation)
		held     bool
	}{
		"one is allowed, two shut down":              {1, []Outcome{StaysOff, StaysOff}, nil, true},
		"as many are allowed":                        {2, []Outcome{StaysOff, StaysOff}, nil, false},
		"those that restart give it back":            {1, []Outcome{Restarts, Restarts, Restarts}, nil, false},
		"one of three is gone, two are allowed":      {2, []Outcome{StaysOff, Restarts, Restarts}, nil, false},
		"all that are allowed are gone, one is left": {1, []Outcome{StaysOff, Restarts}, nil, true},
		"one of them has no launcher":                {1, []Outcome{StaysOff, StaysOff}, func(s *Situation) { s.Launcher = nil }, false},
		"one of them has ended": {1, []Outcome{StaysOff, StaysOff},
			func(s *Situation) { s.Launcher.Status.Phase = corev1.PodSucceeded }, false},
		"one of them is going": {1, []Outcome{StaysOff, StaysOff},
			func(s *Situation) { s.Launcher.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, false},
		"one of them is not ready": {1, []Outcome{StaysOff, StaysOff},
			func(s *Situation) { s.Launcher.Status.Conditions[1].Status = corev1.ConditionFalse }, false},
		"one of them has two budgets": {1, []Outcome{StaysOff, StaysOff},
			func(s *Situation) { s.Budgets = append(s.Budgets, s.Budgets[0]) }, false},
	} {
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "budget"}, Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: c.allowed}}
		var situations []Situation
		var drained []Drained
		for _, outcome := range c.outcomes {
			situations = append(situations, Situation{Launcher: launcherOf(), Budgets: []*policyv1.PodDisruptionBudget{budget}})
			drained = append(drained, Drained{Outcome: outcome, End: Ends})
		}
		if c.change != nil {
			c.change(&situations[0])
		}
		Share(situations, drained)
		for i, outcome := range c.outcomes {
			if c.held {
				outcome = Blocks
			}
			assert.Equal(t, outcome, drained[i].Outcome, name)
		}
	}
}

package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
			situations = append(situations, Situation{Launcher: readyLauncher(), Budgets: []*policyv1.PodDisruptionBudget{budget}})
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

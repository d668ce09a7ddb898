// What a drain and an upgrade do to each kind of VM, under both CRs, by the preview's verdicts; make contract holds those
// against KubeVirt's own webhook and updater.
package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// answer is one that flips.
type answer struct {
	Who  string `json:"who"`
	Asks string `json:"asks"` // what acts on the VM
	Was  string `json:"was"`
	Is   string `json:"is"`
}

func (a answer) String() string {
	return fmt.Sprintf("%s: %s: was %q, is %q", a.Who, a.Asks, a.Was, a.Is)
}

// strategies a VM may have in its own spec; "" is none, so that the cluster's counts.
var strategies = []v1.EvictionStrategy{
	"", v1.EvictionStrategyLiveMigrate, v1.EvictionStrategyLiveMigrateIfPossible, v1.EvictionStrategyExternal, v1.EvictionStrategyNone,
}

func flips(old, new *v1.KubeVirt) []answer {
	before, after := verdict.NewPlatform(old), verdict.NewPlatform(new)
	var all []answer
	for _, own := range strategies {
		for _, migratable := range []bool{true, false} {
			for _, isNew := range []bool{false, true} {
				carried := own
				if own == "" && isNew {
					carried = after.Strategy
				} else if own == "" {
					carried = before.Strategy
				}
				was := situation(firstOf(own, before.Strategy), migratable)
				is := situation(carried, migratable)
				if own != "" && isNew {
					continue // the same as one from before
				}
				who := kindOf(own, migratable, isNew)
				for _, question := range []struct{ asks, was, is string }{
					{"an eviction", evicted(before, was), evicted(after, is)},
					{"a drain", string(verdict.Drain(before, was).Outcome), string(verdict.Drain(after, is).Outcome)},
					{"an upgrade", string(verdict.Upgrade(before, was).Outcome), string(verdict.Upgrade(after, is).Outcome)},
				} {
					if question.was != question.is {
						all = append(all, answer{who, question.asks, question.was, question.is})
					}
				}
			}
		}
	}
	return all
}

func firstOf(own, cluster v1.EvictionStrategy) v1.EvictionStrategy {
	if own != "" {
		return own
	}
	return cluster
}

func kindOf(own v1.EvictionStrategy, migratable, isNew bool) string {
	who := "can migrate"
	if !migratable {
		who = "can't migrate"
	}
	switch {
	case own != "":
		return who + ", own strategy " + string(own)
	case isNew:
		return who + ", created from now on"
	}
	return who + ", runs already"
}

func evicted(p verdict.Platform, s verdict.Situation) string {
	switch answer := verdict.Evict(p, s.VMI, s.Launcher); {
	case answer.Allowed():
		return "is let go"
	case answer.Marks():
		return "is marked for evacuation"
	}
	return "is refused"
}

// situation is a VM that runs, runStrategy Always, as its owner sees it on any node.
func situation(strategy v1.EvictionStrategy, migratable bool) verdict.Situation {
	status := corev1.ConditionFalse
	if migratable {
		status = corev1.ConditionTrue
	}
	always := v1.RunStrategyAlways
	return verdict.Situation{
		VMI: &v1.VirtualMachineInstance{
			ObjectMeta: metav1.ObjectMeta{Name: "vm"},
			Spec:       v1.VirtualMachineInstanceSpec{EvictionStrategy: &strategy},
			Status: v1.VirtualMachineInstanceStatus{Phase: v1.Running, NodeName: "node", Conditions: []v1.VirtualMachineInstanceCondition{
				{Type: v1.VirtualMachineInstanceIsMigratable, Status: status},
			}},
		},
		VM: &v1.VirtualMachine{Spec: v1.VirtualMachineSpec{RunStrategy: &always, Template: &v1.VirtualMachineInstanceTemplateSpec{}}},
		Launcher: &corev1.Pod{
			Spec:   corev1.PodSpec{NodeName: "node"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		},
	}
}

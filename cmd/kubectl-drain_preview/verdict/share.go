package verdict

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// This file is about VMs of one node that share a PodDisruptionBudget: each eviction uses one of the disruptions that it
// allows, and only a VM that runs again elsewhere gives it back.

// Share changes the verdicts on the VMs of one node where a budget lets fewer of them go than it selects, and too many
// would not come back to make room for the others.
func Share(situations []Situation, drained []Drained) {
	members := map[types.NamespacedName][]int{}
	for i, s := range situations {
		if shutsDown(drained[i]) && usesBudget(s) {
			name := types.NamespacedName{Namespace: s.Budgets[0].Namespace, Name: s.Budgets[0].Name}
			members[name] = append(members[name], i)
		}
	}
	for name, sharing := range members {
		allowed := int(situations[sharing[0]].Budgets[0].Status.DisruptionsAllowed)
		gone := 0
		for _, i := range sharing {
			if drained[i].Outcome != Restarts {
				gone++
			}
		}
		if len(sharing) <= allowed || gone < allowed {
			continue
		}
		why := fmt.Sprintf("PodDisruptionBudget %s lets %d of the %d VMs here go that it selects", name.Name, allowed, len(sharing))
		for _, i := range sharing {
			drained[i] = Drained{Blocks, why, Waits, ByBudget}
		}
	}
}

// shutsDown says whether the drain takes the launcher by an eviction: what migrates ends by itself.
func shutsDown(d Drained) bool {
	switch d.Outcome {
	case Migrates, OwnerDecides, Nothing:
		return false
	}
	return d.End == Ends
}

// usesBudget says whether the eviction of the VM's launcher counts against a budget: not if it migrates, is ending anyway
// or is unhealthy.
func usesBudget(s Situation) bool {
	if len(s.Budgets) != 1 || s.Launcher == nil || Ended(s.Launcher) || !s.Launcher.DeletionTimestamp.IsZero() {
		return false
	}
	return ready(s.Launcher)
}

package workers

import (
	"testing"

	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"
	capierrors "sigs.k8s.io/cluster-api/errors"
)

// This file shows when the provider gives a worker up. It decides so in pkg/kubevirt/machine.go:122-130 (v0.1.10) and
// writes it down in controllers/kubevirtmachine_controller.go:254-262; Cluster API v1.10.1 copies it to the Machine in
// internal/controllers/machine/machine_controller_phases.go:63-77.

func TestW1_AMarkedWorkerThatCannotMigrateFails(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]workload{
		"cannot migrate":               fixed,
		"not known yet whether it can": {kubevirtv1.EvictionStrategyExternal, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, 1, w)
			worker := g.workers()[0]
			g.failed(worker)
			if reason := ptr.Deref(g.kubevirtMachine(worker).Status.FailureReason, ""); reason != capierrors.UpdateMachineError {
				t.Errorf("the provider gives the reason %q", reason)
			}
			if reason := *g.machine(worker).Status.FailureReason; reason != capierrors.UpdateMachineError {
				t.Errorf("the Machine carries the reason %q", reason)
			}
		})
	}
}

func TestW1_AWorkerThatIsNotMarkedOrCanMigrateDoesNotFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		workload
		marked bool
	}{
		"not marked":                {fixed, false},
		"marked but it can migrate": {movable, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, 1, c.workload)
			worker := g.workers()[0]
			if c.marked {
				g.mark(worker)
			}
			g.looked(worker)
			g.notFailed(worker)
		})
	}
}

package workers

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/v1beta1"
	"sigs.k8s.io/cluster-api/util/conditions"
)

// This file shows which failed workers the MachineHealthCheck of a node group replaces: Cluster API v1.10.1,
// internal/controllers/machinehealthcheck/machinehealthcheck_targets.go:102-112 and _controller.go:245-325, 671-717
// (a percentage is rounded down).

func TestW3_AFailedMachineIsReplacedWhileMaxUnhealthyAllowsIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size         int32
		maxUnhealthy string
	}{
		"one of two, 50%":  {2, "50%"},
		"one of one, 100%": {1, "100%"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, c.size, fixed)
			g.checkHealth(c.maxUnhealthy)
			failed, rest := g.workers()[0], g.machines()[1:]
			g.failed(failed)
			g.endGuest(failed)
			g.replaced(failed, c.size)
			for _, other := range rest {
				if g.machine(other.Name).UID != other.UID {
					t.Errorf("%s, which had not failed, was replaced, too", other.Name)
				}
			}
		})
	}
}

// The check comes after the failures, so that it finds them all at once. Where it is there before, it may still replace
// the first that it sees.
func TestW3_WhereMoreHaveFailedNoneIsReplacedAndTheirVMsRunOnInPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size         int32
		failed       int
		maxUnhealthy string
	}{
		"one of one, 50%":          {1, 1, "50%"},
		"three of three, 50%":      {3, 3, "50%"},
		"one of two, none allowed": {2, 1, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, c.size, fixed)
			failed := g.workers()[:c.failed]
			for _, worker := range failed {
				vmi := g.vmi(worker)
				g.failed(worker)
				g.restarted(vmi)
			}
			g.checkHealth(c.maxUnhealthy)
			g.heldBack()
			if healthy := g.health().Status.CurrentHealthy; int(healthy) != int(c.size)-c.failed {
				t.Errorf("%d Machines are healthy", healthy)
			}
			for _, worker := range failed {
				g.runsOnInPlace(worker)
			}
		})
	}
}

// Neither the provider nor Cluster API ever takes a failure reason away (the places named in failure_test.go only set it).
func TestW4_AMachineStaysFailedThoughItsVMIIsWellUntilItIsReplaced(t *testing.T) {
	t.Parallel()
	for name, allow := range map[string]func(*group) (size int32){
		"the group grows to two": func(g *group) int32 {
			g.change(&clusterv1.MachineSet{ObjectMeta: g.called(g.name)}, `{"spec":{"replicas":2}}`)
			return 2
		},
		"maxUnhealthy is raised": func(g *group) int32 {
			g.change(&clusterv1.MachineHealthCheck{ObjectMeta: g.called(g.name)}, `{"spec":{"maxUnhealthy":"100%"}}`)
			return 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, 1, fixed)
			worker := g.workers()[0]
			vmi := g.vmi(worker)
			g.failed(worker)
			g.restarted(vmi)
			g.checkHealth("50%")
			g.heldBack()
			g.runsOnInPlace(worker)
			g.replaced(worker, allow(g))
		})
	}
}

// failed marks a worker and waits until its Machine has failed.
func (g *group) failed(worker string) {
	g.Helper()
	g.mark(worker)
	g.until("the Machine fails", func() bool { return g.machine(worker).Status.FailureReason != nil })
}

// notFailed is that neither the provider nor Cluster API has given a worker up.
func (g *group) notFailed(worker string) {
	g.Helper()
	if reason := g.kubevirtMachine(worker).Status.FailureReason; reason != nil {
		g.Errorf("the provider gives the reason %q", *reason)
	}
	if reason := g.machine(worker).Status.FailureReason; reason != nil {
		g.Errorf("the Machine carries the reason %q", *reason)
	}
}

// heldBack waits until the health check has found too many failed.
func (g *group) heldBack() {
	g.Helper()
	g.until("remediation is held back", func() bool {
		health := g.health()
		return conditions.GetReason(&health, clusterv1.RemediationAllowedCondition) == clusterv1.TooManyUnhealthyReason
	})
}

// runsOnInPlace is that a failed worker's VMI is well and that its Machine is failed, and nobody's to replace.
func (g *group) runsOnInPlace(worker string) {
	g.Helper()
	g.until("the provider sees the VMI ready", func() bool { return g.kubevirtMachine(worker).Status.Ready })
	g.looked(worker)
	machine, kubevirtMachine := g.machine(worker), g.kubevirtMachine(worker)
	if vmi := g.vmi(worker); !kubevirtMachine.Status.Ready || vmi.Status.EvacuationNodeName != "" {
		g.Errorf("the VMI of %s is not well", worker)
	}
	if kubevirtMachine.Status.FailureReason == nil || machine.Status.FailureReason == nil {
		g.Errorf("%s is failed no more", worker)
	}
	if machine.DeletionTimestamp != nil || conditions.Has(&machine, clusterv1.MachineOwnerRemediatedCondition) {
		g.Errorf("%s is to be replaced", worker)
	}
}

// replaced waits until a worker is gone, with its VM and its node, and the group is whole without it.
func (g *group) replaced(worker string, size int32) {
	g.Helper()
	g.until("the failed worker is gone and the group is whole", func() bool {
		return g.machine(worker).Name == "" && g.vm(worker).Name == "" && g.node(worker).Name == "" &&
			len(g.machines()) == int(size) && g.workersUp() == int(size)
	})
	for _, other := range g.workers() {
		g.notFailed(other)
	}
}

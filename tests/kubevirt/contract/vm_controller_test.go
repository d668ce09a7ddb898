// P15 and the first half of P14: what KubeVirt's VM controller does once a VMI has ended, and when its VM gets more
// CPUs. The controller is KubeVirt's, under the rendered CR; the test takes a finished VMI away as the API server does.
package contract

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	v1 "kubevirt.io/api/core/v1"

	"kubevirt.io/kubevirt/pkg/controller"
	instancetype "kubevirt.io/kubevirt/pkg/instancetype/controller/vm"
	"kubevirt.io/kubevirt/pkg/virt-controller/watch/vm"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
)

// machine is one VM, its VMI and KubeVirt's VM controller.
type machine struct {
	t          *testing.T
	controller *vm.Controller
	client     *client
	vms, vmis  *informer
}

func newMachine(t *testing.T, cr *v1.KubeVirt, definition *v1.VirtualMachine, running *v1.VirtualMachineInstance) *machine {
	t.Helper()
	m := &machine{
		t: t, client: newClient(),
		vms:  newInformer(controller.GetVirtualMachineInformerIndexers()),
		vmis: newInformer(controller.GetVMIInformerIndexers()),
	}
	revisions := newInformer(cache.Indexers{"vm": func(any) ([]string, error) { return nil, nil }})
	var err error
	m.controller, err = vm.NewController(m.vmis, m.vms, newInformer(), newInformer(), newInformer(), newInformer(), newInformer(), revisions,
		&record.FakeRecorder{}, m.client, clusterConfig(t, cr), nil, nil, instancetype.NewControllerStub(), nil, nil)
	require.NoError(t, err)
	t.Cleanup(m.controller.Queue.ShutDown)

	_, err = m.client.VirtualMachine(definition.Namespace).Create(context.Background(), definition, metav1.CreateOptions{})
	require.NoError(t, err)
	m.vms.add(t, definition)
	if running != nil {
		_, err = m.client.VirtualMachineInstance(running.Namespace).Create(context.Background(), running, metav1.CreateOptions{})
		require.NoError(t, err)
		m.vmis.add(t, running)
	}
	return m
}

// reconcile runs the controller once, and then shows it what it wrote.
func (m *machine) reconcile() {
	m.t.Helper()
	m.controller.Queue.Add(chart.Namespace + "/" + vmiName)
	require.True(m.t, m.controller.Execute())

	written, err := m.client.VirtualMachine(chart.Namespace).Get(context.Background(), vmiName, metav1.GetOptions{})
	require.NoError(m.t, err)
	require.NoError(m.t, m.vms.indexer.Update(written))

	vmi := m.vmi()
	seen, existed, err := m.vmis.indexer.GetByKey(chart.Namespace + "/" + vmiName)
	require.NoError(m.t, err)
	switch {
	case vmi == nil && existed:
		m.vmis.remove(m.t, seen)
	case vmi != nil:
		m.vmis.add(m.t, vmi)
	}
}

// vmi is the VMI as the API server has it, or nil.
func (m *machine) vmi() *v1.VirtualMachineInstance {
	m.t.Helper()
	vmi, err := m.client.VirtualMachineInstance(chart.Namespace).Get(context.Background(), vmiName, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		return nil
	}
	require.NoError(m.t, err)
	return vmi
}

func newVM(strategy v1.VirtualMachineRunStrategy) *v1.VirtualMachine {
	return &v1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: chart.Namespace, Name: vmiName, UID: "uid-of-the-vm", Generation: 1,
			Finalizers: []string{v1.VirtualMachineControllerFinalizer},
			Annotations: map[string]string{
				v1.ControllerAPILatestVersionObservedAnnotation:  v1.ApiLatestVersion,
				v1.ControllerAPIStorageVersionObservedAnnotation: v1.ApiStorageVersion,
			},
		},
		Spec: v1.VirtualMachineSpec{
			RunStrategy: &strategy,
			Template: &v1.VirtualMachineInstanceTemplateSpec{Spec: v1.VirtualMachineInstanceSpec{
				Domain: v1.DomainSpec{CPU: &v1.CPU{Sockets: 1, Cores: 1, Threads: 1}},
			}},
		},
		Status: v1.VirtualMachineStatus{Created: true, Ready: true, RunStrategy: strategy},
	}
}

// vmiOf is the VMI of a VM, in a phase after it has run.
func vmiOf(t *testing.T, cr *v1.KubeVirt, owner *v1.VirtualMachine, phase v1.VirtualMachineInstancePhase) *v1.VirtualMachineInstance {
	t.Helper()
	vmi := newVMI(unset)
	vmi.Spec = *owner.Spec.Template.Spec.DeepCopy()
	vmi.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1.VirtualMachineGroupVersionKind)}
	vmi = create(t, clusterConfig(t, cr), vmi)
	vmi.Status.Phase = phase
	vmi.Status.PhaseTransitionTimestamps = append(vmi.Status.PhaseTransitionTimestamps,
		v1.VirtualMachineInstancePhaseTransitionTimestamp{Phase: v1.Running, PhaseTransitionTimestamp: metav1.Now()})
	return vmi
}

// pkg/virt-controller/watch/vm/vm.go:979-1149 (syncRunStrategy).
func TestP15_WhatComesBackAfterAnEvictionIsDecidedByTheRunStrategy(t *testing.T) {
	cr := rendered(t)
	for _, expected := range []struct {
		strategy     v1.VirtualMachineRunStrategy
		clean, crash bool // is there a new VMI after the guest shut down cleanly (Succeeded), after it did not (Failed)
		loses        string
	}{
		{v1.RunStrategyAlways, true, true, "a drain leaves VMs off that should always run"},
		{v1.RunStrategyRerunOnFailure, false, true, "the release note says that a guest which shuts down cleanly stays off"},
		{v1.RunStrategyManual, false, false, "the release note says that it stays off until somebody starts it"},
		{v1.RunStrategyOnce, false, false, "the release note says that it stays off even after a failure"},
		{v1.RunStrategyHalted, false, false, "a VM that is meant to be off comes back"},
	} {
		for phase, comesBack := range map[v1.VirtualMachineInstancePhase]bool{v1.Succeeded: expected.clean, v1.Failed: expected.crash} {
			t.Run(string(expected.strategy)+" after "+string(phase), func(t *testing.T) {
				definition := newVM(expected.strategy)
				ended := vmiOf(t, cr, definition, phase)
				ended.UID = "uid-of-the-evicted"
				m := newMachine(t, cr, definition, ended)
				for range 4 { // stop, see it gone, start, see it there
					m.reconcile()
				}
				vmi := m.vmi()
				isNew := vmi != nil && vmi.UID != ended.UID
				assert.Equal(t, comesBack, isNew, "P15 is broken: %s", expected.loses)
				count("run strategies", 1)
			})
		}
	}
}

// pkg/virt-controller/watch/vm/vm.go:622-673 (handleCPUChangeRequest), under vmRolloutStrategy LiveUpdate only (3351).
func TestP14_MoreCPUSocketsReachARunningVMIAndFewerDoNot(t *testing.T) {
	cr := rendered(t)
	for name, change := range map[string]struct {
		from, to, want uint32
	}{
		"more":                  {1, 2, 2},
		"fewer":                 {2, 1, 2},
		"more than it can take": {1, 64, 1},
	} {
		t.Run(name, func(t *testing.T) {
			definition := newVM(v1.RunStrategyAlways)
			definition.Spec.Template.Spec.Domain.CPU.Sockets = change.from
			vmi := vmiOf(t, cr, definition, v1.Running)
			definition.Spec.Template.Spec.Domain.CPU.Sockets = change.to
			m := newMachine(t, cr, definition, vmi)
			m.reconcile()
			assert.Equal(t, change.want, m.vmi().Spec.Domain.CPU.Sockets,
				"P14 is broken: a CPU edit does something else to a running VM than the documentation says")
		})
	}
}

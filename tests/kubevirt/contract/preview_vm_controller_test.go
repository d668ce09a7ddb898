// What kubectl drain-preview says of a VM that is shut down, compared with the VM controller on every run strategy.
package contract

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "kubevirt.io/api/core/v1"

	preview "cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

func TestPreviewAgreesWithTheVMControllerOnEveryRunStrategy(t *testing.T) {
	cr := rendered(t)
	yes, no := true, false
	definitions := map[string]func(*v1.VirtualMachine){
		"running: true":  func(vm *v1.VirtualMachine) { vm.Spec.RunStrategy, vm.Spec.Running = nil, &yes },
		"running: false": func(vm *v1.VirtualMachine) { vm.Spec.RunStrategy, vm.Spec.Running = nil, &no },
	}
	for _, strategy := range []v1.VirtualMachineRunStrategy{
		v1.RunStrategyAlways, v1.RunStrategyRerunOnFailure, v1.RunStrategyManual, v1.RunStrategyOnce, v1.RunStrategyHalted,
	} {
		definitions[string(strategy)] = func(vm *v1.VirtualMachine) { vm.Spec.RunStrategy = &strategy }
	}
	returns := map[preview.Outcome]map[v1.VirtualMachineInstancePhase]bool{
		preview.Restarts:        {v1.Succeeded: true, v1.Failed: true},
		preview.StaysOffIfClean: {v1.Succeeded: false, v1.Failed: true},
		preview.StaysOff:        {v1.Succeeded: false, v1.Failed: false},
	}
	for name, define := range definitions {
		for _, phase := range []v1.VirtualMachineInstancePhase{v1.Succeeded, v1.Failed} {
			t.Run(name+" after "+string(phase), func(t *testing.T) {
				definition := newVM(v1.RunStrategyAlways)
				define(definition)
				running := vmiOf(t, cr, definition, v1.Running)
				running.Status.NodeName = here
				predicted := preview.Drain(preview.NewPlatform(cr),
					preview.Situation{VMI: running, VM: definition, Launcher: podsOf(running, source)[0]})
				require.Contains(t, returns, predicted.Outcome)

				ended := vmiOf(t, cr, definition, phase)
				ended.UID = "uid-of-the-evicted"
				m := newMachine(t, cr, definition, ended)
				for range 4 { // stop, see it gone, start, see it there
					m.reconcile()
				}
				vmi := m.vmi()
				assert.Equal(t, vmi != nil && vmi.UID != ended.UID, returns[predicted.Outcome][phase], "the preview says: %s", predicted.Outcome)
				count("previewed run strategies", 1)
			})
		}
	}
}

package verdict

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "kubevirt.io/api/core/v1"
)

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

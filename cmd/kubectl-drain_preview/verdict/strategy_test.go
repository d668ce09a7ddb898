package verdict

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "kubevirt.io/api/core/v1"
)

func TestAStrategyIsOwnOnlyIfTheTemplateSaysTheSame(t *testing.T) {
	migrate, none := v1.EvictionStrategyLiveMigrate, v1.EvictionStrategyNone
	for name, c := range map[string]struct {
		carried, template *v1.EvictionStrategy
		want              Source
	}{
		"the VMI carries none":            {nil, &migrate, Cluster},
		"the template says the same":      {&migrate, &migrate, Own},
		"the template says another since": {&migrate, &none, Defaulted},
		"the template says none":          {&migrate, nil, Defaulted},
	} {
		vm := &v1.VirtualMachine{Spec: v1.VirtualMachineSpec{Template: &v1.VirtualMachineInstanceTemplateSpec{}}}
		vm.Spec.Template.Spec.EvictionStrategy = c.template
		vmi := &v1.VirtualMachineInstance{}
		vmi.Spec.EvictionStrategy = c.carried
		assert.Equal(t, c.want, SourceOf(Situation{VM: vm, VMI: vmi}), name)
	}
}

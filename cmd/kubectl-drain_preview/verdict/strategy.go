package verdict

import v1 "kubevirt.io/api/core/v1"

// This file is about the evictionStrategy that a VMI carries: which one counts, and where it came from.

// Source is where the strategy that a VMI carries came from.
type Source string

const (
	Own       Source = "own"       // the VM's template says it
	Defaulted Source = "defaulted" // virt-api wrote the cluster's when the VMI was created (pkg/defaults/defaults.go:208-211)
	Cluster   Source = "cluster"   // the VMI carries none, so the cluster's counts at each eviction
	// OwnOrDefaulted is for a VMI without a VM: nothing tells what its creator wrote.
	OwnOrDefaulted Source = "own or defaulted"
	// NoSource is for a VMI whose VM could not be read.
	NoSource Source = "unknown"
)

// Carried is the strategy that counts for a VMI (VMIEvictionStrategy, pkg/util/migrations/migrations.go:116-122).
func (p Platform) Carried(vmi *v1.VirtualMachineInstance) v1.EvictionStrategy {
	if vmi.Spec.EvictionStrategy != nil {
		return *vmi.Spec.EvictionStrategy
	}
	return p.Strategy
}

// SourceOf says where the strategy that the VMI carries came from.
func SourceOf(s Situation) Source {
	carried := s.VMI.Spec.EvictionStrategy
	switch {
	case carried == nil:
		return Cluster
	case s.VM == nil && s.Unknown.VM != "":
		return NoSource
	case s.VM == nil:
		return OwnOrDefaulted
	}
	if own := templateOf(s.VM).EvictionStrategy; own != nil && *own == *carried {
		return Own
	}
	return Defaulted
}

// AfterRestart is the strategy that the VM's next VMI will carry.
func (p Platform) AfterRestart(vm *v1.VirtualMachine) v1.EvictionStrategy {
	if own := templateOf(vm).EvictionStrategy; own != nil {
		return *own
	}
	return p.Strategy
}

// templateOf is the spec of the VMIs that a VM starts.
func templateOf(vm *v1.VirtualMachine) v1.VirtualMachineInstanceSpec {
	if vm.Spec.Template == nil {
		return v1.VirtualMachineInstanceSpec{}
	}
	return vm.Spec.Template.Spec
}

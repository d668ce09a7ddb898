package controlplane

import (
	v1 "kubevirt.io/api/core/v1"
)

// machineType is what QEMU makes of KubeVirt's default, q35.
const machineType = "q35"

// hardware is what every node's virt-handler says of the machine: those of the labels of pkg/virt-handler/node-labeller
// that hold on a server with Intel's Skylake, one as the other, so that a VM may move between any two.
var hardware = hardwareLabels()

func hardwareLabels() map[string]string {
	const host = "Skylake-Server-IBRS"
	labels := map[string]string{
		v1.CPUModelVendorLabel + "Intel":                  "true",
		v1.HostModelCPULabel + host:                       "true",
		v1.CPUTimerLabel + "tsc-frequency":                "2593993000",
		v1.CPUTimerLabel + "tsc-scalable":                 "false",
		v1.CPUManager:                                     "false",
		v1.DeprecatedCPUManager:                           "false",
		v1.SupportedMachineTypeLabel + machineType:        "true",
		v1.SupportedMachineTypeLabel + "pc-q35-rhel9.6.0": "true",
	}
	for prefix, names := range map[string][]string{
		v1.CPUModelLabel:                  {host, "Broadwell", "Haswell", "IvyBridge", "Nehalem", "Penryn", "SandyBridge", "Skylake-Client-IBRS", "Westmere"},
		v1.SupportedHostModelMigrationCPU: {host, "Broadwell", "Haswell", "IvyBridge", "Nehalem", "Penryn", "SandyBridge", "Skylake-Client-IBRS", "Westmere"},
		v1.HostModelRequiredFeaturesLabel: {"arch-capabilities", "hypervisor", "invtsc", "md-clear", "pdpe1gb", "ss", "ssbd", "stibp", "tsc_adjust", "umip", "vmx"},
		v1.CPUFeatureLabel:                {"aes", "apic", "arch-capabilities", "avx", "avx2", "avx512f", "clflush", "hypervisor", "invtsc", "md-clear", "pdpe1gb", "ss", "ssbd", "stibp", "tsc_adjust", "umip", "vmx", "xsaves"},
		v1.HypervLabel:                    {"base", "frequencies", "ipi", "reenlightenment", "reset", "runtime", "synic", "synic2", "synictimer", "time", "tlbflush", "vpindex"},
	} {
		for _, name := range names {
			labels[prefix+name] = "true"
		}
	}
	return labels
}

// What somebody has to know before the change lands.
package main

import (
	"fmt"
	"slices"

	v1 "kubevirt.io/api/core/v1"

	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
)

// blocks says whether the CR keeps a deletion from removing VMs (pkg/virt-operator/webhooks/webhook.go:55).
func blocks(kv *v1.KubeVirt) bool {
	return kv.Spec.UninstallStrategy != "" && kv.Spec.UninstallStrategy != v1.KubeVirtUninstallStrategyRemoveWorkloads
}

// removal is what the deletion of a CR does.
func removal(kv *v1.KubeVirt) string {
	if blocks(kv) {
		return "Its deletion is refused while there are VMs and it is Deployed (pkg/virt-operator/webhooks/webhook.go:55-91)."
	}
	return "Its deletion removes every VM: no uninstallStrategy keeps them (pkg/virt-operator/webhooks/webhook.go:55)."
}

func (r *report) cautions(old, new *v1.KubeVirt) {
	add := func(format string, arguments ...any) {
		r.Cautions = append(r.Cautions, fmt.Sprintf(format, arguments...))
	}
	if blocks(old) && !blocks(new) {
		add("From now on a deletion of the KubeVirt removes every VM: uninstallStrategy no longer keeps them (pkg/virt-operator/webhooks/webhook.go:55).")
	}
	if slices.ContainsFunc(r.Objects, func(o object) bool { return o.Restarts && o.Name == "DaemonSet "+components.VirtHandlerName }) {
		add("virt-handler restarts on every node: let it land while no migration runs (kubevirt#18720). Whether one runs is not seen here.")
	}
	if len(r.Spec) > 0 && updating(old) {
		add("The old CR's status says that VMIs are being updated: a change of the CR while update migrations run can kill VMs (kubevirt#18720).")
	}
	for _, g := range r.Gates {
		if !g.On {
			add("Feature gate %s goes off: a running VM that uses it may not migrate or start again as it is.", g.Name)
		}
	}
	if s := new.Spec.Configuration.EvictionStrategy; s != nil && !slices.Contains(strategies[1:], *s) {
		add("KubeVirt knows no evictionStrategy %q: every VMI that is created without one of its own is refused.", *s)
	}
}

// updating says whether a live CR's status shows outdated VMIs, or a deployment under way.
func updating(kv *v1.KubeVirt) bool {
	s := kv.Status
	return s.OutdatedVirtualMachineInstanceWorkloads != nil && *s.OutdatedVirtualMachineInstanceWorkloads > 0 ||
		s.Phase != "" && s.Phase != v1.KubeVirtPhaseDeployed || s.ObservedDeploymentID != s.TargetDeploymentID
}

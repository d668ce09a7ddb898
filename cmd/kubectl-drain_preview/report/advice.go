package report

import (
	"fmt"
	"slices"

	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// This file is what to do, as commands to copy.

// Advice is one thing to do, for some VMs.
type Advice struct {
	// Do says what and why; Commands are one a VM.
	Do       string   `json:"do"`
	Commands []string `json:"commands"`
}

// advised are the things to do, in this order; a VM counts for the first that is about it.
var advised = []struct {
	do      string
	about   func(VM) bool
	command func(VM) string
}{
	{"Restart once, at a time that suits its owner. It carries the strategy of the day it was started; then it carries the platform's:",
		func(vm VM) bool {
			return blockedByStrategy(vm) && vm.afterRestart != "" && vm.afterRestart != string(v1.EvictionStrategyLiveMigrate)
		},
		restart},
	{"It would carry LiveMigrate after a restart as well. Talk to its owner, and stop it for the drain:",
		func(vm VM) bool { return blockedByStrategy(vm) && vm.afterRestart != "" }, func(vm VM) string { return virtctl("stop", vm) }},
	{"It carries LiveMigrate, and who asked for that is not known. Talk to its owner:", blockedByStrategy, describe},
	{"Talk to the owner of the PodDisruptionBudget that selects it:",
		func(vm VM) bool { return vm.Drain.Cause == verdict.ByBudget },
		func(vm VM) string { return fmt.Sprintf("kubectl get pdb -n %s", vm.Namespace) }},
	{"Talk to its owner: no other node can take it, so it has to be stopped for the drain:",
		func(vm VM) bool { return vm.Drain.Cause == verdict.ByPlace }, func(vm VM) string { return virtctl("stop", vm) }},
	{"Take the mark of an evacuation that is over from it:",
		func(vm VM) bool { return vm.Drain.Cause == verdict.ByStaleMark },
		func(vm VM) string { return fmt.Sprintf("virtctl evacuate-cancel vmi -n %s %s", vm.Namespace, vm.Name) }},
	{"Ask its owner to move it, or to let it be deleted; a drain only marks it:",
		func(vm VM) bool { return vm.Drain.Cause == verdict.ByOwner }, describe},
	{"Tell its owner before you drain. It stays off, or may; to start it again afterwards:",
		func(vm VM) bool {
			return vm.RunStrategy != "" && vm.RunStrategy != string(v1.RunStrategyHalted) &&
				(vm.Drain.Fate == verdict.StaysOff || vm.Drain.Fate == verdict.StaysOffIfClean)
		}, start},
}

func advice(r *Report) []Advice {
	found := make([]Advice, len(advised))
	seen := map[string]bool{}
	for _, vm := range r.VMs {
		for i, a := range advised {
			if !a.about(vm) {
				continue
			}
			found[i].Do = a.do
			if command := a.command(vm); !seen[command] {
				seen[command] = true
				found[i].Commands = append(found[i].Commands, command)
			}
			break
		}
	}
	var given []Advice
	for _, a := range found {
		if len(a.Commands) > 0 {
			given = append(given, a)
		}
	}
	unknown := func(vm VM) bool { return vm.Drain.Fate == verdict.Unknown }
	if r.Drains == verdict.Ends && len(r.VMs) > 0 && !slices.ContainsFunc(r.VMs, unknown) {
		drains := Advice{Do: "Drain, and let it wait for the migrations:"}
		for _, node := range r.Nodes {
			drains.Commands = append(drains.Commands, "kubectl drain --ignore-daemonsets --delete-emptydir-data "+node)
		}
		given = append(given, drains)
	}
	return given
}

func blockedByStrategy(vm VM) bool { return vm.Drain.Cause == verdict.ByStrategy }

func virtctl(verb string, vm VM) string {
	return fmt.Sprintf("virtctl %s -n %s %s", verb, vm.Namespace, vm.Name)
}

func describe(vm VM) string {
	return fmt.Sprintf("kubectl describe vmi -n %s %s", vm.Namespace, vm.Name)
}

// restart is virtctl's, but for a VM that it refuses to restart (pkg/virt-api/rest/lifecycle.go:438).
func restart(vm VM) string { return virtctlUnlessOnce("restart", vm) }

// start is virtctl's, but for a VM that it refuses to start (pkg/virt-api/rest/lifecycle.go:145).
func start(vm VM) string { return virtctlUnlessOnce("start", vm) }

func virtctlUnlessOnce(verb string, vm VM) string {
	if vm.RunStrategy == string(v1.RunStrategyOnce) {
		return fmt.Sprintf("kubectl delete vmi -n %s %s", vm.Namespace, vm.Name)
	}
	return virtctl(verb, vm)
}

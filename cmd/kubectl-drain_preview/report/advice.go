package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// This file is what to do, as commands to copy.

// Advice is one thing to do, for some VMs or for one node.
type Advice struct {
	// Do says what and why; Commands are one a VM, or one after the other for a node.
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
			return by(verdict.ByStrategy)(vm) && vm.NextStrategy != "" && vm.NextStrategy != string(v1.EvictionStrategyLiveMigrate)
		},
		restart},
	{"It would carry LiveMigrate after a restart as well. Talk to its owner, and stop it for the drain:",
		func(vm VM) bool { return by(verdict.ByStrategy)(vm) && vm.NextStrategy != "" }, stop},
	{"It carries LiveMigrate, and who asked for that is not known. Talk to its owner:", by(verdict.ByStrategy), describe},
	{"Talk to the owner of the PodDisruptionBudget that selects it:", by(verdict.ByBudget),
		func(vm VM) string { return kubectl("get", "pdb", "-n", vm.Namespace) }},
	{"No other node takes it. Make room, or talk to its owner and stop it for the drain:", by(verdict.ByPlace), stop},
	{"Take the mark of an evacuation that is over from it:", by(verdict.ByStaleMark),
		func(vm VM) string {
			return "virtctl evacuate-cancel vmi -n " + quoted(vm.Namespace) + " " + quoted(vm.Name)
		}},
	{"Make room in the ResourceQuota that refuses the target of its migration:", by(verdict.ByQuota),
		func(vm VM) string { return kubectl("get", "resourcequota", "-n", vm.Namespace) }},
	{"See why the target of its migration does not start:", by(verdict.ByTarget),
		func(vm VM) string {
			return kubectl("describe", "pods", "-n", vm.Namespace, "-l", "vm.kubevirt.io/name="+vm.Name)
		}},
	{"See what keeps its second launcher, and delete it if nothing does:", func(vm VM) bool { return by(verdict.ByLeftover)(vm) && vm.Phase != "" },
		func(vm VM) string {
			return kubectl("get", "pods", "-n", vm.Namespace, "-l", "vm.kubevirt.io/name="+vm.Name, "-o", "wide")
		}},
	{"Its VMI is gone. Delete the launcher that is left:", by(verdict.ByLeftover),
		func(vm VM) string { return kubectl("delete", "pod", "-n", vm.Namespace, vm.Launcher) }},
	{"Its migrations do not come to an end. See why:", by(verdict.ByMigration),
		func(vm VM) string { return kubectl("get", "vmim", "-n", vm.Namespace, "-o", "wide") }},
	{"Let whoever attached the utility volume take it away; until then it does not migrate:", by(verdict.ByVolume), describe},
	{"Let the cluster migrate: raise the limit in the KubeVirt CR, configuration.migrations:", by(verdict.ByLimit),
		func(VM) string { return kubectl("get", "kubevirt", "-A", "-o", "yaml") }},
	{"Bring its node back, or, if the machine is off for sure, say so to Kubernetes with the taint out-of-service:", by(verdict.ByNode),
		func(vm VM) string { return kubectl("describe", "node", vm.Node) }},
	{"Its hotplugged volume is here without its launcher. See what keeps its pod:", by(verdict.ByHotplug),
		func(vm VM) string {
			return kubectl("get", "pods", "-n", vm.Namespace, "-l", "kubevirt.io=hotplug-disk", "-o", "wide")
		}},
	{"Ask its owner to move it, or to let it be deleted; a drain only marks it:", by(verdict.ByOwner), describe},
	{"Tell its owner before you drain. It stays off, or may; to start it again afterwards:",
		func(vm VM) bool {
			return vm.RunStrategy != "" && vm.RunStrategy != "unknown" && vm.RunStrategy != string(v1.RunStrategyHalted) &&
				(vm.Drain.Outcome == verdict.StaysOff || vm.Drain.Outcome == verdict.StaysOffIfClean)
		}, start},
}

func by(cause verdict.Cause) func(VM) bool {
	return func(vm VM) bool { return vm.Drain.Cause == cause }
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
	given := slices.DeleteFunc(found, func(a Advice) bool { return len(a.Commands) == 0 })
	return append(given, drains(r)...)
}

// drains are the nodes whose drain would end, one after the other: the one with the fewest VMs first, as it asks for the
// least room and, let in again, gives the most.
func drains(r *Report) []Advice {
	var given []Advice
	nodes := slices.Clone(r.Nodes)
	slices.SortStableFunc(nodes, func(a, b string) int { return cmp.Compare(len(r.On(a)), len(r.On(b))) })
	nodes = slices.DeleteFunc(nodes, func(node string) bool {
		vms := r.On(node)
		return len(vms) == 0 || slices.ContainsFunc(vms, func(vm VM) bool { return vm.Drain.End != verdict.Ends })
	})
	for i, node := range nodes {
		do := "Drain it"
		if len(r.Nodes) > 1 {
			do = "Drain " + node
		}
		if slices.ContainsFunc(r.On(node), func(vm VM) bool { return vm.Drain.Outcome == verdict.Migrates }) {
			do += ", and let it wait for the migrations"
		}
		commands := []string{"kubectl drain --ignore-daemonsets --delete-emptydir-data " + quoted(node)}
		if len(nodes) > 1 {
			commands = append(commands, "kubectl uncordon "+quoted(node))
			if i < len(nodes)-1 {
				do += "; let pods in again before the next, and ask again then"
			}
		}
		given = append(given, Advice{do + ":", commands})
	}
	return given
}

func kubectl(args ...string) string {
	text := "kubectl"
	for _, arg := range args {
		text += " " + quoted(arg)
	}
	return text
}

// quoted is a word as a shell reads it back.
func quoted(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./=:,", c)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" && !strings.ContainsFunc(word, func(c rune) bool { return !plain(c) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func virtctl(verb string, vm VM) string {
	return fmt.Sprintf("virtctl %s -n %s %s", verb, quoted(vm.Namespace), quoted(vm.Name))
}

func describe(vm VM) string { return kubectl("describe", "vmi", "-n", vm.Namespace, vm.Name) }

// restart is virtctl's, but for a VM that it refuses to restart (pkg/virt-api/rest/lifecycle.go:438).
func restart(vm VM) string { return virtctlIfItDoes("restart", vm) }

// start is virtctl's, but for a VM that it refuses to start (pkg/virt-api/rest/lifecycle.go:145).
func start(vm VM) string { return virtctlIfItDoes("start", vm) }

// stop is virtctl's where there is a VM to stop.
func stop(vm VM) string {
	if vm.RunStrategy == "" {
		return deleteVMI(vm)
	}
	return virtctl("stop", vm)
}

func virtctlIfItDoes(verb string, vm VM) string {
	switch vm.RunStrategy {
	case "", string(v1.RunStrategyOnce), string(v1.RunStrategyWaitAsReceiver):
		return deleteVMI(vm)
	}
	return virtctl(verb, vm)
}

func deleteVMI(vm VM) string { return kubectl("delete", "vmi", "-n", vm.Namespace, vm.Name) }

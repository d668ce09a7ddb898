// What an eviction is answered, as the promises state it: first what a VMI carries, then a table that is read from
// the top. Nothing here looks at how KubeVirt decides; eviction_matrix_test.go compares the two.
package contract

import v1 "kubevirt.io/api/core/v1"

const (
	unset      = v1.EvictionStrategy("")
	none       = v1.EvictionStrategyNone
	migrate    = v1.EvictionStrategyLiveMigrate
	ifPossible = v1.EvictionStrategyLiveMigrateIfPossible
	external   = v1.EvictionStrategyExternal
)

// noPromise marks a rule that no promise speaks of; it is judged like the others.
const noPromise = "the rest"

// carries is the strategy that holds for a VMI: its VM's own (P6), else the one stamped on it when it was created
// (P7). The platform's strategy before the switch was LiveMigrate; KubeVirt's own default is None.
func carries(s situation) v1.EvictionStrategy {
	switch {
	case s.own != unset:
		return s.own
	case s.created == beforeTheSwitch:
		return migrate
	case s.cluster != unset:
		return s.cluster
	}
	return none
}

// rules decide from the top: the first that matches holds.
var rules = []struct {
	promise string
	says    string
	when    func(situation) bool
	then    verdict
	loses   string // what the operator or the tenant loses when KubeVirt no longer keeps it
}{
	{"P10", "a hotplug pod is held while its launcher and its VMI exist",
		func(s situation) bool { return s.pod == hotplug }, denied(aboutTheHotplugPod),
		"a drain pulls a disk out from under a running VM"},
	{"P10", "a hotplug pod goes once its launcher is done or its VMI is gone",
		func(s situation) bool { return s.pod == hotplugOfADoneLauncher || s.pod == hotplugOfAGoneVMI }, allowed,
		"a leftover hotplug pod blocks the drain"},
	{noPromise, "a completed launcher is no VM any more and goes",
		func(s situation) bool { return s.pod == completed }, allowed,
		"a finished pod blocks the drain"},
	{"P5", "None: let through, whatever the VM could do",
		func(s situation) bool { return carries(s) == none }, allowed,
		"a tenant that opted out of migration blocks the drain"},
	{"P1", "LiveMigrate, and it cannot migrate: denied every time",
		func(s situation) bool { return carries(s) == migrate && !s.canMigrate() }, denied(notMigratable),
		"a tenant that opted in to being asked is shut down by a drain"},
	{"P2", "LiveMigrateIfPossible, and it cannot migrate: let through, not marked",
		func(s situation) bool { return carries(s) == ifPossible && !s.canMigrate() }, allowed,
		"kubectl drain waits for ever for a VM that cannot migrate"},
	{"P3", "migrating already: the answer is the same each time, and nothing more is asked for",
		func(s situation) bool { return s.marked && carries(s) != external }, denied(inProgress),
		"kubectl drain stops retrying while a VM still migrates"},
	{"P4", "External and marked already: its owner still decides",
		func(s situation) bool { return s.marked }, denied(inProgress),
		"a tenant's worker is shut down before its provider has replaced it"},
	{"P3", "the target of a migration is no reason to start another",
		func(s situation) bool { return s.pod == target && carries(s) != external }, denied(aboutTheTarget),
		"a migration's target is shut down under it"},
	{"P4", "External: the target pod is held like the source",
		func(s situation) bool { return s.pod == target }, denied(aboutTheTarget),
		"a migration's target is shut down under it"},
	{"P3", "LiveMigrate or LiveMigrateIfPossible, and it can migrate: marked, and denied until it has moved",
		func(s situation) bool { return carries(s) == migrate || carries(s) == ifPossible }, marked,
		"a drain restarts VMs that could have migrated"},
	{"P4", "External: marked, and denied until its owner has acted, migratable or not",
		func(s situation) bool { return carries(s) == external }, marked,
		"a tenant's worker is shut down before its provider has replaced it"},
}

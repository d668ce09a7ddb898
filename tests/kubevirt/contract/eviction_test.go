// The eviction promises, each judged over the part of the matrix that it speaks of; and what the chart's own policy
// makes of P2 and P3, with no value of it set by a test.
package contract

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
)

// pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go decides P1 (147-150), P2 and P3 (152-155),
// P4 (156-157), P5 (160-162) and P10 (100-125); pkg/util/migrations/migrations.go:116-122 decides P6.

func TestP01_UnderLiveMigrateAVMIThatCannotMigrateIsNeverEvicted(t *testing.T) { judge(t, "P1") }

func TestP02_UnderLiveMigrateIfPossibleAVMIThatCannotMigrateIsLetGo(t *testing.T) { judge(t, "P2") }

func TestP03_AVMIThatCanMigrateIsMarkedAndHeldUntilItHasMoved(t *testing.T) { judge(t, "P3") }

func TestP04_ExternalIsMarkedAndHeldWhetherItCanMigrateOrNot(t *testing.T) { judge(t, "P4") }

func TestP05_NoneIsLetGoEvenIfItCouldMigrate(t *testing.T) { judge(t, "P5") }

func TestP10_AHotplugPodIsHeldWhileItsLauncherAndVMIExist(t *testing.T) { judge(t, "P10") }

func TestALauncherThatIsDoneIsLetGo(t *testing.T) { judge(t, noPromise) }

// judge compares KubeVirt with the rules of one promise, in every combination that they decide.
func judge(t *testing.T, promise string) {
	t.Helper()
	broken, seen := 0, 0
	for _, j := range askAll(t) {
		if j.rule < 0 || rules[j.rule].promise != promise {
			continue
		}
		seen++
		rule := rules[j.rule]
		why := rule.then.brokenBy(j.situation, j.answer)
		if why == "" {
			continue
		}
		if broken++; broken <= 3 { // the rest are like it
			t.Errorf("%s is broken: %s.\n  lost:     %s\n  where:    %s\n  answered: allowed %t, %d %q, evacuationNodeName %q: %s",
				promise, rule.says, rule.loses, j.situation, j.allowed, j.code, j.message, j.after.Status.EvacuationNodeName, why)
		}
	}
	require.NotZero(t, seen, "%s is judged in some combination", promise)
	if broken > 0 {
		t.Errorf("%s is broken in %d of %d combinations", promise, broken, seen)
	}
}

// The dimensions times each other: a combination that no rule speaks of would go unjudged.
func TestEveryCombinationIsDecidedByOneRuleAndEveryRuleDecidesSome(t *testing.T) {
	byRule := map[int]int{}
	for _, j := range askAll(t) {
		require.GreaterOrEqual(t, j.rule, 0, "no rule for: %s", j.situation)
		byRule[j.rule]++
	}
	for i, rule := range rules {
		assert.NotZero(t, byRule[i], "%s, %q, decides no combination", rule.promise, rule.says)
	}
	want := len(strategies) * len(strategies) * len(creations) * len(migratables) * 2 * len(dryRuns) * len(askers) * len(pods)
	assert.Len(t, askAll(t), want, "the matrix is complete")
}

// What the platform ships, with nothing overridden, for a VM without a strategy of its own.
func TestP02_WhatThePlatformShipsLetsADrainEnd(t *testing.T) {
	for _, migratable := range []k8sv1.ConditionStatus{k8sv1.ConditionFalse, ""} {
		a := askTheChart(t, migratable)
		assert.True(t, a.allowed, "P2 is broken by the chart: kubectl drain waits for ever for a VM that cannot migrate "+
			"(LiveMigratable %q): %d %s", migratable, a.code, a.message)
		assert.Empty(t, a.after.Status.EvacuationNodeName, "P2 is broken by the chart: a VM that cannot migrate is marked for it")
	}
}

func TestP03_WhatThePlatformShipsMigratesWhatCan(t *testing.T) {
	a := askTheChart(t, k8sv1.ConditionTrue)
	assert.False(t, a.allowed, "P3 is broken by the chart: a drain restarts VMs that could have migrated")
	assert.Equal(t, here, a.after.Status.EvacuationNodeName, "P3 is broken by the chart: nothing asks for the migration")
}

func askTheChart(t *testing.T, migratable k8sv1.ConditionStatus) answer {
	t.Helper()
	config := clusterConfig(t, rendered(t))
	return ask(t, config, create(t, config, newVMI(unset)), situation{migratable: migratable, pod: source, asker: drain})
}

func TestP06_AVMsOwnStrategyWinsOverTheClustersBothWays(t *testing.T) {
	first := map[situation]judged{}
	for _, j := range askAll(t) {
		if j.own == unset {
			continue
		}
		key := j.situation
		key.cluster, key.created = "", ""
		if _, known := first[key]; !known {
			first[key] = j
			continue
		}
		require.Equal(t, outcome(first[key]), outcome(j),
			"P6 is broken: the cluster's strategy decides over the VM's own, so a tenant's opt-out does not hold.\n  %s\n  %s",
			first[key].situation, j.situation)
	}
	require.NotEmpty(t, first)
}

// pkg/defaults/defaults.go:208-211, called on a create only (mutators/vmi-mutator.go:111,123).
func TestP07_AVMIFromBeforeTheSwitchKeepsLiveMigrateUntilARestart(t *testing.T) {
	now := clusterConfig(t, rendered(t))
	old := create(t, clusterConfig(t, withStrategy(rendered(t), migrate)), newVMI(unset))
	require.NotNil(t, old.Spec.EvictionStrategy, "P7: the mutating webhook stamps the cluster's strategy on a new VMI")
	assert.Equal(t, migrate, *old.Spec.EvictionStrategy)

	for _, asker := range []string{drain, updater} {
		a := ask(t, now, old, situation{pod: source, asker: asker})
		assert.False(t, a.allowed, "P7 is broken: %s shuts down a VM whose tenant was promised LiveMigrate", asker)
		assert.EqualValues(t, 429, a.code)
	}

	restarted := create(t, now, newVMI(unset))
	require.NotNil(t, restarted.Spec.EvictionStrategy, "P7 is broken: one restart does not bring the new strategy")
	assert.Equal(t, ifPossible, *restarted.Spec.EvictionStrategy, "P7 is broken: one restart does not bring the new strategy")
	assert.True(t, ask(t, now, restarted, situation{pod: source, asker: updater}).allowed,
		"P7 is broken: after its restart a VM that cannot migrate still holds the drain and the upgrade")
}

func TestP07_AnUpdateOfAVMINeverChangesTheStrategyItCarries(t *testing.T) {
	old := create(t, clusterConfig(t, withStrategy(rendered(t), migrate)), newVMI(unset))
	after := mutate(t, clusterConfig(t, rendered(t)), old, admissionv1.Update)
	require.NotNil(t, after.Spec.EvictionStrategy)
	assert.Equal(t, migrate, *after.Spec.EvictionStrategy,
		"P7 is broken: the switch reaches running VMIs, and the drain after it restarts VMs nobody was told about")
}

func TestP07_TheVMsOwnStrategyIsNeverReplaced(t *testing.T) {
	config := clusterConfig(t, rendered(t))
	for _, own := range strategies[1:] {
		vmi := create(t, config, newVMI(own))
		require.NotNil(t, vmi.Spec.EvictionStrategy)
		assert.Equal(t, own, *vmi.Spec.EvictionStrategy, "P7 is broken: a tenant's own choice is overwritten")
	}
}

func TestP08_ADryRunGetsTheSameAnswerAndMarksNothing(t *testing.T) {
	real := map[situation]judged{}
	for _, j := range askAll(t) {
		if j.dryRun == "" {
			real[j.situation] = j
		}
	}
	for _, j := range askAll(t) {
		if j.dryRun == "" {
			continue
		}
		key := j.situation
		key.dryRun = ""
		require.Equal(t, [3]any{real[key].allowed, real[key].code, real[key].message}, [3]any{j.allowed, j.code, j.message},
			"P8 is broken: kubectl drain --dry-run=server says something else than the drain will: %s", j.situation)
		require.Equal(t, j.marked, j.after.Status.EvacuationNodeName != "",
			"P8 is broken: a dry run starts a migration: %s", j.situation)
		require.NotContains(t, j.after.Annotations, v1.EvictionSourceAnnotation, "P8 is broken: a dry run leaves a trace: %s", j.situation)
	}
}

// The descheduler takes a refusal for a migration under way when its text says so, and then does not evict more VMs
// in its stead. It looks for "Eviction triggered evacuation" (kubernetes-sigs/descheduler, pkg/descheduler/evictions).
func TestP11_TheDeschedulersEvictionIsMarkedAndItsMessageKeepsItsForm(t *testing.T) {
	seen := 0
	for _, j := range askAll(t) {
		source := j.after.Annotations[v1.EvictionSourceAnnotation]
		asked := j.asker == descheduler && !j.marked && j.after.Status.EvacuationNodeName != ""
		if !asked {
			require.Empty(t, source, "P11 is broken: an eviction counts as the descheduler's: %s", j.situation)
			continue
		}
		seen++
		require.Equal(t, "descheduler", source, "P11 is broken: a migration does not say that the descheduler wanted it: %s", j.situation)
		require.True(t, strings.Contains(j.message, "Eviction triggered evacuation"),
			"P11 is broken: the descheduler takes %q for a failure, and evicts more: %s", j.message, j.situation)
	}
	require.NotZero(t, seen)
}

// outcome is what the asker and the VMI get.
func outcome(j judged) [4]any {
	return [4]any{j.allowed, j.code, j.message, j.after.Status.EvacuationNodeName}
}

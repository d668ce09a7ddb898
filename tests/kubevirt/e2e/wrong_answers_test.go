package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "kubevirt.io/api/core/v1"
)

// This file is every wrong answer that a cluster could give, and what the suite must say of it.

// wrongAnswers are told to the suite by a proxy, about a VM that the API server itself answers rightly for.
var wrongAnswers = []struct {
	wrong string // what the cluster does
	vm    string
	told  lies
	says  string
}{
	{"refuses the non-migratable, as under the old policy", nonMigratable,
		lies{eviction: kubeVirtRefuses("VMI non-migratable is configured with an eviction strategy but is not live-migratable")},
		"the eviction of a VMI with LiveMigrateIfPossible and LiveMigratable=false is answered 429, " + denied + "VMI non-migratable is " +
			"configured with an eviction strategy but is not live-migratable; expected 201, it may go"},
	{"refuses the non-migratable, to evacuate it", nonMigratable, lies{eviction: kubeVirtRefuses(evacuates(nonMigratable))},
		"LiveMigratable=false is answered 429, " + denied + evacuates(nonMigratable) + "; expected 201, it may go"},
	{"allows the migratable", migratable, lies{eviction: allowed()},
		"LiveMigratable=true is answered 201, it may go; expected 429, denied the request: " + evacuates(migratable)},
	{"refuses the migratable for another VMI", migratable, lies{eviction: kubeVirtRefuses(evacuates("other"))},
		"is answered 429, " + denied + evacuates("other") + "; expected 429, denied the request: " + evacuates(migratable)},
	{"refuses the migratable in KubeVirt's words, but not with 429", migratable,
		lies{eviction: refused(http.StatusForbidden, "", denied+evacuates(migratable))},
		"LiveMigratable=true is answered 403, " + denied + evacuates(migratable) + "; expected 429"},
	{"has a PodDisruptionBudget refuse the migratable", migratable, lies{eviction: budgetRefuses()},
		"LiveMigratable=true is answered 429, " + overBudget + "; expected 429, denied the request: "},
	{"has a PodDisruptionBudget refuse the non-migratable", nonMigratable, lies{eviction: budgetRefuses()},
		"LiveMigratable=false is answered 429, " + overBudget + "; expected 201, it may go"},
	{"cannot reach the eviction webhook", nonMigratable,
		lies{eviction: refused(http.StatusInternalServerError, metav1.StatusReasonInternalError, `failed calling webhook "virt-launcher-eviction-interceptor.kubevirt.io": EOF`)},
		`is answered 500, failed calling webhook "virt-launcher-eviction-interceptor.kubevirt.io": EOF; expected 201, it may go`},
	{"does not let this user evict", migratable, lies{eviction: mayNotEvict()},
		"cannot be asked about: error: default/migratable cannot be verified: may not create pods/eviction"},
	{"allows an opt-out that cannot migrate", optedOut, lies{eviction: allowed()},
		"LiveMigrate and LiveMigratable=false is answered 201, it may go; expected 429, " +
			"VMI opted-out is configured with an eviction strategy but is not live-migratable"},
	{"evacuates an opt-out that cannot migrate", optedOut, lies{eviction: kubeVirtRefuses(evacuates(optedOut))},
		"is answered 429, " + denied + evacuates(optedOut) + "; expected 429, VMI opted-out is configured"},
	{"allows an External one", external, lies{eviction: allowed()},
		"External and LiveMigratable=true is answered 201"},

	{"gives the VMI another strategy, which lets it go too", nonMigratable, onVMI(carrying(v1.EvictionStrategyNone)),
		"carries the eviction strategy None, and LiveMigrateIfPossible after a restart: restart it once"},
	{"gives the VMI the strategy from before the switch", nonMigratable, onVMI(carrying(v1.EvictionStrategyLiveMigrate)),
		"is answered 201, it may go; expected 429, VMI non-migratable is configured"},
	{"gives the VMI no strategy", migratable, onVMI(func(vmi *v1.VirtualMachineInstance) { vmi.Spec.EvictionStrategy = nil }),
		"carries no eviction strategy, which virt-api fills in"},
	{"overrides the VM's own strategy", optedOut, onVMI(carrying(v1.EvictionStrategyLiveMigrateIfPossible)),
		"is answered 429, " + denied + "VMI opted-out is configured with an eviction strategy but is not live-migratable; expected 201"},
	{"has no launcher", nonMigratable, lies{launchers: func([]corev1.Pod, bool) []corev1.Pod { return nil }},
		"has no launcher that could be asked about"},

	{"replaces the pod during the dry run", nonMigratable, lies{launchers: afterwards(func(pods []corev1.Pod) []corev1.Pod {
		pods[0].UID = "2"
		return pods
	})}, "expected that a dry run changes nothing; its launcher was replaced"},
	{"loses the pod in the dry run", nonMigratable, lies{launchers: afterwards(func([]corev1.Pod) []corev1.Pod { return nil })},
		"expected that a dry run changes nothing; its launcher is gone"},
	{"takes the pod down in the dry run", nonMigratable, lies{launchers: afterwards(terminating)},
		"expected that a dry run changes nothing; its launcher is being deleted"},
	{"starts a second launcher in the dry run", migratable, lies{launchers: afterwards(func(pods []corev1.Pod) []corev1.Pod {
		second := pods[0].DeepCopy()
		second.Name, second.UID = "second", "2"
		return append(pods, *second)
	})}, "expected that a dry run changes nothing; a second launcher was started, second"},
	{"marks the VMI although it was a dry run", migratable, lies{vmi: func(vmi *v1.VirtualMachineInstance, asked bool) {
		if asked {
			vmi.Status.EvacuationNodeName = vmi.Status.NodeName
		}
	}}, "expected that a dry run changes nothing; it is marked for evacuation from "},
	{"marks the External one although it was a dry run", external, lies{vmi: func(vmi *v1.VirtualMachineInstance, asked bool) {
		if asked {
			vmi.Status.EvacuationNodeName = vmi.Status.NodeName
		}
	}}, "expected that a dry run changes nothing; it is marked for evacuation from "},
	{"replaces the VMI during the dry run", nonMigratable, lies{vmi: func(vmi *v1.VirtualMachineInstance, asked bool) {
		if asked {
			vmi.UID = "2"
		}
	}}, "expected that a dry run changes nothing; its VMI was replaced"},
}

func TestTheSuiteFailsOnEveryWrongAnswerAndSaysWhich(t *testing.T) {
	t.Parallel()
	said := make([]string, len(wrongAnswers))
	t.Run("told", func(t *testing.T) {
		for i, answer := range wrongAnswers {
			t.Run(answer.wrong, func(t *testing.T) {
				t.Parallel()
				require.NotEmpty(t, answer.says)
				run := suite(t, behindProxy(t, answer.vm, answer.told), "VM=default/"+answer.vm)
				said[i] = strings.TrimPrefix(run.verdicts, "FAILED")
				assert.False(t, run.passed, "the suite takes it for right:\n%s", run.output)
				assert.Regexp(t, `^FAILED +default/`+answer.vm+`: [^\n]*$`, run.verdicts, "one verdict, on that VM:\n%s", run.output)
				assert.Contains(t, run.verdicts, answer.says)
			})
		}
	})
	table := "| a cluster that… | asked about | the suite says |\n| --- | --- | --- |\n"
	for i, answer := range wrongAnswers {
		_, message, _ := strings.Cut(said[i], ": ")
		table += fmt.Sprintf("| %s | %s | %s |\n", answer.wrong, answer.vm, message)
	}
	fmt.Print(table)
	require.NoError(t, os.WriteFile(filepath.Join(out(), "e2e-wrong-answers.md"), []byte(table), 0o644))
}

// What the suite waits for before it asks, chainsaw says.
func TestAVMThatCannotBeJudgedIsNotAskedAbout(t *testing.T) {
	t.Parallel()
	for wrong, told := range map[string]lies{
		"drops the condition LiveMigratable": onVMI(func(vmi *v1.VirtualMachineInstance) {
			vmi.Status.Conditions = without(vmi, v1.VirtualMachineInstanceIsMigratable)
		}),
		"does not know whether the VMI can migrate": onVMI(func(vmi *v1.VirtualMachineInstance) {
			vmi.Status.Conditions = append(without(vmi, v1.VirtualMachineInstanceIsMigratable),
				v1.VirtualMachineInstanceCondition{Type: v1.VirtualMachineInstanceIsMigratable, Status: corev1.ConditionUnknown})
		}),
		"does not run the VMI": onVMI(func(vmi *v1.VirtualMachineInstance) { vmi.Status.Phase = v1.Scheduled }),
	} {
		t.Run(wrong, func(t *testing.T) {
			t.Parallel()
			run := suite(t, behindProxy(t, migratable, told), "VM=default/"+migratable)
			assert.False(t, run.passed, run.output)
			assert.Regexp(t, `^FAILED +0 of 1 VMs were asked about`, run.verdicts)
		})
	}
}

// Each branch passes, and the proxy is not what the suite fails on.
func TestTheSuitePassesThroughAProxyThatTellsNoLies(t *testing.T) {
	for vm, branch := range map[string]string{
		migratable: "migratable", nonMigratable: "non-migratable", optedOut: "live-migrate-non-migratable", external: "external",
		waiting: "live-migrate-migratable", lettingGo: "none",
	} {
		t.Run(vm, func(t *testing.T) {
			t.Parallel()
			run := suite(t, behindProxy(t, vm, lies{}), "VM=default/"+vm, "REQUIRE_BRANCHES="+branch)
			assert.True(t, run.passed, run.output)
			assert.Regexp(t, `^`+branch+` +default/`+vm+`: [^\n]*$`, run.verdicts)
		})
	}
}

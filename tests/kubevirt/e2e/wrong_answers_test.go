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
		"the eviction of a VMI with LiveMigrateIfPossible and LiveMigratable=False was answered 429, Error from server: " + denied + "VMI non-migratable is " +
			"configured with an eviction strategy but is not live-migratable; expected 201, it may go"},
	{"refuses the non-migratable, to evacuate it", nonMigratable, lies{eviction: kubeVirtRefuses(evacuates(nonMigratable))},
		"LiveMigratable=False was answered 429, Error from server: " + denied + evacuates(nonMigratable) + "; expected 201, it may go"},
	{"allows the migratable", migratable, lies{eviction: allowed()},
		"LiveMigratable=True was answered 201, it may go; expected 429, denied the request: " + evacuates(migratable)},
	{"refuses the migratable for another VMI", migratable, lies{eviction: kubeVirtRefuses(evacuates("other"))},
		"was answered 429, Error from server: " + denied + evacuates("other") + "; expected 429, denied the request: " + evacuates(migratable)},
	{"refuses the migratable in KubeVirt's words, but not with 429", migratable,
		lies{eviction: refused(http.StatusForbidden, "", denied+evacuates(migratable))},
		"LiveMigratable=True was answered 403, Error from server: " + denied + evacuates(migratable) + "; expected 429"},
	{"has a PodDisruptionBudget refuse the migratable", migratable, lies{eviction: budgetRefuses()},
		"LiveMigratable=True was answered 429, Error from server (TooManyRequests): " + overBudget + "; expected 429, denied the request: "},
	{"has a PodDisruptionBudget refuse the non-migratable", nonMigratable, lies{eviction: budgetRefuses()},
		"LiveMigratable=False was answered 429, Error from server (TooManyRequests): " + overBudget + "; expected 201, it may go"},
	{"cannot reach the eviction webhook", nonMigratable,
		lies{eviction: refused(http.StatusInternalServerError, metav1.StatusReasonInternalError, `failed calling webhook "virt-launcher-eviction-interceptor.kubevirt.io": EOF`)},
		`was answered 500, Error from server (InternalError): failed calling webhook "virt-launcher-eviction-interceptor.kubevirt.io": EOF; expected 201, it may go`},
	{"does not let this user evict", migratable, lies{eviction: refused(http.StatusForbidden, metav1.StatusReasonForbidden, `cannot create resource "pods/eviction"`)},
		`was answered 403, Error from server (Forbidden): cannot create resource "pods/eviction"; expected 429`},
	{"allows an opt-out that cannot migrate", optedOut, lies{eviction: allowed()},
		"LiveMigrate and LiveMigratable=False was answered 201, it may go; expected 429, " +
			"denied the request: VMI opted-out is configured with an eviction strategy but is not live-migratable"},
	{"evacuates an opt-out that cannot migrate", optedOut, lies{eviction: kubeVirtRefuses(evacuates(optedOut))},
		"was answered 429, Error from server: " + denied + evacuates(optedOut) + "; expected 429, denied the request: VMI opted-out is configured"},
	{"allows an External one", external, lies{eviction: allowed()},
		"External and LiveMigratable=True was answered 201"},

	{"drops the condition LiveMigratable", nonMigratable,
		onVMI(func(vmi *v1.VirtualMachineInstance) {
			vmi.Status.Conditions = without(vmi, v1.VirtualMachineInstanceIsMigratable)
		}),
		"has the condition LiveMigratable 'missing', which should be True or False"},
	{"does not know whether the VMI can migrate", migratable,
		onVMI(func(vmi *v1.VirtualMachineInstance) {
			vmi.Status.Conditions = append(without(vmi, v1.VirtualMachineInstanceIsMigratable),
				v1.VirtualMachineInstanceCondition{Type: v1.VirtualMachineInstanceIsMigratable, Status: corev1.ConditionUnknown})
		}),
		"has the condition LiveMigratable 'Unknown', which should be True or False"},
	{"gives the VMI another strategy, which lets it go too", nonMigratable, onVMI(carrying(v1.EvictionStrategyNone)),
		"carries the eviction strategy 'None', not the LiveMigrateIfPossible of its platform"},
	{"gives the VMI the strategy from before the switch", nonMigratable, onVMI(carrying(v1.EvictionStrategyLiveMigrate)),
		"carries the eviction strategy 'LiveMigrate', not the LiveMigrateIfPossible of its platform"},
	{"gives the VMI no strategy", migratable, onVMI(func(vmi *v1.VirtualMachineInstance) { vmi.Spec.EvictionStrategy = nil }),
		"carries the eviction strategy 'none at all', not the LiveMigrateIfPossible of its platform"},
	{"overrides the VM's own strategy", optedOut, onVMI(carrying(v1.EvictionStrategyLiveMigrateIfPossible)),
		"carries the eviction strategy 'LiveMigrateIfPossible', not the LiveMigrate of its VM"},
	{"does not run the VMI", migratable, onVMI(func(vmi *v1.VirtualMachineInstance) { vmi.Status.Phase = v1.Scheduled }),
		"is Scheduled, not Running"},
	{"has two launchers", nonMigratable, lies{launchers: func(pods []corev1.Pod, _ bool) []corev1.Pod {
		second := pods[0].DeepCopy()
		second.Name, second.UID = "second", "2"
		return append(pods, *second)
	}}, "has 2 launchers, not 1"},
	{"has no launcher", nonMigratable, lies{launchers: func([]corev1.Pod, bool) []corev1.Pod { return nil }},
		"has 0 launchers, not 1"},
	{"is taking the launcher down already", nonMigratable, lies{launchers: func(pods []corev1.Pod, _ bool) []corev1.Pod { return terminating(pods) }},
		"that is being deleted already"},
	{"is evacuating the VMI already", migratable, onVMI(func(vmi *v1.VirtualMachineInstance) { vmi.Status.EvacuationNodeName = "a" }),
		"is being evacuated from node a already"},

	{"replaces the pod during the dry run", nonMigratable, lies{launchers: afterwards(func(pods []corev1.Pod) []corev1.Pod {
		pods[0].UID = "2"
		return pods
	})}, "had its launcher replaced during a dry run"},
	{"loses the pod in the dry run", nonMigratable, lies{launchers: afterwards(func([]corev1.Pod) []corev1.Pod { return nil })},
		"had its launcher replaced during a dry run: uid"},
	{"takes the pod down in the dry run", nonMigratable, lies{launchers: afterwards(terminating)},
		"deleted by a dry run"},
	{"starts a second launcher in the dry run", migratable, lies{launchers: afterwards(func(pods []corev1.Pod) []corev1.Pod {
		second := pods[0].DeepCopy()
		second.Name, second.UID = "second", "2"
		return append(pods, *second)
	})}, "has 2 launchers after a dry run"},
	{"marks the VMI although it was a dry run", migratable, lies{vmi: func(vmi *v1.VirtualMachineInstance, asked bool) {
		if asked {
			vmi.Status.EvacuationNodeName = vmi.Status.NodeName
		}
	}}, "was marked for evacuation from node "},
	{"marks the External one although it was a dry run", external, lies{vmi: func(vmi *v1.VirtualMachineInstance, asked bool) {
		if asked {
			vmi.Status.EvacuationNodeName = vmi.Status.NodeName
		}
	}}, "was marked for evacuation from node "},
	{"replaces the VMI during the dry run", nonMigratable, lies{vmi: func(vmi *v1.VirtualMachineInstance, asked bool) {
		if asked {
			vmi.UID = "2"
		}
	}}, "was replaced by another VMI during a dry run"},
}

func TestTheSuiteFailsOnEveryWrongAnswerAndSaysWhich(t *testing.T) {
	t.Parallel()
	said := make([]string, len(wrongAnswers))
	t.Run("told", func(t *testing.T) {
		for i, answer := range wrongAnswers {
			t.Run(answer.wrong, func(t *testing.T) {
				t.Parallel()
				require.NotEmpty(t, answer.says)
				run := suite(t, behindProxy(t, answer.told), "VM=default/"+answer.vm)
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

// Each branch passes, and the proxy is not what the suite fails on.
func TestTheSuitePassesThroughAProxyThatTellsNoLies(t *testing.T) {
	for vm, branch := range map[string]string{
		migratable: "migratable", nonMigratable: "non-migratable", optedOut: "live-migrate-non-migratable", external: "external",
		waiting: "live-migrate-migratable", lettingGo: "none",
	} {
		t.Run(vm, func(t *testing.T) {
			t.Parallel()
			run := suite(t, behindProxy(t, lies{}), "VM=default/"+vm, "REQUIRE_BRANCHES="+branch)
			assert.True(t, run.passed, run.output)
			assert.Regexp(t, `^`+branch+` +default/`+vm+`: [^\n]*$`, run.verdicts)
		})
	}
}

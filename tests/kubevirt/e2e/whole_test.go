package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// This file runs the suite whole, with the VMs that it makes itself.

// A run that passes and one that fails both take away what they made. No test that runs beside it makes anything.
func TestTheSuiteMakesVMsOfEveryBranchAndLeavesTheClusterAsItWas(t *testing.T) {
	t.Parallel()
	provideStorage(t)
	user := privileged(t)
	before := snapshot(t)
	t.Run("runs", func(t *testing.T) {
		t.Run("it passes and names the branches", func(t *testing.T) {
			t.Parallel()
			run := suite(t, user, "STORAGE_CLASS="+shared, "REQUIRE_BRANCHES=migratable,non-migratable")
			assert.True(t, run.passed, run.output)
			assert.Equal(t, map[string]string{
				"container-disk":       "migratable",
				"bridge-network":       "non-migratable",
				"storage-class":        "migratable", // CDI's profile says ReadWriteMany
				"opt-out-live-migrate": "live-migrate-non-migratable",
				"opt-out-external":     "external",
			}, branches(run), run.output)
		})
		t.Run("it fails where anything may go", func(t *testing.T) {
			t.Parallel()
			run := suite(t, behindProxy(t, "", lies{eviction: allowed()}), "STORAGE_CLASS="+local)
			assert.False(t, run.passed, run.output)
			assert.Equal(t, map[string]string{
				"container-disk":       "FAILED",
				"bridge-network":       "non-migratable",
				"storage-class":        "non-migratable", // CDI has no profile, so it is ReadWriteOnce
				"opt-out-live-migrate": "FAILED",
				"opt-out-external":     "FAILED",
			}, branches(run), run.output)
		})
	})
	assert.Empty(t, changes(before, snapshot(t)), "the suite leaves something behind, or changes what was there")
}

// branches is the first word of each verdict, by VM.
func branches(run ran) map[string]string {
	found := map[string]string{}
	for _, verdict := range strings.Split(run.verdicts, "\n") {
		branch, rest, _ := strings.Cut(verdict, " ")
		vm, _, _ := strings.Cut(strings.TrimSpace(rest), ":")
		found[vm[strings.Index(vm, "/")+1:]] = branch
	}
	return found
}

func TestABranchThatIsRequiredAndDoesNotRunIsAFailure(t *testing.T) {
	t.Parallel()
	run := suite(t, cluster.Kubeconfig, "VM=default/"+migratable, "REQUIRE_BRANCHES=migratable,non-migratable")
	assert.False(t, run.passed, run.output)
	assert.Regexp(t, `(?m)^migratable +default/migratable: `, run.verdicts)
	assert.Regexp(t, `(?m)^FAILED +no answer came to the branch non-migratable: name a VM or a STORAGE_CLASS that leads to it$`, run.verdicts)
}

func TestTheSuiteRefusesWhatItCannotWorkWith(t *testing.T) {
	for _, refusal := range []struct{ name, kubeconfig, setting, says string }{
		{"no kubeconfig", "", "VM=", "no KUBECONFIG: name the cluster to ask, make e2e KUBECONFIG=path"},
		{"a kubeconfig that is not there", "nowhere", "VM=", "KUBECONFIG is nowhere, which cannot be read"},
		{"no kubectl", cluster.Kubeconfig, "KUBECTL=nowhere", "nowhere is not there: install kubectl, or name one, KUBECTL=path"},
		{"a VM without a namespace", cluster.Kubeconfig, "VM=migratable", "VM is migratable; name it as namespace/name"},
		{"a branch that does not exist", cluster.Kubeconfig, "REQUIRE_BRANCHES=migrateable", "REQUIRE_BRANCHES names migrateable; the branches are: migratable "},
	} {
		t.Run(refusal.name, func(t *testing.T) {
			run := suite(t, refusal.kubeconfig, refusal.setting)
			assert.False(t, run.passed)
			assert.Contains(t, run.output, "make e2e: "+refusal.says)
			assert.NotContains(t, run.output, "Loading tests", "it refuses before it asks anything")
		})
	}
}

// A VM that was made to show an opt-out and shows something else has shown nothing.
func TestAVMThatComesToAnotherBranchThanItWasMadeForIsAFailure(t *testing.T) {
	t.Parallel()
	ask := exec.CommandContext(t.Context(), filepath.Join(root, "tests", "e2e", "ask.sh"), "default", external, "live-migrate-non-migratable")
	ask.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "DRAIN_PREVIEW="+filepath.Join(root, "bin", "kubectl-drain_preview"))
	output, err := ask.CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(output), "default/external: comes to the branch external, with LiveMigratable=true; it was made to be asked as live-migrate-non-migratable")
}

func TestAVMThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	run := suite(t, cluster.Kubeconfig, "VM=default/nobody")
	assert.False(t, run.passed)
	assert.Contains(t, run.output, "nobody")
	assert.Regexp(t, `^FAILED +0 of 1 VMs were asked about`, run.verdicts)
}

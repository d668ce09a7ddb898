package main

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"cozy-kubevirt/cmd/kubectl-drain_preview/plain"
	"cozy-kubevirt/tests/kubevirt/internal/chart"
	"cozy-kubevirt/tests/kubevirt/internal/modules"
)

func TestMain(m *testing.M) {
	quiet()
	os.Exit(m.Run())
}

// rendered is the chart's CR as text.
func rendered(t *testing.T) string {
	raw, err := yaml.Marshal(chart.Render(t, chart.Options{}).Object("KubeVirt").Object)
	require.NoError(t, err)
	return string(raw)
}

// change replaces a text of the CR, which must be there.
func replace(t *testing.T, cr, old, new string) string {
	t.Helper()
	require.Contains(t, cr, old)
	return strings.Replace(cr, old, new, 1)
}

func impact(t *testing.T, old, new string) (int, string, error) {
	t.Helper()
	dir, out := t.TempDir(), &strings.Builder{}
	o := options{old: filepath.Join(dir, "old.yaml"), new: filepath.Join(dir, "new.yaml"), output: "text"}
	require.NoError(t, os.WriteFile(o.old, []byte(old), 0o600))
	require.NoError(t, os.WriteFile(o.new, []byte(new), 0o600))
	status, err := run(context.Background(), o, out)
	return status, out.String(), err
}

func TestEachChangeIsToldWithItsEffect(t *testing.T) {
	cr := rendered(t)
	parsed := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(cr), &parsed))
	for name, c := range map[string]struct {
		new    string
		status int
		says   []string
	}{
		"a comment":     {"# why\n" + cr, noEffect, []string{"No effect on a running cluster."}},
		"order of keys": {"kind: KubeVirt\n" + replace(t, cr, "kind: KubeVirt\n", ""), noEffect, []string{"No effect on a running cluster."}},
		"the eviction strategy": {replace(t, cr, "evictionStrategy: LiveMigrateIfPossible", "evictionStrategy: LiveMigrate"), effect,
			[]string{`can't migrate, created from now on: an eviction: was "is let go", is "is refused"`, "no pod of KubeVirt restarts"}},
		"a gate on":  {replace(t, cr, "- HotplugVolumes\n", "- HotplugVolumes\n      - VGPULiveMigration\n"), effect, []string{"VGPULiveMigration (Alpha) goes on"}},
		"a gate off": {replace(t, cr, "      - CPUManager\n", ""), beware, []string{"CAUTION", "CPUManager goes off"}},
		"virt-handler's memory": {replace(t, cr, `"memory":"2Gi"`, `"memory":"3Gi"`), beware,
			[]string{"virt-handler restarts on every node", "DaemonSet virt-handler changes, pods restart"}},
		"migrations": {replace(t, cr, "    evictionStrategy:", "    migrations: {parallelMigrationsPerCluster: 9}\n    evictionStrategy:"), effect,
			[]string{"migrations at once: 5 -> 9"}},
		"uninstallStrategy removed": {replace(t, cr, "  uninstallStrategy: BlockUninstallIfWorkloadsExist\n", ""), beware,
			[]string{"removes every VM", "all of them restart"}},
		"a renamed CR":            {replace(t, cr, "  name: kubevirt\n", "  name: other\n"), beware, []string{"The KubeVirt is another"}},
		"a patch that is no JSON": {replace(t, cr, "patch: '{", "patch: '{{"), beware, []string{"REFUSED"}},
		"a wrong type":            {replace(t, cr, "imagePullPolicy: IfNotPresent", "imagePullPolicy: true"), beware, []string{"REFUSED"}},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, err := impact(t, cr, c.new)
			require.NoError(t, err)
			assert.Equal(t, c.status, status, out)
			for _, says := range c.says {
				assert.Contains(t, out, says)
			}
		})
	}
}

func TestWhatIsNoSingleKubeVirtIsAClearError(t *testing.T) {
	cr := rendered(t)
	for name, c := range map[string]struct{ new, says string }{
		"another API version": {replace(t, cr, "kubevirt.io/v1", "kubevirt.io/v1alpha3"), "expected kubevirt.io/v1"},
		"two CRs":             {cr + "---\n" + cr, "two documents of kind KubeVirt"},
		"none":                {"kind: ConfigMap\n", "no document of kind KubeVirt"},
		"no YAML":             {"kind: [", "is not YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, err := impact(t, cr, c.new)
			assert.Equal(t, untold, status)
			assert.ErrorContains(t, err, c.says)
		})
	}
}

// Written from facts: the policies that other distributions have.
func TestOtherDistributionsPoliciesAreToldAgainstOurs(t *testing.T) {
	cr := rendered(t)
	for name, c := range map[string]struct{ theirs, says string }{
		"LiveMigrate without Evict":  {replace(t, replace(t, cr, "    - Evict\n", ""), "LiveMigrateIfPossible", "LiveMigrate"), "evicts: false -> true"},
		"no methods during upgrades": {replace(t, cr, "    workloadUpdateMethods:\n    - LiveMigrate\n    - Evict\n", "    workloadUpdateMethods: []\n"), "migrates: false -> true"},
		"LiveMigrateIfPossible":      {replace(t, cr, "    - Evict\n", ""), `can't migrate, runs already: an upgrade: was "not touched", is "restarts"`},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, err := impact(t, c.theirs, cr)
			require.NoError(t, err)
			assert.Equal(t, effect, status, out)
			assert.Contains(t, out, c.says)
		})
	}
}

func TestTheChangelogSaysWhatThePolicyChangeFlips(t *testing.T) {
	cr := chart.Render(t, chart.Options{}).KubeVirt
	before, live := cr.DeepCopy(), v1.EvictionStrategyLiveMigrate
	before.Spec.Configuration.EvictionStrategy = &live
	changelog, err := os.ReadFile(chart.RepoFile(t, "CHANGELOG.md"))
	require.NoError(t, err)
	_, entry, found := strings.Cut(string(changelog), "  - `make impact` says it so:\n")
	require.True(t, found)
	want := ""
	for _, flip := range flips(before, cr) {
		want += "    - " + flip.String() + "\n"
	}
	require.NotEmpty(t, want)
	assert.True(t, strings.HasPrefix(entry, want+"- "), "CHANGELOG.md, breaking entry: write\n%s", want)
}

func TestTextOfACRIsEscaped(t *testing.T) {
	assert.NotContains(t, plain.Text("a\x1b[2J\nb"), "\x1b")
	assert.NotContains(t, plain.Text("a\nb"), "\n")
}

func TestEveryFieldOfTheConfigurationHasARow(t *testing.T) {
	for path, of := range map[string]reflect.Type{
		"": reflect.TypeFor[v1.KubeVirtConfiguration](), "developerConfiguration.": reflect.TypeFor[v1.DeveloperConfiguration](),
	} {
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			assert.Contains(t, rows, path+name)
		}
	}
}

func TestEveryRowsSourceLineReadsTheField(t *testing.T) {
	for path, row := range rows {
		assert.Contains(t, modules.Line(t, row.source), row.reads, "%s: %s", path, row.source)
	}
}

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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"cozy-kubevirt/cmd/kubectl-drain_preview/plain"
	"cozy-kubevirt/internal/git"
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

func TestTheReportIsSavedAsTheJSONThatIsPrinted(t *testing.T) {
	cr, dir := rendered(t), t.TempDir()
	o := options{old: filepath.Join(dir, "old.yaml"), new: filepath.Join(dir, "new.yaml"), save: filepath.Join(dir, "saved.json")}
	require.NoError(t, os.WriteFile(o.old, []byte(cr), 0o600))
	require.NoError(t, os.WriteFile(o.new, []byte(replace(t, cr, "evictionStrategy: LiveMigrateIfPossible", "evictionStrategy: LiveMigrate")), 0o600))
	for output, says := range map[string]string{"json": `"evictionStrategy"`, "markdown": "```text", "text": "Answers that flip"} {
		o.output = output
		out := &strings.Builder{}
		_, err := run(context.Background(), o, out)
		require.NoError(t, err)
		assert.Contains(t, out.String(), says)
		saved, err := os.ReadFile(o.save)
		require.NoError(t, err)
		if output == "json" {
			assert.Equal(t, out.String(), string(saved))
		}
		assert.Contains(t, string(saved), `"deploymentID"`)
	}
	o.save = filepath.Join(dir, "nowhere", "saved.json")
	status, err := run(context.Background(), o, &strings.Builder{})
	assert.Equal(t, untold, status)
	assert.ErrorContains(t, err, o.save)
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

// repository is one with the chart as its only commit.
func repository(t *testing.T) (top string) {
	top = t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(top, "charts", "kubevirt"), os.DirFS(chart.Dir(t))))
	for _, arguments := range [][]string{{"init", "--quiet"}, {"add", "--all"},
		{"-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "--quiet", "--message", "base"}} {
		_, err := git.Run(t.Context(), top, nil, arguments...)
		require.NoError(t, err)
	}
	return top
}

func TestTheWorkingTreeIsComparedWithACommitOverEveryValuesSet(t *testing.T) {
	top := repository(t)
	o := options{base: "HEAD", chart: filepath.Join("charts", "kubevirt")}
	compare := func() (says string, reached int) {
		pairs, err := compareCharts(t.Context(), top, o)
		require.NoError(t, err)
		for _, pair := range pairs {
			r, err := judge(t.Context(), pair)
			require.NoError(t, err)
			if !r.none() {
				reached += len(pair.sets)
				says += r.body()
			}
		}
		return says, reached
	}
	_, reached := compare()
	assert.Zero(t, reached, "nothing has changed")

	cr := filepath.Join(top, "charts", "kubevirt", "templates", "kubevirt-cr.yaml")
	text, err := os.ReadFile(cr)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cr, []byte(replace(t, string(text), "batchEvictionSize: 10", "batchEvictionSize: 5")), 0o644))
	says, reached := compare()
	assert.Contains(t, says, "evictions a batch: 10 -> 5")
	assert.Equal(t, len(chart.ValuesFiles(t))*len(chart.KubeVersions), reached, "every values set on every Kubernetes")

	o.values = chart.ValuesFiles(t)["vgpu"]
	_, reached = compare()
	assert.Equal(t, len(chart.KubeVersions), reached, "with VALUES, those alone")
	o.base = "no-such-commit"
	_, err = compareCharts(t.Context(), top, o)
	assert.ErrorContains(t, err, "no-such-commit")
}

func TestARouteThatComesGoesOrChangesIsTold(t *testing.T) {
	ingress := func(name, host string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": map[string]any{"name": name, "namespace": "cozy-kubevirt"},
			"spec": map[string]any{"rules": []any{map[string]any{"host": host}}},
		}}
	}
	was := ingress("vm-exportproxy", "old.example.org")
	for name, c := range map[string]struct {
		new  []*unstructured.Unstructured
		says []string
	}{
		"the same":      {[]*unstructured.Unstructured{ingress("vm-exportproxy", "old.example.org")}, nil},
		"another host":  {[]*unstructured.Unstructured{ingress("vm-exportproxy", "new.example.org")}, []string{"Ingress cozy-kubevirt/vm-exportproxy changes", "new.example.org"}},
		"another name":  {[]*unstructured.Unstructured{ingress("exports", "old.example.org")}, []string{"Ingress cozy-kubevirt/exports appears", "Ingress cozy-kubevirt/vm-exportproxy goes"}},
		"none any more": {nil, []string{"Ingress cozy-kubevirt/vm-exportproxy goes"}},
	} {
		routes, err := changedRoutes([]*unstructured.Unstructured{was}, c.new)
		require.NoError(t, err, name)
		r := &report{Routes: routes}
		assert.Equal(t, len(c.says) == 0, r.none(), name)
		for _, says := range c.says {
			assert.Contains(t, strings.Join(r.routeLines(), "\n"), says, name)
		}
	}
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

// docs/eviction.md names a test for every promise, and every test that it names exists. Its runbook's command is run.
package contract

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
)

const promises = 22

func readPage(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(chart.RepoFile(t, "docs", "eviction.md"))
	require.NoError(t, err)
	return string(raw)
}

func TestEveryTestThatThePageNamesExists(t *testing.T) {
	exist := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	require.NoError(t, filepath.WalkDir(chart.RepoFile(t, "tests"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, match := range declared.FindAllStringSubmatch(string(raw), -1) {
			exist[match[1]] = true
		}
		return err
	}))
	named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(readPage(t), -1)
	require.NotEmpty(t, named)
	for _, name := range named {
		assert.True(t, exist[name], "docs/eviction.md says that %s proves something, and there is no such test", name)
	}
}

func TestEveryPromiseOnThePageHasATestOrSaysThatItHasNone(t *testing.T) {
	page := readPage(t)
	for n := 1; n <= promises; n++ {
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| P%d \|.*\|(.*)\|$`, n)).FindStringSubmatch(page)
		if !assert.NotNil(t, row, "docs/eviction.md has no row for P%d", n) {
			continue
		}
		proved := strings.Contains(row[1], "`Test") || strings.Contains(row[1], "read from source, not run")
		assert.True(t, proved, "docs/eviction.md names no test for P%d", n)
	}
}

// Every promise that a test here names is on the page: a new one is not forgotten there.
func TestEveryTestWithAPromisesNumberIsOnThePage(t *testing.T) {
	page := readPage(t)
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(`(?m)^func TestP(\d+)_`).FindAllStringSubmatch(string(raw), -1) {
			assert.Regexp(t, fmt.Sprintf(`(?m)^\| P%s \|`, strings.TrimLeft(match[1], "0")), page)
		}
	}
}

func TestP21_TheRunbooksCommandListsTheSameVMIs(t *testing.T) {
	command := regexp.MustCompile(`kubectl get vmi -A -o go-template='(.*)'`).FindStringSubmatch(readPage(t))
	require.NotNil(t, command, "docs/eviction.md says how to find the VMIs that need a restart")
	cr := rendered(t)
	before, now := clusterConfig(t, withStrategy(cr, migrate)), clusterConfig(t, cr)

	vmi := func(name string, created *v1.VirtualMachineInstance, canMigrate k8sv1.ConditionStatus) map[string]any {
		created.Name = name
		if canMigrate != "" {
			created.Status.Conditions = []v1.VirtualMachineInstanceCondition{{Type: v1.VirtualMachineInstanceIsMigratable, Status: canMigrate}}
		}
		return asJSON(t, created)
	}
	bare := newVMI(unset) // one that no webhook has seen
	list := map[string]any{"items": []any{
		vmi("old-and-stuck", create(t, before, newVMI(unset)), k8sv1.ConditionFalse),
		vmi("old-and-starting", create(t, before, newVMI(unset)), ""),
		vmi("old-and-mobile", create(t, before, newVMI(unset)), k8sv1.ConditionTrue),
		vmi("new-and-stuck", create(t, now, newVMI(unset)), k8sv1.ConditionFalse),
		vmi("worker", create(t, now, newVMI(external)), k8sv1.ConditionFalse),
		vmi("bare", bare, k8sv1.ConditionFalse),
	}}
	var printed strings.Builder
	require.NoError(t, template.Must(template.New("").Parse(command[1])).Execute(&printed, list))
	assert.Equal(t, []string{chart.Namespace + "/old-and-stuck", chart.Namespace + "/old-and-starting"}, strings.Fields(printed.String()),
		"P21 is broken: the runbook does not find the VMs that still hold a drain")
}

package helms

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"cozy-kubevirt/internal/chart"
)

// The plugin renders with the Helm that it links, so what differs between these runs is the Helm that calls it: how it
// finds the plugin, and what it passes on.
func TestTheUnitSuitesPassAsAPluginOfEveryHelm(t *testing.T) {
	binary, err := chart.Binary("HELM_UNITTEST", "helm-unittest")
	require.NoError(t, err)
	plugins := t.TempDir()
	folder := filepath.Join(plugins, "unittest")
	require.NoError(t, os.Mkdir(folder, 0o755))
	manifest := fmt.Sprintf("name: unittest\nversion: 0.0.0\nusage: unit tests\ndescription: unit tests\ncommand: %q\n", binary)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "plugin.yaml"), []byte(manifest), 0o644))
	t.Setenv("HELM_PLUGINS", plugins)
	for _, helm := range all {
		out := helm.mustRun(t, "unittest", "--strict", chartDir)
		assert.Regexp(t, `Test Suites: +[1-9]\d* passed, [1-9]\d* total`, out, helm.variable)
		assert.Regexp(t, `Tests: +[1-9]\d* passed, [1-9]\d* total`, out, helm.variable)
	}
}

// The chart as a subchart: the platform's values stand at the top of the parent, and Helm hands down only what stands
// under the subchart's name.
package render

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"cozy-kubevirt/internal/chart"
)

// renderUmbrella renders a parent chart with these values.
func renderUmbrella(t *testing.T, values string) (string, error) {
	t.Helper()
	parent := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(parent, "charts", "cozy-kubevirt"), os.DirFS(chartDir)))
	require.NoError(t, os.WriteFile(filepath.Join(parent, "Chart.yaml"), []byte("apiVersion: v2\nname: umbrella\nversion: 0.1.0\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(parent, "values.yaml"), []byte(values), 0o600))
	return render(t.Context(), parent, chart.KubeVersions[0], nil)
}

func TestASubchartThatThePlatformsValuesDoNotReachIsRefused(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{
		"no values":                    "{}",
		"the platform's at the top":    "_cluster: {root-host: example.org, expose-services: vm-exportproxy}",
		"values, but not the platform": "cozy-kubevirt: {cpuAllocationRatio: 4}",
	} {
		_, err := renderUmbrella(t, values)
		assert.ErrorContains(t, err, "_cluster: not set, and cozy-kubevirt is a subchart here", name)
	}
}

func TestASubchartRendersWithWhatStandsUnderItsName(t *testing.T) {
	t.Parallel()
	rendered, err := renderUmbrella(t, "cozy-kubevirt: {_cluster: {root-host: example.org, expose-services: vm-exportproxy}}")
	require.NoError(t, err)
	assert.Contains(t, rendered, "host: vm-exportproxy.example.org")
	rendered, err = renderUmbrella(t, `cozy-kubevirt: {_cluster: {expose-services: none}}`)
	require.NoError(t, err)
	assert.NotContains(t, rendered, "kind: Ingress")
}

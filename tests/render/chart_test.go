// Package render checks the chart as the helm binary renders it: every values set, whole documents, real types.
package render

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"cozy-kubevirt/internal/chart"
)

var update = flag.Bool("update", false, "rewrite the goldens from what the chart renders now")

const chartDir = "../../charts/kubevirt"

// render renders the chart at path (a directory or an archive) with the values files; arguments are more of helm
// template's.
func render(ctx context.Context, path, kubeVersion string, valuesFiles []string, arguments ...string) (string, error) {
	return chart.Template(ctx, chart.Rendering{Chart: path, KubeVersion: kubeVersion, Values: valuesFiles, Arguments: arguments})
}

func mustRender(t *testing.T, path, kubeVersion string, valuesFiles ...string) string {
	t.Helper()
	out, err := render(t.Context(), path, kubeVersion, valuesFiles)
	require.NoError(t, err)
	return out
}

// renderValues renders the chart with values given as YAML text.
func renderValues(t *testing.T, values string, arguments ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(values), 0o600))
	return render(t.Context(), chartDir, chart.KubeVersions[0], []string{file}, arguments...)
}

// valuesSets returns the ci values sets by name.
func valuesSets(t testing.TB) map[string]string {
	t.Helper()
	sets, err := chart.MustSets(chartDir)
	require.NoError(t, err)
	return sets
}

// renderings holds a func() (string, error) for each set and version, so that what several tests look at is
// rendered once.
var renderings sync.Map

// eachRendering runs check on every ci values set under every Kubernetes version, in parallel.
func eachRendering(t *testing.T, check func(t *testing.T, set, kubeVersion, rendered string)) {
	t.Helper()
	for set, file := range valuesSets(t) {
		for _, kubeVersion := range chart.KubeVersions {
			t.Run(set+" on Kubernetes "+kubeVersion, func(t *testing.T) {
				t.Parallel()
				once, _ := renderings.LoadOrStore(set+" "+kubeVersion, sync.OnceValues(func() (string, error) {
					return render(context.Background(), chartDir, kubeVersion, []string{file})
				}))
				rendered, err := once.(func() (string, error))()
				require.NoError(t, err)
				check(t, set, kubeVersion, rendered)
			})
		}
	}
}

// What `helm package` puts into the archive, and that the archive renders what the directory renders.
package render

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"cozy-kubevirt/internal/chart"
)

func TestTheArchiveHoldsNothingButWhatTheChartNeeds(t *testing.T) {
	t.Parallel()
	files := contents(t, packageChart(t))
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	assert.Equal(t, []string{
		"cozy-kubevirt/Chart.yaml",
		"cozy-kubevirt/README.md",
		"cozy-kubevirt/templates/NOTES.txt",
		"cozy-kubevirt/templates/_helpers.tpl",
		"cozy-kubevirt/templates/kubevirt-cr.yaml",
		"cozy-kubevirt/templates/vm-exportproxy-ingress.yaml",
		"cozy-kubevirt/templates/vm-exportproxy-tlsroute.yaml",
		"cozy-kubevirt/values.schema.json",
		"cozy-kubevirt/values.yaml",
	}, names)
}

func TestTheArchiveRendersWhatTheDirectoryRenders(t *testing.T) {
	t.Parallel()
	archive := packageChart(t)
	sets := valuesSets(t)
	eachRendering(t, func(t *testing.T, set, kubeVersion, rendered string) {
		assert.Equal(t, rendered, mustRender(t, archive, kubeVersion, sets[set]))
	})
}

func TestPackagingTwiceGivesTheSameContent(t *testing.T) {
	t.Parallel()
	assert.Equal(t, contents(t, packageChart(t)), contents(t, packageChart(t)))
}

// An unanchored pattern also drops files of that name deeper down, and only when the chart is a directory
// (cozystack#4389).
func TestEveryHelmignorePatternIsAnchored(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(chartDir, ".helmignore"))
	require.NoError(t, err)
	patterns := 0
	for _, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		patterns++
		assert.True(t, strings.HasPrefix(line, "/"), "%s/.helmignore: %q is not anchored; start it with /", chartDir, line)
	}
	assert.NotZero(t, patterns)
}

func TestTheHelmignoreAtTheTopIsALinkToTheCharts(t *testing.T) {
	t.Parallel()
	target, err := os.Readlink("../../.helmignore")
	require.NoError(t, err)
	assert.Equal(t, "charts/kubevirt/.helmignore", target)
}

func packageChart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	helm, err := chart.Binary("HELM", "helm")
	require.NoError(t, err)
	_, err = chart.Run(t.Context(), helm, "package", chartDir, "--destination", dir)
	require.NoError(t, err)
	archives, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	require.NoError(t, err)
	require.Len(t, archives, 1)
	return archives[0]
}

// contents returns the archive's files by name.
func contents(t *testing.T, archive string) map[string]string {
	t.Helper()
	file, err := os.Open(archive)
	require.NoError(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	files := map[string]string{}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		text, err := io.ReadAll(reader)
		require.NoError(t, err)
		files[header.Name] = string(text)
	}
}

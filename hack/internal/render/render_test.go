package render

import (
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // Helm's warnings about values that it overwrites
	os.Exit(m.Run())
}

const fixture = "../../mutate/testdata/chart"

// lines sorts the lines of a message: a schema lists its faults in another order in every run.
func lines(err error) []string {
	if err == nil {
		return nil
	}
	sorted := strings.Split(err.Error(), "\n")
	slices.Sort(sorted)
	return sorted
}

func TestSaysWhatHelmItselfSays(t *testing.T) {
	chart, err := Open(fixture)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"nothing":        "",
		"another value":  "level: 5",
		"null":           "level: null",
		"a wrong type":   "level: [1]",
		"several faults": "{level: 6, extra: A}",
	} {
		t.Run(name, func(t *testing.T) {
			values, err := chartutil.ReadValues([]byte(text))
			require.NoError(t, err)
			var want map[string]string
			top, wantErr := chartutil.ToRenderValues(chart.Helm(), values, chartutil.ReleaseOptions{Name: "release", Namespace: Namespace}, chartutil.DefaultCapabilities)
			if wantErr == nil {
				want, wantErr = engine.Render(chart.Helm(), top)
			}
			got, gotErr := chart.Render(values, Target{KubeVersion: "1.34.2"})
			assert.Equal(t, want, got)
			assert.Equal(t, lines(wantErr), lines(gotErr))
			assert.True(t, want != nil || wantErr != nil)
		})
	}
}

func TestReplacesOneFileAndLeavesTheChartAlone(t *testing.T) {
	chart, err := Open(fixture)
	require.NoError(t, err)
	changed, err := chart.With("templates/config.yaml", []byte("version: {{ .Capabilities.KubeVersion }}"))
	require.NoError(t, err)
	after, err := changed.Render(nil, Target{KubeVersion: "1.35.0"})
	require.NoError(t, err)
	assert.Equal(t, "version: v1.35.0", after["fixture/templates/config.yaml"])
	before, err := chart.Render(nil, Target{KubeVersion: "1.35.0"})
	require.NoError(t, err)
	assert.Contains(t, before["fixture/templates/config.yaml"], "ConfigMap")
	_, err = chart.With("templates/none.yaml", nil)
	assert.ErrorContains(t, err, "templates/none.yaml")
}

func TestAReplacedSchemaIsTheOneThatJudges(t *testing.T) {
	chart, err := Open(fixture)
	require.NoError(t, err)
	open, err := chart.With("values.schema.json", []byte("{}"))
	require.NoError(t, err)
	values := map[string]any{"level": 6}
	_, err = chart.Render(values, Target{KubeVersion: "1.34.2"})
	assert.ErrorContains(t, err, "at '/level': maximum")
	_, err = open.Render(values, Target{KubeVersion: "1.34.2"})
	assert.NoError(t, err)
}

func TestAMessageIsTheSameWhereverItsLineStands(t *testing.T) {
	assert.Equal(t, "execution error at (a/templates/_b.tpl): x", WithoutPositions("execution error at (a/templates/_b.tpl:18:4): x"))
	assert.Equal(t, "template: a.yaml: at 12:30", WithoutPositions("template: a.yaml:1: at 12:30"))
}

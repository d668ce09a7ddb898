package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"cozy-kubevirt/hack/internal/render"
)

const branches = `a: 1
{{- if .Values.a }}
b: {{ include "part" . }}
{{- range .Values.list }}
c: 1
{{- end }}
{{- else }}
d: 1
{{- end }}
{{- define "part" -}}
e
{{- end }}
`

func TestAChangeIsInTheInnermostListThatHoldsIt(t *testing.T) {
	tests := map[string]struct {
		before, after string
		want          []string
	}{
		"text of the file":      {"a: 1", "a: 2", []string{"templates/a.yaml file 0"}},
		"text of a branch":      {"b: ", "z: ", []string{"templates/a.yaml file 1"}},
		"text of a range":       {"c: 1", "c: 2", []string{"templates/a.yaml file 2"}},
		"text of an else":       {"d: 1", "d: 2", []string{"templates/a.yaml file 3"}},
		"a condition":           {"if .Values.a", "if not .Values.a", []string{"templates/a.yaml file 0"}},
		"what is ranged over":   {"range .Values.list", "range list", []string{"templates/a.yaml file 1"}},
		"text of a define":      {"\ne\n", "\nf\n", []string{"templates/a.yaml part 0"}},
		"a missing else":        {"{{- else }}\n", "", []string{"templates/a.yaml file 0"}},
		"the name of a define":  {`define "part"`, `define "other"`, nil},
		"another kind of block": {"{{- range .Values.list", "{{- with .Values.list", []string{"templates/a.yaml file 1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, branches, test.before)
			after := strings.Replace(branches, test.before, test.after, 1)
			assert.Equal(t, test.want, changedLists("templates/a.yaml", []byte(branches), []byte(after)))
		})
	}
}

// chartOf is the fixture with another template, and the suite's cases as the worker sees them.
func chartOf(t *testing.T, template string) (dir string, chart *render.Chart) {
	t.Helper()
	dir = copyOf(t, "")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "templates/a.yaml"), []byte(template), 0o644))
	chart, err := render.Open(dir)
	require.NoError(t, err)
	return dir, chart
}

func TestAnInputRunsTheListsThatItsValuesLeadTo(t *testing.T) {
	_, chart := chartOf(t, "{{- with .Values.extra }}\nb: {{ . }}\n{{- else }}\nc: 1\n{{- end }}\n")
	p := probe{values: map[string]any{"extra": "word"}}
	p.target.KubeVersion = "1.34.2"
	require.NoError(t, p.see(chart, marked(chart)))
	assert.True(t, p.reach.runs([]string{"templates/a.yaml file 1"}))
	assert.False(t, p.reach.runs([]string{"templates/a.yaml file 2"}))
	assert.True(t, p.reach.runs(nil), "a change that may be anywhere")
}

func TestAnInputThatTheSchemaRefusesRunsNoTemplate(t *testing.T) {
	_, chart := chartOf(t, "a: 1\n")
	p := probe{values: map[string]any{"extra": "1"}}
	p.target.KubeVersion = "1.34.2"
	require.NoError(t, p.see(chart, marked(chart)))
	assert.NotNil(t, p.reach)
	assert.Empty(t, p.reach)
}

// What no case runs may be anything, so it is no equivalent change: nobody would see it break.
func TestALineThatNoCaseRunsIsAGap(t *testing.T) {
	dir, _ := chartOf(t, "{{- if eq .Release.Name \"other\" }}\nkind: Other\n{{- end }}\n")
	found, err := mutate(dir, "tests/*_test.yaml", 1, func(int, int) {})
	require.NoError(t, err)
	gap := ""
	for _, j := range found.Survivors {
		if j.File == "templates/a.yaml" && j.Line == 2 && j.Kind == "change-scalar" {
			gap = j.Witness
		}
	}
	assert.Equal(t, unrun, gap)
}

// A case may put objects into the cluster that the chart asks.
func TestALookupOfACaseFindsItsObjects(t *testing.T) {
	suite := `suite: lookup
templates: [a.yaml]
tests:
  - it: finds what is there
    kubernetesProvider:
      scheme:
        v1/Secret: {gvr: {version: v1, resource: secrets}, namespaced: true}
      objects:
        - {apiVersion: v1, kind: Secret, metadata: {name: known, namespace: NAMESPACE}}
    asserts:
      - isKind: {of: Found}
`
	template := "{{- if lookup \"v1\" \"Secret\" .Release.Namespace \"known\" }}\nkind: Found\n{{- end }}\n"
	dir, _ := chartOf(t, template)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tests/lookup_test.yaml"), []byte(suite), 0o644))
	found, err := mutate(dir, "tests/*_test.yaml", 1, func(int, int) {})
	require.NoError(t, err)
	killers := map[string]bool{}
	for _, j := range found.killed {
		if j.File == "templates/a.yaml" && j.Line == 2 {
			killers[j.Killer] = true
		}
	}
	assert.Equal(t, map[string]bool{"lookup_test.yaml: finds what is there": true}, killers)
}

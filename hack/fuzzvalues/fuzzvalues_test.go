package main

import (
	"io"
	"log"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"cozy-kubevirt/hack/internal/inputs"
	"cozy-kubevirt/hack/internal/render"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // Helm's warnings about values that it overwrites
	os.Exit(m.Run())
}

const chartDir = "../../charts/kubevirt"

// everyInput is made once, which takes seconds.
var everyInput = sync.OnceValues(func() ([]inputs.Input, error) {
	chart, err := render.Open(chartDir)
	if err != nil {
		return nil, err
	}
	return makeInputs(chart, 1, 0)
})

// holed is the chart with a hole: one text of one file replaced.
func holed(t *testing.T, file, before, after string) *render.Chart {
	t.Helper()
	chart, err := render.Open(chartDir)
	require.NoError(t, err)
	require.Contains(t, string(chart.Data(file)), before, "the chart has changed: this test must make its hole elsewhere")
	changed, err := chart.With(file, []byte(strings.ReplaceAll(string(chart.Data(file)), before, after)))
	require.NoError(t, err)
	return changed
}

func TestFindsAHoleInTheChart(t *testing.T) {
	const helpers, cr, schema = "templates/_helpers.tpl", "templates/kubevirt-cr.yaml", "values.schema.json"
	all, err := everyInput()
	require.NoError(t, err)
	for name, test := range map[string]struct{ place, file, before, after, want string }{
		"a string that is not quoted":   {"mdevNameSelector", helpers, ".mdevNameSelector | quote", ".mdevNameSelector", "mdevNameSelector"},
		"a number that is not cut":      {"cpuAllocationRatio", cr, "int64 .", ".", "a number is written as"},
		"a value that is changed":       {"pciVendorSelector", helpers, "{{ .pciVendorSelector | quote }}", "{{ .pciVendorSelector | lower | quote }}", "the values say"},
		"a value that is lost":          {"extraFeatureGates", cr, "\"cozy-kubevirt.featureGates\" .Values.extraFeatureGates", "\"cozy-kubevirt.featureGates\" (list)", "the values say"},
		"a value that changes another":  {"cpuAllocationRatio", cr, "evictionStrategy: LiveMigrateIfPossible", "evictionStrategy: {{ .Values.cpuAllocationRatio | default \"LiveMigrateIfPossible\" | quote }}", "evictionStrategy: rendered"},
		"a refusal that names no path":  {"pciVendorSelector", helpers, "\"%s: %q is not a vendor", "\"%.0s%q is not a vendor", "the message does not name"},
		"a schema that is open":         {"pciHostDevices[0]", schema, `"additionalProperties": false`, `"additionalProperties": true`, "unknownKey"},
		"a comment that a value brings": {"monitorNamespace", cr, "imagePullPolicy: IfNotPresent", "imagePullPolicy: IfNotPresent # {{ .Values.monitorNamespace }}", "the comments are not the chart's own"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := holed(t, test.file, test.before, test.after)
			known, err := expect(changed, targets[0])
			require.NoError(t, err)
			var faults []string
			for _, input := range all {
				if !strings.Contains(input.Dotted(), test.place) {
					continue
				}
				if _, fault := judge(changed, known, targets[0], input); fault != nil {
					faults = append(faults, fault.Error())
				}
			}
			assert.Contains(t, strings.Join(faults, "\n"), test.want)
		})
	}
}

func TestCountsEveryInputOnce(t *testing.T) {
	chart, err := render.Open(chartDir)
	require.NoError(t, err)
	all, err := everyInput()
	require.NoError(t, err)
	totals, failures, err := fuzz(chart, chartDir, all[:500])
	require.NoError(t, err)
	assert.Equal(t, 500, totals[refused]+totals[unreadable]+totals[rendered]+len(failures))
	for _, class := range []class{refused, unreadable, rendered} {
		assert.Positive(t, totals[class])
	}
}

func TestARefusalMustNameThePlaceOrWhatIsBelowIt(t *testing.T) {
	for message, place := range map[string][]string{
		"- at '/a/0/b': got null, want string":                         {"a", "0", "b"},
		"- at '/a/0/b/c': got null, want string":                       {"a", "0", "b"},
		"- at '/a/0': additional properties 'x', 'b' not allowed":      {"a", "0", "b"},
		"- at '': additional properties 'a' not allowed":               {"a"},
		"execution error at (c/templates/d.yaml:1:4): a[0].b: is bad":  {"a", "0", "b"},
		"execution error at (c/templates/d.yaml:1:4): x: same as a[0]": {"a", "0"},
	} {
		assert.NoError(t, names(message, inputs.Input{Place: place}), message)
	}
	for message, place := range map[string][]string{
		"- at '/a/1/b': got null, want string":                {"a", "0", "b"},
		"- at '/a/0': additional properties 'x' not allowed":  {"a", "0", "b"},
		"- at '/ab': got null, want string":                   {"a"},
		"execution error at (c/templates/d.yaml:1:4): is bad": {"a", "0", "b"},
		"execution error: a[0].bc: is bad":                    {"a", "0", "b"},
	} {
		assert.ErrorContains(t, names(message, inputs.Input{Place: place}), "does not name", message)
	}
}

func TestADocumentThatTheChartDoesNotMeanIsAFault(t *testing.T) {
	kubevirt := "apiVersion: kubevirt.io/v1\nkind: KubeVirt\nspec: {}\n"
	for name, test := range map[string]struct{ manifest, want string }{
		"another kind":          {kubevirt + "---\napiVersion: v1\nkind: Secret\n", "does not mean to render a Secret"},
		"a kind twice":          {kubevirt + "---\n" + kubevirt, "two documents of kind KubeVirt"},
		"a field of no type":    {kubevirt + "status:\n  none: 1\n", "unknown field"},
		"a value of wrong type": {kubevirt + "metadata: {name: [1]}\n", "cannot unmarshal"},
		"a key twice":           {kubevirt + "spec: {}\n", "already set in map"},
	} {
		_, _, err := read(map[string]string{"a.yaml": test.manifest})
		assert.ErrorContains(t, err, test.want, name)
	}
	documents, comments, err := read(map[string]string{"a.yaml": "# one\n" + kubevirt, "NOTES.txt": "no YAML: :"})
	require.NoError(t, err)
	assert.Len(t, documents, 1)
	assert.Equal(t, []string{"# one"}, comments)
}

func TestExitStatusSaysWhetherItRan(t *testing.T) {
	var out, problems strings.Builder
	assert.Equal(t, 2, run([]string{"testdata/none"}, &out, &problems))
	assert.Equal(t, 2, run(nil, &out, &problems))
	assert.Empty(t, out.String())
	assert.Contains(t, problems.String(), "usage: fuzzvalues")
	assert.Equal(t, 0, conclude(&out, 1, map[class]int{refused: 3, unreadable: 2, rendered: 4}, nil))
	assert.Equal(t, 1, conclude(&out, 2, map[class]int{refused: 3}, []string{"input 7"}))
	assert.Equal(t, "fuzz-values: tried 9, refused 5 (2 of them no readable YAML), rendered 4, neither 0 (seed 1)\n"+
		"input 7\nfuzz-values: tried 4, refused 3 (0 of them no readable YAML), rendered 0, neither 1 (seed 2)\n", out.String())
}

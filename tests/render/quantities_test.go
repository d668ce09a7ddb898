// Quantities, compared as Kubernetes compares them: its own code is the judge.
package render

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	helm "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/api/resource"
)

// quantities hold every suffix, neighbours beyond what a float tells apart, what is rounded up to a nano, and what is cut.
var quantities = []string{
	"1n", "1u", "1000n", "1m", "1", "1.5", "1500m", "1k", "1Ki", "1024", "1.0001Ki", "1M", "1Mi", "1048576", "1G", "1Gi", "1T", "1Ti", "1P", "1Pi", "1E", "1Ei",
	"0.1", "100m", "0.3Ki", "307.2", "307200m", "0.123456789", "0.1234567891", "123456789n", "123456790n", "0.00000000000000000000001Ki",
	"9007199254740992", "9007199254740993", "8Pi", "8.000000000000000001Pi", "9007199254740993000m", "9.007199254740993e15", "9.007199254740993E15",
	"999999999999999", "999999999999999.9999999999", "1000000000000000", "1e15", "0.99999999999999999999", "1023.9999999999Ki",
	"9223372036854775807", "9223372036854775808", "8Ei", "16Ei", "99999999999999999999999999999999", "9999999999999999999999999999Ei",
	"1e99", "9.9e98", "1e-99", "1e-9", "2e-9", "1E+3", "1e08", ".5", "0.5000000000000000000000000000",
}

// The chart compares what its helper makes of them; the unit suites show that it does.
func TestQuantitiesSortAsKubernetesComparesThem(t *testing.T) {
	t.Parallel()
	all := slices.Concat(quantities, random(500))
	sortable := sortable(t, all)
	for i, one := range all {
		for j, other := range all {
			a, b := resource.MustParse(one), resource.MustParse(other)
			if got := strings.Compare(sortable[i], sortable[j]); got != a.Cmp(b) {
				t.Errorf("%s and %s: compared as %d, and by Kubernetes as %d", one, other, got, a.Cmp(b))
			}
		}
	}
}

// random makes quantities that the schema takes for CPU, the same in every run.
func random(count int) []string {
	pick := rand.New(rand.NewPCG(1, 2))
	suffixes := []string{"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e", "E-"}
	var made []string
	for range count {
		digits := fmt.Sprint(1 + pick.IntN(9))
		for range pick.IntN(24) {
			digits += fmt.Sprint(pick.IntN(10) / 9 * 9) // nines and zeros, which carry
		}
		if whole := 1 + pick.IntN(len(digits)); whole < len(digits) {
			digits = digits[:whole] + "." + digits[whole:]
		}
		suffix := suffixes[pick.IntN(len(suffixes))]
		if suffix == "e" || suffix == "E-" {
			suffix += fmt.Sprint(pick.IntN(100))
		}
		made = append(made, digits+suffix)
	}
	return made
}

// sortable is what the chart's helper makes of quantities.
func sortable(t *testing.T, all []string) []string {
	t.Helper()
	files, err := loader.LoadDir(chartDir)
	require.NoError(t, err)
	files.Schema = nil
	files.Templates = append(slices.DeleteFunc(files.Templates, func(f *helm.File) bool { return !strings.HasSuffix(f.Name, ".tpl") }),
		&helm.File{Name: "templates/all.txt", Data: []byte(`{{ range .Values.all }}{{ include "cozy-kubevirt.quantity" . }}{{ "\n" }}{{ end }}`)})
	values, err := chartutil.ToRenderValues(files, map[string]any{"all": all}, chartutil.ReleaseOptions{}, nil)
	require.NoError(t, err)
	rendered, err := engine.Engine{}.Render(files, values)
	require.NoError(t, err)
	lines := strings.Fields(rendered[files.Name()+"/templates/all.txt"])
	require.Len(t, lines, len(all))
	return lines
}

// Package helms checks the chart under every Helm that users have, for every Kubernetes that KubeVirt supports:
// the same bytes, no complaint, the same refusals.
package helms

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"cozy-kubevirt/internal/chart"
)

const chartDir = "../../charts/kubevirt"

// helm is a Helm binary: the variable that names it, and its name in bin/ otherwise.
type helm struct{ variable, name string }

var (
	pinned = helm{"HELM", "helm"}
	others = []helm{
		{"HELM_OLDEST", "helm-oldest"},
		{"HELM4", "helm4"},
	}
	all = append([]helm{pinned}, others...)
)

func TestNoHelmIsComparedWithItself(t *testing.T) {
	seen := map[string]string{}
	for _, helm := range all {
		version := helm.mustRun(t, "version", "--short")
		assert.Empty(t, seen[version], "%s and %s are both Helm %s; run make tools", seen[version], helm.variable, version)
		seen[version] = helm.variable
	}
}

func TestEveryHelmRendersTheSameBytes(t *testing.T) {
	eachRendering(t, func(t *testing.T, arguments ...string) {
		arguments = append([]string{"template", chart.Release, chartDir, "--namespace", chart.Namespace}, arguments...)
		want := pinned.mustRun(t, arguments...)
		require.Contains(t, want, "kind: KubeVirt")
		for _, helm := range others {
			assert.Equal(t, want, helm.mustRun(t, arguments...), helm.variable)
		}
	})
}

func TestEveryHelmLintsTheChartWithoutAComplaint(t *testing.T) {
	eachRendering(t, func(t *testing.T, arguments ...string) {
		for _, helm := range all {
			out := helm.mustRun(t, append([]string{"lint", "--strict", chartDir}, arguments...)...)
			assert.Contains(t, out, "1 chart(s) linted, 0 chart(s) failed", helm.variable)
		}
	})
}

func TestEveryHelmRefusesBadValuesWithTheirPath(t *testing.T) {
	for name, test := range map[string]struct{ set, want string }{
		"by the schema":    {"virtHandler.resources.limits.memroy=2Gi", "memroy"},
		"by the templates": {"extraFeatureGates={Foo},disabledFeatureGates={Foo}", "disabledFeatureGates[0]: \"Foo\" is enabled by extraFeatureGates[0] too"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, helm := range all {
				_, err := helm.run(t, "template", chart.Release, chartDir, "--kube-version", chart.SupportedKubeVersions[0], "--set", test.set)
				assert.ErrorContains(t, err, test.want, helm.variable)
			}
		})
	}
}

// eachRendering runs check with the arguments of every ci values set and Kubernetes version, in parallel.
func eachRendering(t *testing.T, check func(t *testing.T, arguments ...string)) {
	t.Helper()
	sets, err := chart.MustSets(chartDir)
	require.NoError(t, err)
	for set, file := range sets {
		for _, version := range chart.SupportedKubeVersions {
			t.Run(set+" on Kubernetes "+version, func(t *testing.T) {
				t.Parallel()
				check(t, "--values", file, "--kube-version", version)
			})
		}
	}
}

func (h helm) run(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	binary, err := chart.Binary(h.variable, h.name)
	require.NoError(t, err)
	return chart.Run(t.Context(), binary, arguments...)
}

func (h helm) mustRun(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := h.run(t, arguments...)
	require.NoError(t, err, h.variable)
	return out
}

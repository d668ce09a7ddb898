package output

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"cozy-kubevirt/cmd/kubectl-drain_preview/report"
)

func TestWhatTheClusterSaysStandsInEveryFormat(t *testing.T) {
	r := &report.Report{Nodes: []string{"node-a"}, VMs: []report.VM{
		{Namespace: "shop", Name: "web", Node: "node-a", Verified: &report.Verified{Agreed: true, Said: "201, it may go"}},
		{Namespace: "shop", Name: "db", Node: "node-a", Verified: &report.Verified{Said: "500, no", Expected: "429, later"}},
	}}
	r.SetGroupVersionKind(report.GroupVersionKind)
	for _, format := range []string{"", "wide", "markdown", "json", "yaml"} {
		out := &strings.Builder{}
		require.NoError(t, Print(out, r, format, false))
		for _, part := range []string{"201, it may go", "500, no", "429, later"} {
			assert.Contains(t, out.String(), part, "format %q", format)
		}
	}
}

func TestWhatTheClusterSaysHasNoColumnWhereItWasNotAsked(t *testing.T) {
	r := &report.Report{VMs: []report.VM{{Name: "web"}}}
	for _, format := range []string{"wide", "markdown"} {
		out := &strings.Builder{}
		require.NoError(t, Print(out, r, format, false))
		assert.NotContains(t, out.String(), "was not asked")
	}
}

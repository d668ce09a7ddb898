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

func TestNoTextBreaksAMarkdownTableOrFence(t *testing.T) {
	const forged = "a|b\\|c\n| x |\n```\n<b>[x](y)&lt;`*"
	r := &report.Report{Notes: []string{forged}, Pace: report.Pace{Unknown: forged},
		VMs:    []report.VM{{Namespace: forged, Name: forged, Node: forged, Reason: forged}},
		Advice: []report.Advice{{Do: forged, Commands: []string{"true '" + forged + "'"}}}}
	out := &strings.Builder{}
	require.NoError(t, Print(out, r, "markdown", false))
	text, command, fenced := strings.Cut(out.String(), "\n````sh\n")
	require.True(t, fenced, "the fence is longer than what it holds")
	assert.Equal(t, 1, strings.Count(command, "````"))
	lines := strings.Split(text, "\n")
	assert.Equal(t, strings.Count(lines[0], "|"), strings.Count(lines[2], "|"), "as many cells as headings")
	assert.Empty(t, lines[3], "one line a VM")
	for _, unescaped := range []string{"<b>", "[x](", "&lt;`", "\n```"} {
		assert.NotContains(t, text, unescaped)
	}
}

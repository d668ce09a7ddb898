//go:build !kubevirt_1_8

// docs/feature-gates.md decides each gate that v1.9 turns on by itself and v1.8 did not. What it says of a gate is held
// against KubeVirt: that there is a row, the state, whether the gate is on under the rendered CR, and the source line.
package contract

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "kubevirt.io/api/core/v1"

	"kubevirt.io/kubevirt/pkg/virt-config/featuregate"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
	"cozy-kubevirt/tests/kubevirt/internal/gates"
	"cozy-kubevirt/tests/kubevirt/internal/modules"
)

func decisions(t testing.TB) map[string]gates.Decision {
	t.Helper()
	rows, err := gates.Decisions(chart.RepoFile(t, "docs", "feature-gates.md"))
	require.NoError(t, err)
	return rows
}

// newlyOn are the gates that v1.9 turns on by itself and v1.8 did not. What v1.8 says is in the golden file that its own
// run of these tests keeps right.
func newlyOn(t testing.TB) []featuregate.FeatureGate {
	t.Helper()
	before, err := os.ReadFile(filepath.Join("testdata", "feature-gates-v1.8.txt"))
	require.NoError(t, err)
	wasOn := regexp.MustCompile(`(?m)^(\w+): General Availability$`).FindAllStringSubmatch(string(before), -1)
	require.NotEmpty(t, wasOn)
	return slices.DeleteFunc(registeredGates(t), func(gate featuregate.FeatureGate) bool {
		isOn := gate.State == featuregate.Beta || gate.State == featuregate.GA
		return !isOn || slices.ContainsFunc(wasOn, func(was []string) bool { return was[1] == gate.Name })
	})
}

func TestEveryGateThatComesOnByItselfIsDecided(t *testing.T) {
	rows, states := decisions(t), map[featuregate.State]string{featuregate.Beta: "Beta", featuregate.GA: "GA"}
	var names []string
	for _, gate := range newlyOn(t) {
		names = append(names, gate.Name)
		if assert.Contains(t, rows, gate.Name, "KubeVirt turns %s on by itself since this release, and docs/feature-gates.md does not decide it", gate.Name) {
			assert.Equal(t, states[gate.State], rows[gate.Name].State, "the state of %s in docs/feature-gates.md", gate.Name)
		}
	}
	for name := range rows {
		assert.Contains(t, names, name, "docs/feature-gates.md decides %s, which this release does not turn on by itself", name)
	}
	count("gates decided", len(names))
}

// effective reads a gate by KubeVirt's own method for it, which is not the registry's answer for every gate.
func effective(t testing.TB, cr *v1.KubeVirt, gate string) bool {
	t.Helper()
	on, byMethod := gates.Effective(clusterConfig(t, cr), cr, gate)
	// A gate that nothing asks for any more has no method.
	if !byMethod {
		require.Equal(t, featuregate.GA, featuregate.FeatureGateInfo(gate).State, "KubeVirt has no method that says whether %s is on", gate)
	}
	return on
}

func TestEveryDecidedGateIsAsDecidedUnderTheCR(t *testing.T) {
	for _, row := range decisions(t) {
		for _, kubeVersion := range chart.KubeVersions {
			cr := chart.Render(t, chart.Options{KubeVersion: kubeVersion}).KubeVirt
			want := row.Here == "on" || row.Here == "off below Kubernetes 1.35" && kubeVersion == "1.35.0"
			if !want {
				require.Regexp(t, `^off( below Kubernetes 1\.35)?$`, row.Here, "docs/feature-gates.md, %s", row.Gate)
			}
			assert.Equal(t, want, effective(t, cr, row.Gate), "docs/feature-gates.md says that %s is %s (Kubernetes %s)", row.Gate, row.Here, kubeVersion)
		}
	}
}

// A decision's line is where KubeVirt asks for the gate, or registers what nothing asks for.
func TestEveryDecisionsSourceLineIsAboutTheGate(t *testing.T) {
	for _, row := range decisions(t) {
		assert.Contains(t, modules.Line(t, row.Source), row.Gate, "docs/feature-gates.md, %s: %s is about something else", row.Gate, row.Source)
	}
}

// docs/refusals.md quotes the line that makes each refusal right.
func TestEveryRefusalsSourceLineReadsAsQuoted(t *testing.T) {
	raw, err := os.ReadFile(chart.RepoFile(t, "docs", "refusals.md"))
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| (.+?) \\| (.+?) \\| .+ \\| (\\S+:\\d+) \\| `(.+)` \\|$").FindAllStringSubmatch(string(raw), -1)
	require.Len(t, rows, strings.Count(string(raw), "\n| ")-2, "every row under the head has a source and what stands there")
	for _, row := range rows {
		assert.Contains(t, modules.Line(t, row[3]), row[4], "docs/refusals.md, %s, %s: %s reads otherwise", row[1], row[2], row[3])
	}
	count("refusals", len(rows))
}

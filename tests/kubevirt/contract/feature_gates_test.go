// P22, and the gates one by one: what KubeVirt makes of the two lists. It ignores an unknown name without a word, and
// a gate that does nothing reads like one that does.
package contract

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"kubevirt.io/kubevirt/pkg/virt-config/featuregate"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
)

// asked are the gates that a values set names itself.
type asked struct {
	Extra    []string `json:"extraFeatureGates"`
	Disabled []string `json:"disabledFeatureGates"`
}

func gatesOf(t *testing.T, set string) (a asked) {
	t.Helper()
	raw, err := os.ReadFile(set)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, &a))
	return a
}

func TestP22_TheEffectiveGatesAreThoseThePlatformReliesOn(t *testing.T) {
	everySet(t, func(t *testing.T, set string, r *chart.Release) {
		config, asked := clusterConfig(t, r.KubeVirt), gatesOf(t, set)
		assert.True(t, config.HotplugVolumesEnabled(), "P22 is broken: the tenants' CSI driver cannot detach volumes any more")
		assert.True(t, config.CPUManagerEnabled(), "P22 is broken: VMs with dedicated CPUs do not start")
		assert.False(t, config.TemplateEnabled(), "P22 is broken: virt-operator deploys virt-template, two Deployments that nothing uses")
		assert.False(t, virtTemplateIsDeployed(config), "P22 is broken: virt-operator deploys virt-template")
		assert.Equal(t, slices.Contains(asked.Extra, "VGPULiveMigration") && hasVGPUMigration, vGPUsMigrate(config),
			"P22 is broken: vGPU live migration is on only where the values ask for it")
	})
}

func TestP22_ImageVolumesAreOffBelowKubernetes135AndOnFromThere(t *testing.T) {
	for version, on := range map[string]bool{"1.33.0": false, "1.34.2": false, "1.35.0-rc.1": true, "1.35.0": true, "1.36.1": true} {
		r := chart.Render(t, chart.Options{KubeVersion: version})
		assert.Equal(t, on && betaIsOnByItself, clusterConfig(t, r.KubeVirt).ImageVolumeEnabled(),
			"P22 is broken: on Kubernetes %s VMs with a containerDisk do not start, or pay for an extra container", version)
	}
}

func TestEveryGateTheCREnablesIsKnownAndNeedsEnabling(t *testing.T) {
	everySet(t, func(t *testing.T, _ string, r *chart.Release) {
		for _, name := range r.KubeVirt.Spec.Configuration.DeveloperConfiguration.FeatureGates {
			gate := featuregate.FeatureGateInfo(name)
			if slices.Contains(idleGates, name) {
				continue
			}
			if !assert.NotNil(t, gate, "KubeVirt knows no feature gate %q, and ignores it without a word", name) {
				continue
			}
			needed := gate.State == featuregate.Alpha || gate.State == featuregate.Deprecated || disabledByDefault(t, r, name)
			assert.True(t, needed, "feature gate %s is %s: listing it does nothing", name, gate.State)
		}
	})
}

// disabledByDefault: a Beta gate that the chart disables on this Kubernetes is worth asking for.
func disabledByDefault(t *testing.T, r *chart.Release, gate string) bool {
	return slices.Contains(rendered(t).Spec.Configuration.DeveloperConfiguration.DisabledFeatureGates, gate)
}

func TestEveryGateTheCRDisablesIsKnownAndCanBeDisabled(t *testing.T) {
	everySet(t, func(t *testing.T, _ string, r *chart.Release) {
		for _, name := range r.KubeVirt.Spec.Configuration.DeveloperConfiguration.DisabledFeatureGates {
			gate := featuregate.FeatureGateInfo(name)
			if slices.Contains(idleGates, name) {
				continue
			}
			if assert.NotNil(t, gate, "KubeVirt knows no feature gate %q, and ignores it without a word", name) {
				assert.Equal(t, featuregate.Beta, gate.State,
					"feature gate %s is %s: only a Beta gate is on by itself and can be disabled", name, gate.State)
			}
		}
	})
}

// A version bump shows here as a diff which gates changed state; read each changed line for what comes on by itself.
func TestTheFeatureGateRegistryIsTheOneThatWasReviewed(t *testing.T) {
	var lines []string
	for _, gate := range registeredGates(t) {
		note := ""
		if gate.State == featuregate.Beta && betaIsOnByItself {
			note = ", on by itself"
		}
		lines = append(lines, fmt.Sprintf("%s: %s%s", gate.Name, gate.State, note))
	}
	slices.Sort(lines)
	compareGolden(t, goldenGates, strings.Join(lines, "\n")+"\n")
	count("feature gates", len(lines))
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "%s is out of date; review the difference, then: cd tests/kubevirt/contract && go test -run Registry . -update", path)
}

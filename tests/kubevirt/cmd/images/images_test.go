package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
	"cozy-kubevirt/tests/kubevirt/internal/operator"
)

func TestTheChartPullsKubeVirtsOwnImagesAndNoneItDoesNotUse(t *testing.T) {
	rendered, err := yaml.Marshal(chart.Render(t, chart.Options{}).Object("KubeVirt").Object)
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, run(strings.NewReader("kind: Ingress\n---\n"+string(rendered)), &out, "quay.io/kubevirt"))
	assert.Equal(t, []string{
		"quay.io/kubevirt/sidecar-shim:v1.9.0",
		"quay.io/kubevirt/virt-api:v1.9.0",
		"quay.io/kubevirt/virt-controller:v1.9.0",
		"quay.io/kubevirt/virt-exportproxy:v1.9.0",
		"quay.io/kubevirt/virt-exportserver:v1.9.0",
		"quay.io/kubevirt/virt-handler:v1.9.0",
		"quay.io/kubevirt/virt-launcher:v1.9.0",
		"quay.io/kubevirt/virt-operator:v1.9.0",
	}, strings.Fields(out.String()))
}

func TestArtifactHubIsToldTheseImages(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chart.Dir(t), "Chart.yaml"))
	require.NoError(t, err)
	var metadata struct{ Annotations map[string]string }
	require.NoError(t, yaml.Unmarshal(text, &metadata))
	var told []struct{ Name, Image string }
	require.NoError(t, yaml.UnmarshalStrict([]byte(metadata.Annotations["artifacthub.io/images"]), &told))
	version, err := operator.PinnedVersion()
	require.NoError(t, err)
	images, err := list(chart.Render(t, chart.Options{}).KubeVirt, "quay.io/kubevirt", version)
	require.NoError(t, err)
	var names []string
	for _, image := range told {
		names = append(names, image.Image)
	}
	assert.Equal(t, images, names, "Chart.yaml, artifacthub.io/images: write what make images prints")
}

func TestAFeatureGateBringsItsImage(t *testing.T) {
	for gate, image := range map[string]string{
		"PersistentReservation":      "mirror.example.org/kubevirt/pr-helper:v1.9.0",
		"DecentralizedLiveMigration": "mirror.example.org/kubevirt/virt-synchronization-controller:v1.9.0",
	} {
		t.Run(gate, func(t *testing.T) {
			kv := chart.Render(t, chart.Options{}).KubeVirt
			without, err := list(kv, "mirror.example.org/kubevirt", "v1.9.0")
			require.NoError(t, err)
			developer := kv.Spec.Configuration.DeveloperConfiguration
			developer.FeatureGates = append(developer.FeatureGates, gate)
			with, err := list(kv, "mirror.example.org/kubevirt", "v1.9.0")
			require.NoError(t, err)
			assert.NotContains(t, without, image)
			assert.Contains(t, with, image)
		})
	}
}

func TestTheGateThatTheChartDisablesWouldBringTwoImages(t *testing.T) {
	kv := chart.Render(t, chart.Options{}).KubeVirt
	kv.Spec.Configuration.DeveloperConfiguration.DisabledFeatureGates = nil
	images, err := list(kv, "quay.io/kubevirt", "v1.9.0")
	require.NoError(t, err)
	assert.Len(t, images, 10)
	assert.Contains(t, strings.Join(images, "\n"), "virt-template-apiserver")
	assert.Contains(t, strings.Join(images, "\n"), "virt-template-controller")
}

func TestInputWithoutAKubeVirtIsRefused(t *testing.T) {
	for _, input := range []string{"", "kind: Ingress\n", "kind: Ingress\n---\nkind: [\n"} {
		_, err := readKubeVirt(strings.NewReader(input))
		assert.ErrorContains(t, err, "stdin: ")
	}
}

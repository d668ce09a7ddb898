// Package flux checks the example in docs/flux: Flux's API takes it, and the values that it injects render.
package flux

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"cozy-kubevirt/internal/chart"
)

const (
	chartDir = "../../charts/kubevirt"
	example  = "../../docs/flux/kubevirt.yaml"
	platform = "../../docs/flux/platform-values.yaml"
)

func TestFluxTakesTheExample(t *testing.T) {
	documents := split(t, example)
	require.Len(t, documents, 2)
	for _, document := range documents {
		assert.Empty(t, validate(t, object(t, document)), "%s", document)
	}
	decode(t, documents[0], &sourcev1.OCIRepository{})
	decode(t, documents[1], &helmv2.HelmRelease{})
}

func TestFluxWouldRefuseABrokenExample(t *testing.T) {
	documents := split(t, example)
	for name, test := range map[string]struct {
		document int
		old, new string
		want     string
	}{
		"a mode that there is not":    {1, "mode: enabled", "mode: on-call", "spec.driftDetection.mode"},
		"no source of the chart":      {1, "  chartRef:\n    kind: OCIRepository\n    name: cozy-kubevirt\n", "", "either chart or chartRef must be set"},
		"two ways to retry":           {1, "never uninstall or roll back what runs the VMs\n      name: RetryOnFailure", "\n      name: RemediateOnFailure", "retryInterval"},
		"an interval without a unit":  {0, "interval: 10m", "interval: \"10\"", "spec.interval"},
		"a registry that is not OCI":  {0, "oci://", "https://", "spec.url"},
		"a dependency without a name": {1, "- name: kubevirt-operator", "- namespace: cozy-kubevirt", "spec.dependsOn[0].name"},
	} {
		t.Run(name, func(t *testing.T) {
			text := string(documents[test.document])
			require.Equal(t, 1, strings.Count(text, test.old))
			faults := validate(t, object(t, []byte(strings.Replace(text, test.old, test.new, 1))))
			require.NotEmpty(t, faults)
			assert.Contains(t, strings.Join(faults, "\n"), test.want)
		})
	}
}

func TestTheReleaseFindsItsChartAndValuesAndWaitsForTheOperator(t *testing.T) {
	documents := split(t, example)
	repository, release := &sourcev1.OCIRepository{}, &helmv2.HelmRelease{}
	decode(t, documents[0], repository)
	decode(t, documents[1], release)
	var metadata struct{ Name, Version string }
	text, err := os.ReadFile(filepath.Join(chartDir, "Chart.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &metadata))

	assert.Equal(t, repository.Name, release.Spec.ChartRef.Name)
	assert.Equal(t, repository.Namespace, release.Namespace)
	assert.True(t, strings.HasSuffix(repository.Spec.URL, "/"+metadata.Name), "%s holds no chart %s", repository.Spec.URL, metadata.Name)
	assert.Equal(t, strings.Split(metadata.Version, ".")[0]+".x", repository.Spec.Reference.SemVer)
	assert.Equal(t, []string{"kubevirt-operator"}, []string{release.Spec.DependsOn[0].Name})
	assert.Equal(t, helmv2.DriftDetectionEnabled, release.Spec.DriftDetection.Mode)
	assert.Empty(t, release.Spec.DriftDetection.Ignore)
	assert.NotNil(t, release.GetInstall().GetRetry(false), "a failed install would be uninstalled")
	assert.NotNil(t, release.GetUpgrade().GetRetry(false), "a failed upgrade would be rolled back")
	secret := platformSecret(t)
	assert.Equal(t, "Secret", release.Spec.ValuesFrom[0].Kind)
	assert.Equal(t, secret.Metadata.Name, release.Spec.ValuesFrom[0].Name)
	assert.Equal(t, secret.Metadata.Namespace, release.Namespace)
	assert.Contains(t, secret.StringData, release.Spec.ValuesFrom[0].GetValuesKey())
}

// Flux merges valuesFrom in their order and values last, as helm does with values files.
func TestTheInjectedValuesRender(t *testing.T) {
	release := &helmv2.HelmRelease{}
	decode(t, split(t, example)[1], release)
	secret := platformSecret(t)
	for name, test := range map[string]struct{ old, new, want string }{
		"as written":       {"", "", "kind: Ingress\n"},
		"with the gateway": {`gateway-enabled: "false"`, `gateway-enabled: "true"`, "kind: TLSRoute\n"},
	} {
		t.Run(name, func(t *testing.T) {
			fromSecret := secret.StringData[release.Spec.ValuesFrom[0].GetValuesKey()]
			require.Contains(t, fromSecret, test.old)
			rendered := template(t, release, strings.Replace(fromSecret, test.old, test.new, 1), string(release.Spec.Values.Raw))
			assert.Contains(t, rendered, test.want)
			assert.Contains(t, rendered, "vm-exportproxy.example.org")
			assert.Contains(t, rendered, `"memory":"4Gi"`, "values come after valuesFrom")
		})
	}
}

// template renders the chart as the release would be, with values in their order.
func template(t *testing.T, release *helmv2.HelmRelease, values ...string) string {
	t.Helper()
	var files []string
	for _, text := range values {
		file := filepath.Join(t.TempDir(), "values.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		files = append(files, file)
	}
	out, err := chart.Template(t.Context(), chart.Rendering{
		Chart: chartDir, Release: release.GetReleaseName(), Namespace: release.GetReleaseNamespace(), Values: files,
	})
	require.NoError(t, err)
	return out
}

type secret struct {
	APIVersion, Kind string
	Metadata         struct{ Name, Namespace string }
	StringData       map[string]string
}

func platformSecret(t *testing.T) secret {
	t.Helper()
	documents := split(t, platform)
	require.Len(t, documents, 1)
	var s secret
	decode(t, documents[0], &s)
	require.Equal(t, "Secret", s.Kind)
	return s
}

// split returns the documents of a file.
func split(t *testing.T, file string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return bytes.Split(text, []byte("\n---\n"))
}

// decode refuses fields that the type does not have.
func decode(t *testing.T, document []byte, into any) {
	t.Helper()
	require.NoError(t, yaml.UnmarshalStrict(document, into), "%s", document)
}

func object(t *testing.T, document []byte) map[string]any {
	t.Helper()
	var tree map[string]any
	require.NoError(t, yaml.Unmarshal(document, &tree))
	return tree
}

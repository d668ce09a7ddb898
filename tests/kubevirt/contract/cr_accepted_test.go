// P18: KubeVirt takes the rendered CR, from every values set: its CRD, its update webhook and its config loader. The
// API server drops what the CRD does not know, the webhook only judges the next change, and the loader keeps the last
// good configuration without a word, so each of the three can go wrong unseen.
package contract

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "kubevirt.io/api/core/v1"

	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/webhooks"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
)

// everySet runs a test over every values set, below and above Kubernetes 1.35.
func everySet(t *testing.T, test func(t *testing.T, set string, r *chart.Release)) {
	t.Helper()
	sets := chart.ValuesFiles(t)
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		for _, kubeVersion := range chart.KubeVersions {
			t.Run(name+" on Kubernetes "+kubeVersion, func(t *testing.T) {
				t.Parallel()
				test(t, sets[name], chart.Render(t, chart.Options{ValuesFiles: []string{sets[name]}, KubeVersion: kubeVersion}))
			})
		}
	}
}

func kubeVirtCRD(t testing.TB) crdSchema {
	t.Helper()
	crd, err := components.NewKubeVirtCrd()
	require.NoError(t, err)
	return newCRDSchema(t, crd, v1.GroupVersion.Version)
}

func TestP18_KubeVirtsCRDTakesTheCRWithStrictFieldValidation(t *testing.T) {
	schema := kubeVirtCRD(t)
	everySet(t, func(t *testing.T, _ string, r *chart.Release) {
		cr := r.Object("KubeVirt").DeepCopy().Object
		for _, field := range newFields {
			unstructured.RemoveNestedField(cr, append([]string{"spec", "configuration"}, strings.Split(field, ".")...)...)
		}
		assert.Empty(t, schema.refusals(t, cr), "P18 is broken: the API server refuses the CR, or drops a part of it")
		assert.NoError(t, chart.DecodeStrict(cr, &v1.KubeVirt{}), "P18 is broken: KubeVirt's own type has no such field")
		count("CRs", 1)
	})
}

// The check above can fail: a typo, a wrong type and a value outside an enum.
func TestP18_KubeVirtsCRDRefusesWhatIsWrong(t *testing.T) {
	schema := kubeVirtCRD(t)
	for name, spoil := range map[string]func(spec map[string]any){
		"an unknown field": func(spec map[string]any) { spec["evictionStrategie"] = "LiveMigrate" },
		"a wrong type":     func(spec map[string]any) { spec["imagePullPolicy"] = true },
		"an unknown enum":  func(spec map[string]any) { spec["configuration"].(map[string]any)["vmRolloutStrategy"] = "liveUpdate" },
	} {
		t.Run(name, func(t *testing.T) {
			cr := chart.Render(t, chart.Options{}).Object("KubeVirt").Object
			spoil(cr["spec"].(map[string]any))
			assert.NotEmpty(t, schema.refusals(t, cr))
		})
	}
}

func TestP18_KubeVirtsUpdateWebhookTakesTheCRWithoutAWarningButOne(t *testing.T) {
	everySet(t, func(t *testing.T, _ string, r *chart.Release) {
		response := reviewUpdate(t, r.KubeVirt)
		require.True(t, response.Allowed, "P18 is broken: the CR installs, and every later change of it is refused: %v", response.Result)
		for _, warning := range response.Warnings {
			// The message of a gate that is Alpha or Beta is empty, which is no warning. HotplugVolumes stays on for
			// the tenants' CSI driver (pkg/virt-api/rest/volumes.go:64-68).
			assert.True(t, warning == "" || strings.HasPrefix(warning, "HotplugVolumes "),
				"P18 is broken: every upgrade of the package prints a warning that nobody can act on: %s", warning)
		}
	})
}

func TestP18_KubeVirtsUpdateWebhookRefusesWhatIsWrong(t *testing.T) {
	cr := rendered(t)
	cr.Spec.CustomizeComponents.Patches[0].Patch = "{"
	assert.False(t, reviewUpdate(t, cr).Allowed, "a patch that is no JSON")
	cr = rendered(t)
	gates := cr.Spec.Configuration.DeveloperConfiguration
	gates.DisabledFeatureGates = append(gates.DisabledFeatureGates, gates.FeatureGates[0])
	assert.False(t, reviewUpdate(t, cr).Allowed, "a gate in both lists")
}

// reviewUpdate asks virt-operator's webhook about a change from a CR without feature gates to this one: it looks at
// the gates only when their lists change (pkg/virt-operator/webhooks/kubevirt-update-admitter.go:121,127).
func reviewUpdate(t testing.TB, cr *v1.KubeVirt) *admissionv1.AdmissionResponse {
	t.Helper()
	before := cr.DeepCopy()
	before.Spec.Configuration.DeveloperConfiguration = nil
	admitter := webhooks.NewKubeVirtUpdateAdmitter(newClient(), clusterConfig(t, cr))
	return admitter.Admit(context.Background(), &admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		Operation: admissionv1.Update,
		Resource:  webhooks.KubeVirtGroupVersionResource,
		Object:    runtime.RawExtension{Raw: mustMarshal(t, cr)},
		OldObject: runtime.RawExtension{Raw: mustMarshal(t, before)},
	}})
}

func TestP18_KubeVirtsConfigLoaderKeepsEverythingThatTheCRSays(t *testing.T) {
	untouched := configOf(t, &v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Name: "kubevirt"}})
	everySet(t, func(t *testing.T, _ string, r *chart.Release) {
		said, found := r.Object("KubeVirt").Object["spec"].(map[string]any)["configuration"].(map[string]any)
		require.True(t, found)
		merged, err := jsonpatch.MergePatch(mustMarshal(t, untouched), mustMarshal(t, said))
		require.NoError(t, err)
		want := v1.KubeVirtConfiguration{}
		require.NoError(t, json.Unmarshal(merged, &want))
		assert.Empty(t, cmp.Diff(asJSON(t, want), configOf(t, r.KubeVirt)),
			"P18 is broken: KubeVirt runs with another configuration (+) than the CR says (-), without a word")
	})
}

func TestP18_KubeVirtsConfigLoaderDropsWhatIsWrong(t *testing.T) {
	cr := rendered(t)
	cr.Spec.Configuration.DeveloperConfiguration.CPUAllocationRatio = -1
	effective := clusterConfig(t, cr).GetConfig()
	assert.NotEqual(t, cr.Spec.Configuration.EvictionStrategy, effective.EvictionStrategy,
		"an invalid configuration is dropped whole, so the comparison above would notice")
}

// configOf is the configuration that KubeVirt's components work with, as JSON.
func configOf(t testing.TB, cr *v1.KubeVirt) map[string]any {
	t.Helper()
	return asJSON(t, clusterConfig(t, cr).GetConfig())
}

// What the values schema takes, the CRD must take, and the other way round.
func TestP18_TheValuesSchemaAndTheCRDAgreeOnEveryMirroredField(t *testing.T) {
	configuration := kubeVirtCRD(t).Props.Properties["spec"].Properties["configuration"]
	schema := readValuesSchema(t)
	for _, section := range []string{"permittedHostDevices", "mediatedDevicesConfiguration", "migrations", "vmStateStorageClass"} {
		inCRD, found := configuration.Properties[section]
		require.True(t, found, "the CRD has %s", section)
		inSchema, found := schema.Properties[section]
		require.True(t, found, "the values schema has %s", section)
		for _, difference := range differences(section, schema.resolve(inSchema), inCRD, schema) {
			t.Errorf("P18 is broken: %s", difference)
		}
	}
}

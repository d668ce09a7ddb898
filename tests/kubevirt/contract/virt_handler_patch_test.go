// P19: the patch for virt-handler lands on KubeVirt's own DaemonSet, by KubeVirt's own customizer. KubeVirt says
// nothing about a patch that misses.
package contract

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"

	"kubevirt.io/kubevirt/pkg/virt-operator/resource/apply"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	operatorutil "kubevirt.io/kubevirt/pkg/virt-operator/util"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
)

// virtHandler is the DaemonSet that virt-operator generates for a CR, before and after the CR's patches.
func virtHandler(t testing.TB, cr *v1.KubeVirt) (before, after *appsv1.DaemonSet) {
	t.Helper()
	config := operatorutil.GetTargetConfigFromKV(deployed(cr))
	before = components.NewHandlerDaemonSet(config, "", "", "")
	after = components.NewHandlerDaemonSet(config, "", "", "")
	customizer, err := apply.NewCustomizer(cr.Spec.CustomizeComponents)
	require.NoError(t, err)
	require.NoError(t, customizer.GenericApplyPatches([]*appsv1.DaemonSet{after}))
	return before, after
}

func TestP19_VirtHandlerCarriesTheShippedRequestsAndLimit(t *testing.T) {
	before, after := virtHandler(t, rendered(t))
	got := container(t, after, components.VirtHandlerName).Resources
	assert.Equal(t, milli(resource.MustParse("100m")), milli(got.Requests[k8sv1.ResourceCPU]), "P19 is broken: virt-handler's cpu request is not 100m")
	assert.Equal(t, milli(container(t, before, components.VirtHandlerName).Resources.Requests[k8sv1.ResourceMemory]), milli(got.Requests[k8sv1.ResourceMemory]),
		"P19 is broken: virt-handler's memory request is not KubeVirt's own any more")
	assert.Equal(t, milli(resource.MustParse("2Gi")), milli(got.Limits[k8sv1.ResourceMemory]),
		"P19 is broken: virt-handler's memory limit is not 2Gi; KubeVirt sets none, and then the Talos OOM handler may pick it")
	assert.NotContains(t, got.Limits, k8sv1.ResourceCPU, "P19 is broken: virt-handler is throttled")
}

// From every values set: what the patch asks for is on the container, and nothing else of the DaemonSet has changed.
func TestP19_ThePatchChangesTheResourcesOfVirtHandlerAndNothingElse(t *testing.T) {
	everySet(t, func(t *testing.T, _ string, r *chart.Release) {
		before, after := virtHandler(t, r.KubeVirt)
		asked, got := askedResources(t, r.KubeVirt), container(t, after, components.VirtHandlerName).Resources
		for list, want := range map[*k8sv1.ResourceList]k8sv1.ResourceList{&got.Requests: asked.Requests, &got.Limits: asked.Limits} {
			for name, quantity := range want {
				assert.Equal(t, milli(quantity), milli((*list)[name]), "P19 is broken: the %s of the patch does not land on virt-handler", name)
			}
		}

		// Take the patch out again: what is left is the DaemonSet as KubeVirt makes it.
		delete(after.Annotations, v1.KubeVirtCustomizeComponentAnnotationHash)
		container(t, after, components.VirtHandlerName).Resources = container(t, before, components.VirtHandlerName).Resources
		assert.JSONEq(t, string(mustMarshal(t, before.Spec)), string(mustMarshal(t, after.Spec)),
			"P19 is broken: the patch changes more than virt-handler's resources; a container that it names and KubeVirt does not have is "+
				"added without an image, and the DaemonSet is refused")
	})
}

// A patch that misses is no error anywhere in KubeVirt; these are what the two tests above notice.
func TestP19_APatchThatMissesIsNoticed(t *testing.T) {
	for name, spoil := range map[string]func(*v1.CustomizeComponentsPatch){
		"a wrong resource":      func(p *v1.CustomizeComponentsPatch) { p.ResourceName = "virt-handlers" },
		"a wrong resource type": func(p *v1.CustomizeComponentsPatch) { p.ResourceType = "Deployment" },
		"a wrong container": func(p *v1.CustomizeComponentsPatch) {
			p.Patch = `{"spec":{"template":{"spec":{"containers":[{"name":"handler","resources":{"requests":{"cpu":"100m"}}}]}}}}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			cr := rendered(t)
			require.Len(t, cr.Spec.CustomizeComponents.Patches, 1)
			spoil(&cr.Spec.CustomizeComponents.Patches[0])
			before, after := virtHandler(t, cr)
			assert.Equal(t, container(t, before, components.VirtHandlerName).Resources,
				container(t, after, components.VirtHandlerName).Resources, "the patch misses virt-handler")
		})
	}
}

// askedResources are those in the CR's patch, whatever container they are for.
func askedResources(t testing.TB, cr *v1.KubeVirt) k8sv1.ResourceRequirements {
	t.Helper()
	require.Len(t, cr.Spec.CustomizeComponents.Patches, 1)
	var patch appsv1.DaemonSet
	require.NoError(t, json.Unmarshal([]byte(cr.Spec.CustomizeComponents.Patches[0].Patch), &patch))
	require.Len(t, patch.Spec.Template.Spec.Containers, 1)
	asked := patch.Spec.Template.Spec.Containers[0].Resources
	require.NotEmpty(t, asked.Requests, "P19 is broken: the patch asks for nothing")
	return asked
}

func container(t testing.TB, ds *appsv1.DaemonSet, name string) *k8sv1.Container {
	t.Helper()
	for i := range ds.Spec.Template.Spec.Containers {
		if c := &ds.Spec.Template.Spec.Containers[i]; c.Name == name {
			return c
		}
	}
	t.Fatalf("P19 is broken: virt-handler's DaemonSet has no container %s any more", name)
	return nil
}

func milli(q resource.Quantity) int64 { return q.MilliValue() }

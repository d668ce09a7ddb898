package source

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"
)

func asJSON(t *testing.T, object any) string {
	t.Helper()
	text, err := json.Marshal(object)
	require.NoError(t, err)
	return string(text)
}

// newCluster is a cluster with one VMI in each of two namespaces. Whatever deny says is forbidden, and missing is not
// there.
func newCluster(deny func(kind Kind, namespace string) bool, missing Kind) *fake.FakeDynamicClient {
	lists := map[schema.GroupVersionResource]string{}
	for _, kind := range kinds {
		lists[kind.resource()] = kind.object.Kind + "List"
	}
	vmi := func(namespace string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
			"metadata": map[string]any{"name": "vm", "namespace": namespace},
			"status":   map[string]any{"phase": "Running"},
		}}
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, vmi("tenant-a"), vmi("tenant-b"))
	client.PrependReactor("*", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource().GroupResource()
		switch {
		case action.GetVerb() != "list":
			panic("a preview only lists, and this is a " + action.GetVerb())
		case Kind(resource.Resource) == missing:
			return true, nil, apierrors.NewNotFound(resource, "")
		case deny(Kind(resource.Resource), action.GetNamespace()):
			return true, nil, apierrors.NewForbidden(resource, "", nil)
		}
		return false, nil, nil
	})
	return client
}

func quietly(Kind) {}

func TestARightThatIsMissingIsAGapThatNamesIt(t *testing.T) {
	client := newCluster(func(kind Kind, _ string) bool { return kind == Volumes }, Migrations)
	objects, err := Cluster(t.Context(), client, "", quietly)
	require.NoError(t, err)
	assert.Len(t, objects.VMIs, 2)
	assert.Equal(t, "may not list persistentvolumes", objects.Gaps[Volumes])
	assert.Equal(t, "the cluster has no virtualmachineinstancemigrations", objects.Gaps[Migrations])
	assert.Equal(t, "the cluster has no KubeVirt CR", objects.Gaps[KubeVirts])
}

func TestWithoutTheRightToListVMIsThereIsNoAnswer(t *testing.T) {
	_, err := Cluster(t.Context(), newCluster(func(kind Kind, _ string) bool { return kind == VMIs }, ""), "", quietly)
	assert.ErrorContains(t, err, "may not list virtualmachineinstances")
}

func TestRightsInOneNamespaceAreEnoughForIt(t *testing.T) {
	client := newCluster(func(_ Kind, namespace string) bool { return namespace != "tenant-a" }, "")
	objects, err := Cluster(t.Context(), client, "tenant-a", quietly)
	require.NoError(t, err)
	assert.Len(t, objects.VMIs, 1)
	assert.Equal(t, "tenant-a", objects.Namespace)
	assert.Equal(t, map[Kind]string{
		KubeVirts: "may not list kubevirts", Nodes: "may not list nodes", Volumes: "may not list persistentvolumes",
	}, objects.Gaps)
}

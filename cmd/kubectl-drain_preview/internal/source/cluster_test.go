package source

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// newCluster is a cluster with one VMI in each of two namespaces, which it lists one a page. Whatever deny says is
// forbidden, and missing is not there.
func newCluster(t *testing.T, deny func(kind Kind, namespace string) bool, missing Kind) rest.Interface {
	t.Helper()
	answer := func(w http.ResponseWriter, code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		assert.NoError(t, json.NewEncoder(w).Encode(body))
	}
	refuse := func(w http.ResponseWriter, code int, reason metav1.StatusReason) {
		answer(w, code, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, http.MethodGet, r.Method, "a preview only gets and lists")
		path := strings.Split(r.URL.Path, "/")
		kind, namespace := Kind(path[len(path)-1]), ""
		if len(path) > 3 && path[len(path)-3] == "namespaces" {
			namespace = path[len(path)-2]
		}
		vmi := func(namespace string) any {
			return map[string]any{"metadata": map[string]any{"name": "vm", "namespace": namespace}, "status": map[string]any{"phase": "Running"}}
		}
		page := r.URL.Query().Get("continue")
		switch {
		case kind == missing:
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		case deny(kind, namespace):
			refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
		case kind != VMIs:
			answer(w, http.StatusOK, map[string]any{"kind": "List", "apiVersion": "v1", "items": []any{}})
		case namespace == "" && page == "":
			answer(w, http.StatusOK, map[string]any{"kind": "VirtualMachineInstanceList", "apiVersion": "kubevirt.io/v1",
				"metadata": map[string]any{"continue": "more"}, "items": []any{vmi("tenant-a")}})
		case namespace == "":
			answer(w, http.StatusOK, map[string]any{"kind": "VirtualMachineInstanceList", "apiVersion": "kubevirt.io/v1", "items": []any{vmi("tenant-b")}})
		default:
			answer(w, http.StatusOK, map[string]any{"kind": "VirtualMachineInstanceList", "apiVersion": "kubevirt.io/v1", "items": []any{vmi(namespace)}})
		}
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	require.NoError(t, err)
	return client.RESTClient()
}

func quietly(Kind) {}

func TestARightThatIsMissingIsUnknownByItsName(t *testing.T) {
	client := newCluster(t, func(kind Kind, _ string) bool { return kind == Volumes }, Migrations)
	objects, err := Cluster(t.Context(), client, "", quietly)
	require.NoError(t, err)
	assert.Len(t, objects.VMIs, 2)
	assert.Equal(t, map[Kind]string{Volumes: "may not list persistentvolumes", Migrations: "the cluster has no virtualmachineinstancemigrations",
		KubeVirts: "the cluster has no KubeVirt CR"}, objects.Unknown)
}

func TestWithoutTheRightToListVMsThereIsNoAnswer(t *testing.T) {
	_, err := Cluster(t.Context(), newCluster(t, func(kind Kind, _ string) bool { return kind == VMIs }, ""), "", quietly)
	assert.ErrorContains(t, err, "may not list virtualmachineinstances")
}

func TestRightsInOneNamespaceLeaveRoomUnknown(t *testing.T) {
	client := newCluster(t, func(_ Kind, namespace string) bool { return namespace != "tenant-a" }, "")
	objects, err := Cluster(t.Context(), client, "tenant-a", quietly)
	require.NoError(t, err)
	assert.Len(t, objects.VMIs, 1)
	assert.Equal(t, "tenant-a", objects.Namespace)
	for _, kind := range []Kind{KubeVirts, Nodes, Volumes, CSINodes, Namespaces, OtherPods} {
		assert.Contains(t, objects.Unknown, kind)
	}
	assert.NotContains(t, objects.Unknown, Pods)
}

func TestPodsAreListedBeforeTheVMsThatTheyBelongTo(t *testing.T) {
	var order []Kind
	_, err := Cluster(t.Context(), newCluster(t, func(Kind, string) bool { return false }, ""), "", func(kind Kind) { order = append(order, kind) })
	require.NoError(t, err)
	assert.Len(t, order, len(kinds))
	assert.Less(t, slices.Index(order, Pods), slices.Index(order, VMIs))
	assert.Less(t, slices.Index(order, Pods), slices.Index(order, VMs))
}

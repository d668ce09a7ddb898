package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestVerifyAsksForADryRunOnce(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			assert.Equal(t, "/apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstances/web", r.URL.Path)
			_, _ = w.Write([]byte(`{"metadata": {"uid": "vmi"}, "status": {"evacuationNodeName": "node-a"}}`))
			return
		}
		asked++
		assert.Equal(t, "/api/v1/namespaces/shop/pods/virt-launcher-web/eviction", r.URL.Path)
		var eviction policyv1.Eviction
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&eviction))
		assert.Equal(t, "policy/v1", eviction.APIVersion)
		assert.Equal(t, []string{metav1.DryRunAll}, eviction.DeleteOptions.DryRun)
		w.Header().Set("Retry-After", "10")
		w.WriteHeader(http.StatusTooManyRequests)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: http.StatusTooManyRequests, Message: "no"})
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	require.NoError(t, err)
	err = live{client}.Evict(t.Context(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: "shop", Name: "virt-launcher-web"},
		DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
	})
	assert.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	assert.Equal(t, 1, asked, "an answer that may be retried is an answer")

	vmi, err := live{client}.VMI(t.Context(), "shop", "web")
	require.NoError(t, err)
	assert.Equal(t, "node-a", vmi.Status.EvacuationNodeName)
}

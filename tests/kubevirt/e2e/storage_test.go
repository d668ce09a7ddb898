package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// This file is the storage of a cluster: a class that CDI knows to be shared, one that it does not know, and whatever
// binds claims and lets them go.

const shared, local = "shared", "local"

func provideStorage(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	require.NoError(t, err)
	profiles := schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "storageprofiles"}
	anything := true
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*extv1.CustomResourceDefinition{{
		ObjectMeta: metav1.ObjectMeta{Name: profiles.GroupResource().String()},
		Spec: extv1.CustomResourceDefinitionSpec{
			Group: profiles.Group,
			Scope: extv1.ClusterScoped,
			Names: extv1.CustomResourceDefinitionNames{Plural: profiles.Resource, Singular: "storageprofile", Kind: "StorageProfile"},
			Versions: []extv1.CustomResourceDefinitionVersion{{
				Name: profiles.Version, Served: true, Storage: true,
				Schema: &extv1.CustomResourceValidation{OpenAPIV3Schema: &extv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}},
			}},
		},
	}}})
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.Resource(profiles).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": profiles.GroupVersion().String(), "kind": "StorageProfile", "metadata": map[string]any{"name": shared},
		"status": map[string]any{"claimPropertySets": []any{
			map[string]any{"accessModes": []any{"ReadWriteMany"}, "volumeMode": "Block"},
			map[string]any{"accessModes": []any{"ReadWriteOnce"}, "volumeMode": "Block"},
		}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	bindClaims(t)
}

// bindClaims is what kube-controller-manager and a provisioner come to: claims are bound, and let go when they are
// deleted, which a finalizer (kubernetes.io/pvc-protection) waits for.
func bindClaims(t *testing.T) {
	claims, err := cluster.Kube.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	t.Cleanup(claims.Stop)
	go func() {
		for event := range claims.ResultChan() {
			claim, ok := event.Object.(*corev1.PersistentVolumeClaim)
			if !ok {
				continue
			}
			client := cluster.Kube.CoreV1().PersistentVolumeClaims(claim.Namespace)
			switch { // an update that fails is of a version that another event follows
			case claim.DeletionTimestamp != nil:
				claim.Finalizers = nil
				_, _ = client.Update(context.Background(), claim, metav1.UpdateOptions{})
			case claim.Status.Phase == corev1.ClaimPending:
				claim.Status.Phase = corev1.ClaimBound
				_, _ = client.UpdateStatus(context.Background(), claim, metav1.UpdateOptions{})
			}
		}
	}()
}

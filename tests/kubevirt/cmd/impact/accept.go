// Whether the API server and virt-operator's update webhook take the change, and what KubeVirt makes of the CR.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8sfake "k8s.io/client-go/kubernetes/fake"
	v1 "kubevirt.io/api/core/v1"

	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/webhooks"

	"cozy-kubevirt/internal/crd"
)

// kubeVirtSchema is made once for all pairs.
var kubeVirtSchema = sync.OnceValues(func() (*crd.Schema, error) {
	definition, err := components.NewKubeVirtCrd()
	if err != nil {
		return nil, err
	}
	return crd.New(definition, v1.GroupVersion.Version)
})

// schemaRefusals is what KubeVirt's CRD refuses in the CR, and the fields that the API server drops without a word.
func schemaRefusals(ctx context.Context, object map[string]any) (refused, dropped []string, err error) {
	schema, err := kubeVirtSchema()
	if err != nil {
		return nil, nil, err
	}
	all, err := schema.Refusals(ctx, object)
	for _, refusal := range all {
		if strings.HasPrefix(refusal, "unknown field ") {
			dropped = append(dropped, refusal)
		} else {
			refused = append(refused, refusal)
		}
	}
	return refused, dropped, err
}

// askWebhook asks virt-operator's own update webhook about the change. What it asks a live API server, where pods may be
// placed, is always taken here.
func askWebhook(ctx context.Context, old, new *v1.KubeVirt, config *virtconfig.ClusterConfig) (refused, warnings []string, err error) {
	var raw [2][]byte
	for i, kv := range []*v1.KubeVirt{old, new} {
		if raw[i], err = json.Marshal(kv); err != nil {
			return nil, nil, err
		}
	}
	defer func() {
		if p := recover(); p != nil {
			refused, err = []string{fmt.Sprintf("KubeVirt's update webhook panics on it: %v", p)}, nil
		}
	}()
	response := webhooks.NewKubeVirtUpdateAdmitter(k8sfake.NewClientset(), config).Admit(ctx, &admissionv1.AdmissionReview{
		Request: &admissionv1.AdmissionRequest{
			Operation: admissionv1.Update,
			Resource:  webhooks.KubeVirtGroupVersionResource,
			OldObject: runtime.RawExtension{Raw: raw[0]},
			Object:    runtime.RawExtension{Raw: raw[1]},
		},
	})
	if !response.Allowed {
		refused = append(refused, response.Result.Message)
	}
	for _, warning := range response.Warnings {
		if warning != "" { // the message of an Alpha or Beta gate is empty
			warnings = append(warnings, warning)
		}
	}
	return refused, warnings, nil
}

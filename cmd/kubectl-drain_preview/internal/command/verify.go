package command

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/cmd/kubectl-drain_preview/report"
)

// This file is the cluster that --verify asks.

type live struct{ kubernetes.Interface }

func (o *options) cluster() (report.Cluster, error) {
	config, err := o.config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	return live{client}, err
}

// Evict does not wait: an eviction that the API server asks to be retried is an answer.
func (l live) Evict(ctx context.Context, eviction *policyv1.Eviction) error {
	return l.PolicyV1().RESTClient().Post().AbsPath("/api/v1").Namespace(eviction.Namespace).Resource("pods").Name(eviction.Name).
		SubResource("eviction").MaxRetries(0).Body(eviction).Do(ctx).Error()
}

// Launchers needs no more than the right to list pods, which all of this command needs.
func (l live) Launchers(ctx context.Context, of *corev1.Pod) ([]corev1.Pod, error) {
	which := metav1.ListOptions{FieldSelector: "metadata.name=" + of.Name}
	if uid := of.Labels[v1.CreatedByLabel]; uid != "" {
		which = metav1.ListOptions{LabelSelector: v1.AppLabel + "=virt-launcher," + v1.CreatedByLabel + "=" + uid}
	}
	list, err := l.CoreV1().Pods(of.Namespace).List(ctx, which)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (l live) VMI(ctx context.Context, namespace, name string) (*v1.VirtualMachineInstance, error) {
	text, err := l.CoreV1().RESTClient().Get().AbsPath("/apis/kubevirt.io/v1").Namespace(namespace).Resource("virtualmachineinstances").Name(name).
		DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	vmi := &v1.VirtualMachineInstance{}
	return vmi, json.Unmarshal(text, vmi)
}

package platform

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
)

// This file is what kube-controller-manager does for a namespace that is being deleted: whatever is in it is deleted,
// and when nothing is left, the namespace goes.

func (p *Platform) endDeletedNamespaces(stopped <-chan struct{}) {
	ctx := wait.ContextForChannel(stopped)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for _, object := range p.shared.namespaces.GetStore().List() {
			namespace := object.(*corev1.Namespace).DeepCopy()
			if namespace.DeletionTimestamp == nil {
				continue
			}
			if err := p.endNamespace(ctx, namespace); err != nil {
				klog.Infof("namespace %s: %v", namespace.Name, err)
			}
		}
	}, 200*time.Millisecond)
}

func (p *Platform) endNamespace(ctx context.Context, namespace *corev1.Namespace) error {
	client, err := metadata.NewForConfig(p.Config)
	if err != nil {
		return err
	}
	served, err := p.Kube.Discovery().ServerPreferredNamespacedResources()
	if err != nil {
		return err
	}
	deletable := discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "deletecollection"}}, served)
	resources, err := discovery.GroupVersionResources(deletable)
	if err != nil {
		return err
	}
	left := 0
	for resource := range resources {
		n, err := deleteAll(ctx, client.Resource(resource).Namespace(namespace.Name))
		if err != nil {
			return err
		}
		left += n
	}
	if left > 0 {
		return nil
	}
	namespace.Spec.Finalizers = nil
	_, err = p.Kube.CoreV1().Namespaces().Finalize(ctx, namespace, metav1.UpdateOptions{})
	return err
}

// deleteAll deletes what is there and says how much that was.
func deleteAll(ctx context.Context, client metadata.ResourceInterface) (int, error) {
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		return 0, err
	}
	return len(list.Items), client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

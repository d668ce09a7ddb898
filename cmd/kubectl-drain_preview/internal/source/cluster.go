package source

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"
)

// This file reads a cluster with nothing but lists, a page at a time.

// pageSize is kubectl's own (--chunk-size).
const pageSize = 500

// Cluster reads a cluster. A kind that may not be listed, or that the cluster does not have, is a gap; any other failure,
// and VMIs that may not be listed, are an error. With a namespace, what may not be listed in all of them is listed
// there, as far as that is enough.
func Cluster(ctx context.Context, client dynamic.Interface, namespace string, progress func(Kind)) (*Objects, error) {
	objects := &Objects{Gaps: map[Kind]string{}}
	for _, kind := range kinds {
		progress(kind.name)
		err := kind.list(ctx, client, "", objects)
		if apierrors.IsForbidden(err) && kind.local && namespace != "" {
			if err = kind.list(ctx, client, namespace, objects); err == nil && kind.name == VMIs {
				objects.Namespace = namespace
			}
		}
		switch {
		case apierrors.IsForbidden(err):
			objects.Gaps[kind.name] = fmt.Sprintf("may not list %s", kind.name)
		case apierrors.IsNotFound(err):
			objects.Gaps[kind.name] = fmt.Sprintf("the cluster has no %s", kind.name)
		case err != nil:
			return nil, fmt.Errorf("cannot list %s: %w", kind.name, err)
		}
	}
	if gap := objects.Gaps[VMIs]; gap != "" {
		return nil, fmt.Errorf("%s, without which there is nothing to say; ask for the right to list them, or name a namespace with -n", gap)
	}
	if len(objects.KubeVirts) == 0 && objects.Gaps[KubeVirts] == "" {
		objects.Gaps[KubeVirts] = "the cluster has no KubeVirt CR"
	}
	return objects, nil
}

func (k kind) list(ctx context.Context, client dynamic.Interface, namespace string, into *Objects) error {
	resource := client.Resource(k.resource())
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return resource.Namespace(namespace).List(ctx, options)
	})
	pages.PageSize = pageSize
	return pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: k.selector}, func(item runtime.Object) error {
		return k.add(into, func(object any) error {
			content := item.(*unstructured.Unstructured).UnstructuredContent()
			return runtime.DefaultUnstructuredConverter.FromUnstructured(content, object)
		})
	})
}

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// This file reads a cluster with nothing but lists, a page at a time, which it reads as it reads a dump.

// pageSize is kubectl's own (--chunk-size).
const pageSize = 500

// Cluster reads a cluster. A kind that may not be listed, or that the cluster does not have, is unknown; any other failure,
// and VMIs that may not be listed, are an error. With a namespace, what may not be listed in all of them is listed
// there, as far as that is enough.
func Cluster(ctx context.Context, client rest.Interface, namespace string, progress func(Kind)) (*Objects, error) {
	r := newReader()
	unknown, only, failed := map[Kind]string{}, "", error(nil)
	for n, kind := range podsFirst() {
		progress(kind.name)
		at := place{file: string(kind.name), document: n}
		err := kind.list(ctx, client, "", r, at)
		if apierrors.IsForbidden(err) && kind.local && namespace != "" {
			err = kind.list(ctx, client, namespace, r, at)
			switch {
			case err == nil && kind.name == VMIs:
				only = namespace
			case err == nil && kind.name == Pods: // elsewhere there are pods as well, and they take room
				unknown[OtherPods] = "may not list pods in other namespaces, so it is not known what room there is"
			}
		}
		switch {
		case apierrors.IsForbidden(err):
			unknown[kind.name] = fmt.Sprintf("may not list %s", kind.name)
		case apierrors.IsNotFound(err):
			unknown[kind.name] = fmt.Sprintf("the cluster has no %s", kind.name)
		case err != nil:
			failed = fmt.Errorf("cannot list %s: %w", kind.name, err)
		}
		if failed != nil {
			break
		}
	}
	objects, err := r.finish()
	if err = errors.Join(failed, err); err != nil {
		return nil, err
	}
	objects.Unknown, objects.Namespace, objects.Now = unknown, only, time.Now()
	if why := unknown[VMIs]; why != "" {
		return nil, fmt.Errorf("%s, without which there is nothing to say; ask for the right to list them, or name a namespace with -n", why)
	}
	if len(objects.KubeVirts) == 0 && unknown[KubeVirts] == "" {
		unknown[KubeVirts] = "the cluster has no KubeVirt CR"
	}
	return objects, nil
}

// podsFirst are the kinds in the order in which a cluster is asked. A launcher that starts between two lists has a VMI in the
// later one; the other way round its VMI would seem to be gone, and the advice were to delete it.
func podsFirst() []kind {
	pods := slices.IndexFunc(kinds, func(k kind) bool { return k.name == Pods })
	return slices.Concat(kinds[pods:pods+1], kinds[:pods], kinds[pods+1:])
}

func (k kind) list(ctx context.Context, client rest.Interface, namespace string, r *reader, at place) error {
	prefix := "/apis/" + k.object.Group
	if k.object.Group == "" {
		prefix = "/api"
	}
	limit, next := strconv.Itoa(pageSize), ""
	for {
		page, err := client.Get().AbsPath(prefix, k.object.Version).NamespaceIfScoped(namespace, namespace != "").Resource(string(k.name)).
			Param("limit", limit).Param("continue", next).SetHeader("Accept", "application/json").DoRaw(ctx)
		if apierrors.IsResourceExpired(err) && next != "" {
			limit, next = "0", "" // the whole list at once, as kubectl does; what was read before counts once
			continue
		}
		if err != nil {
			return err
		}
		list, err := whole[metav1.PartialObjectMetadataList](page)
		if err != nil {
			return err
		}
		if err := r.document(jsontext.NewDecoder(bytes.NewReader(page), asKubernetes), at); err != nil {
			return err
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

package scheduling

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/source"
)

// This file is informers that know what was read, and nothing else ever.

type static struct{ cache.Indexer }

func (s static) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, object := range s.List() {
		h.OnAdd(object, true)
	}
	return s, nil
}

func (s static) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(h)
}

func (s static) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(h)
}

func (s static) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }
func (s static) GetStore() cache.Store                                           { return s.Indexer }
func (s static) GetIndexer() cache.Indexer                                       { return s.Indexer }
func (s static) GetController() cache.Controller                                 { return nil }
func (s static) Run(<-chan struct{})                                             {}
func (s static) RunWithContext(context.Context)                                  {}
func (s static) HasSynced() bool                                                 { return true }
func (s static) LastSyncResourceVersion() string                                 { return "" }
func (s static) SetWatchErrorHandler(cache.WatchErrorHandler) error              { return nil }
func (s static) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return nil
}
func (s static) SetTransform(cache.TransformFunc) error { return nil }
func (s static) IsStopped() bool                        { return false }

// newInformers fills the informers that the plugins ask for.
func newInformers(objects *source.Objects) informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactory(nil, 0)
	known(factory, &corev1.PersistentVolumeClaim{}, objects.Claims)
	known(factory, &corev1.PersistentVolume{}, objects.Volumes)
	known(factory, &corev1.Namespace{}, objects.Namespaces)
	known(factory, &storagev1.CSINode{}, objects.CSINodes)
	known(factory, &corev1.Node{}, objects.Nodes)
	known[*corev1.Pod](factory, &corev1.Pod{}, nil) // the plugins read pods from the snapshot
	known[*storagev1.StorageClass](factory, &storagev1.StorageClass{}, nil)
	known[*storagev1.CSIDriver](factory, &storagev1.CSIDriver{}, nil)
	known[*storagev1.CSIStorageCapacity](factory, &storagev1.CSIStorageCapacity{}, nil)
	known[*storagev1.VolumeAttachment](factory, &storagev1.VolumeAttachment{}, nil)
	return factory
}

func known[T runtime.Object](factory informers.SharedInformerFactory, kind runtime.Object, objects []T) {
	factory.InformerFor(kind, func(clientset.Interface, time.Duration) cache.SharedIndexInformer {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		for _, object := range objects {
			_ = indexer.Add(object) // its key is its name, which it has
		}
		return static{indexer}
	})
}

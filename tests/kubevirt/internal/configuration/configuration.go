// Package configuration is what KubeVirt's components make of a CR, by their own loader.
package configuration

import (
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/tools/cache"
	v1 "kubevirt.io/api/core/v1"

	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"
)

const resourceVersion = "1"

// Deployed is a CR as virt-operator leaves it: KubeVirt heeds no configuration before its phase is set, and updates no workload
// before it is Deployed (pkg/virt-config/configuration.go:366,
// pkg/virt-controller/watch/workload-updater/workload-updater.go:451).
func Deployed(kv *v1.KubeVirt) *v1.KubeVirt {
	kv = kv.DeepCopy()
	kv.ResourceVersion = resourceVersion
	kv.Status.Phase = v1.KubeVirtPhaseDeployed
	if kv.Status.DefaultArchitecture == "" {
		kv.Status.DefaultArchitecture = "amd64"
	}
	return kv
}

// Of is what they work with once the CR is deployed. Valid is false where they drop its configuration whole, for the last good
// one (configuration.go:347-353).
func Of(kv *v1.KubeVirt) (config *virtconfig.ClusterConfig, valid bool, err error) {
	crds := cache.NewSharedIndexInformer(&cache.ListWatch{}, &extv1.CustomResourceDefinition{}, 0, cache.Indexers{})
	kubeVirts := cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1.KubeVirt{}, 0, cache.Indexers{})
	if err := kubeVirts.GetStore().Add(Deployed(kv)); err != nil {
		return nil, false, err
	}
	config, err = virtconfig.NewClusterConfigWithCPUArch(crds, kubeVirts, kv.Namespace, "amd64")
	if err != nil {
		return nil, false, err
	}
	config.GetConfig() // it is read only when asked for
	return config, config.GetResourceVersion() == resourceVersion, nil
}

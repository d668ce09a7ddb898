// Package platform is the platform that the rehearsal rehearses on: etcd and kube-apiserver, KubeVirt's webhooks and
// controllers at the pinned version, and the chart installed by Helm. Only the node side is a stand-in (nodes.go).
package platform

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"cozy-kubevirt/internal/sandbox"
	"cozy-kubevirt/tests/kubevirt/internal/client"
	"kubevirt.io/client-go/kubecli"
	"kubevirt.io/kubevirt/pkg/controller"
	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Platform is one running control plane.
type Platform struct {
	client.Client
	VirtAPI kubecli.KubevirtClient // speaks as virt-api, for what its subresources write
	Version string                 // of the API server

	environment   *envtest.Environment
	webhooks      *webhookServer
	clusterConfig *virtconfig.ClusterConfig
	controller    kubecli.KubevirtClient // speaks as virt-controller
	shared        shared
	stop          context.CancelFunc
	folder        string // its files, in the sandbox
}

// shared are the cluster-wide informers that every virt-controller reads.
type shared struct {
	namespaces, nodes, storageClasses, quotas, migrationPolicies cache.SharedIndexInformer
	instancetypes, clusterInstancetypes                          cache.SharedIndexInformer
	preferences, clusterPreferences                              cache.SharedIndexInformer
	dataVolumes, dataSources, storageProfiles, cdis, cdiConfigs  cache.SharedIndexInformer
}

// Start brings a control plane up, with KubeVirt's webhooks and without the chart. Its servers listen on loopback
// only, and its files stand in the sandbox. The binaries come from $KUBEBUILDER_ASSETS or from the folder given. The files
// hold CRDs that are served beside KubeVirt's.
func Start(binaries string, files ...string) (*Platform, error) {
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		binaries = assets
	}
	folder, err := sandbox.Folder("platform-")
	if err != nil {
		return nil, err
	}
	client.CollectLess()
	ctx, stop := context.WithCancel(context.Background())
	p := &Platform{folder: folder, stop: stop}
	if err := p.start(ctx, binaries, files); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// Stop ends everything that Start began.
func (p *Platform) Stop() {
	p.stop()
	if p.webhooks != nil {
		p.webhooks.close()
	}
	if p.environment != nil {
		if p.environment.Stop() != nil {
			return // the sandbox will see to it
		}
	}
	_ = os.RemoveAll(p.folder)
}

func (p *Platform) start(ctx context.Context, binaries string, files []string) error {
	crds, err := customResourceDefinitions()
	if err != nil {
		return err
	}
	environment := &envtest.Environment{
		CRDs:                     crds,
		CRDDirectoryPaths:        files,
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: time.Minute,
	}
	apiServer := environment.ControlPlane.GetAPIServer()
	if apiServer.Path, err = sandbox.Server(p.folder, filepath.Join(binaries, "kube-apiserver")); err != nil {
		return err
	}
	// KubeVirt counts on every pod's token volume when it compares a hotplug pod's volumes with the VMI's.
	apiServer.Configure().Disable("disable-admission-plugins")
	environment.ControlPlane.Etcd = &envtest.Etcd{}
	if environment.ControlPlane.Etcd.Path, err = sandbox.Server(p.folder, filepath.Join(binaries, "etcd")); err != nil {
		return err
	}
	environment.ControlPlane.Etcd.Configure().Append("unsafe-no-fsync") // its data is gone after the run anyway
	p.environment = environment
	config, err := environment.Start()
	if err != nil {
		return err
	}
	if err := p.Connect(config); err != nil {
		return err
	}
	version, err := p.Kube.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	p.Version = version.GitVersion
	p.Kubeconfig = filepath.Join(p.folder, "kubeconfig")
	if err := os.WriteFile(p.Kubeconfig, environment.KubeConfig, 0o600); err != nil {
		return err
	}

	if err := p.authorizeKubeVirt(ctx); err != nil {
		return err
	}
	if p.VirtAPI, err = p.as(components.ApiServiceAccountName, ""); err != nil {
		return err
	}
	if p.controller, err = p.as(components.ControllerServiceAccountName, ""); err != nil {
		return err
	}

	factory := controller.NewKubeInformerFactory(p.Virt.RestClient(), p.Virt, p.Virt, nil, client.Namespace)
	// The configuration comes from the chart's CR alone; scenarios keep copies of it elsewhere (virtcontroller.go).
	kubeVirts := p.kubeVirts(client.Namespace)
	go kubeVirts.Run(ctx.Done())
	definitions := factory.CRD()
	p.shared = shared{
		namespaces:           factory.Namespace(),
		nodes:                factory.KubeVirtNode(),
		storageClasses:       factory.StorageClass(),
		quotas:               factory.ResourceQuota(),
		migrationPolicies:    factory.MigrationPolicy(),
		instancetypes:        factory.VirtualMachineInstancetype(),
		clusterInstancetypes: factory.VirtualMachineClusterInstancetype(),
		preferences:          factory.VirtualMachinePreference(),
		clusterPreferences:   factory.VirtualMachineClusterPreference(),
		dataVolumes:          factory.DummyDataVolume(),
		dataSources:          factory.DummyDataSource(),
		storageProfiles:      factory.DummyStorageProfile(),
		cdis:                 factory.DummyCDI(),
		cdiConfigs:           factory.DummyCDIConfig(),
	}
	if err := p.giveNamespacesAServiceAccount(ctx); err != nil {
		return err
	}
	p.webhooks = newWebhookServer(factory)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), kubeVirts.HasSynced)
	if p.clusterConfig, err = virtconfig.NewClusterConfig(definitions, kubeVirts, client.Namespace); err != nil {
		return err
	}
	return p.webhooks.serve(p.Config, p.clusterConfig, p.VirtAPI)
}

// giveNamespacesAServiceAccount is what kube-controller-manager does, and what pods need to be accepted.
func (p *Platform) giveNamespacesAServiceAccount(ctx context.Context) error {
	_, err := p.shared.namespaces.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		namespace := object.(*corev1.Namespace).Name
		if _, err := p.Kube.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
			klog.Infof("service account of namespace %s: %v", namespace, err)
		}
	}})
	return err
}

// authorizeKubeVirt lets KubeVirt's service accounts do anything: what they may do on a cluster is virt-operator's
// business and not rehearsed here. That it is them who ask is what the webhooks look at.
func (p *Platform) authorizeKubeVirt(ctx context.Context) error {
	_, err := p.Kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kubevirt"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + client.Namespace,
		}},
	}, metav1.CreateOptions{})
	return err
}

// as returns a client that speaks as one of KubeVirt's service accounts, on a node if one is named.
func (p *Platform) as(account, node string) (kubecli.KubevirtClient, error) {
	config := rest.CopyConfig(p.Config)
	config.Impersonate.UserName = fmt.Sprintf("system:serviceaccount:%s:%s", client.Namespace, account)
	if node != "" {
		config.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {node}}
	}
	return kubecli.GetKubevirtClientFromRESTConfig(config)
}

func customResourceDefinitions() ([]*extv1.CustomResourceDefinition, error) {
	var crds []*extv1.CustomResourceDefinition
	for _, definition := range []func() (*extv1.CustomResourceDefinition, error){
		components.NewKubeVirtCrd,
		components.NewVirtualMachineCrd,
		components.NewVirtualMachineInstanceCrd,
		components.NewVirtualMachineInstanceMigrationCrd,
		components.NewPresetCrd,
		components.NewReplicaSetCrd,
		components.NewVirtualMachineInstancetypeCrd,
		components.NewVirtualMachineClusterInstancetypeCrd,
		components.NewVirtualMachinePreferenceCrd,
		components.NewVirtualMachineClusterPreferenceCrd,
		components.NewMigrationPolicyCrd,
		components.NewVirtualMachineSnapshotCrd,
		components.NewVirtualMachineSnapshotContentCrd,
		components.NewVirtualMachineRestoreCrd,
		components.NewVirtualMachineBackupCrd,
	} {
		crd, err := definition()
		if err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

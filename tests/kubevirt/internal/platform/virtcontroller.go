package platform

import (
	"context"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/controller"
	instancetypecontroller "kubevirt.io/kubevirt/pkg/instancetype/controller/vm"
	netadmitter "kubevirt.io/kubevirt/pkg/network/admitter"
	netcontrollers "kubevirt.io/kubevirt/pkg/network/controllers"
	netmigration "kubevirt.io/kubevirt/pkg/network/migration"
	netannotations "kubevirt.io/kubevirt/pkg/network/pod/annotations"
	storageannotations "kubevirt.io/kubevirt/pkg/storage/pod/annotations"
	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"
	"kubevirt.io/kubevirt/pkg/virt-controller/services"
	"kubevirt.io/kubevirt/pkg/virt-controller/watch/drain/evacuation"
	"kubevirt.io/kubevirt/pkg/virt-controller/watch/migration"
	"kubevirt.io/kubevirt/pkg/virt-controller/watch/topology"
	"kubevirt.io/kubevirt/pkg/virt-controller/watch/vm"
	"kubevirt.io/kubevirt/pkg/virt-controller/watch/vmi"
	workloadupdater "kubevirt.io/kubevirt/pkg/virt-controller/watch/workload-updater"

	"cozy-kubevirt/tests/kubevirt/internal/client"
)

// This file runs virt-controller: the VM, VMI, migration, evacuation and workload-update controllers, wired as
// pkg/virt-controller/watch/application.go wires them. Each scenario has one of its own that sees its namespace only,
// so that one scenario's upgrade is not another's. An upgrade of KubeVirt is what it is on a cluster, too: the
// virt-controller is replaced by one with another launcher image.

// CopyKubeVirt keeps a copy of the chart's CR in a scenario's namespace, where that scenario's workload updater reads
// its strategy and writes its count of outdated VMIs. All else in KubeVirt reads the chart's own.
func (p *Platform) CopyKubeVirt(ctx context.Context, namespace string, change func(*v1.KubeVirt)) error {
	installed, err := p.KubeVirt(ctx)
	if err != nil {
		return err
	}
	kubeVirt, err := p.Virt.KubeVirt(namespace).Get(ctx, client.Release, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		kubeVirt = &v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Name: client.Release, Namespace: namespace}, Spec: installed.Spec}
		change(kubeVirt)
		kubeVirt, err = p.Virt.KubeVirt(namespace).Create(ctx, kubeVirt, metav1.CreateOptions{})
	case err == nil:
		kubeVirt.Spec = installed.Spec
		change(kubeVirt)
		kubeVirt, err = p.Virt.KubeVirt(namespace).Update(ctx, kubeVirt, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	_, err = p.reportDeployed(ctx, kubeVirt)
	return err
}

// StartVirtController runs a virt-controller for one namespace, or for all, with one launcher image, until stop is called.
func (p *Platform) StartVirtController(namespace, launcherImage string) (stop func(), err error) {
	stopped := make(chan struct{})
	vmis := p.virtInformer(namespace, "virtualmachineinstances", &v1.VirtualMachineInstance{}, controller.GetVMIInformerIndexers())
	vms := p.virtInformer(namespace, "virtualmachines", &v1.VirtualMachine{}, controller.GetVirtualMachineInformerIndexers())
	migrations := p.virtInformer(namespace, "virtualmachineinstancemigrations", &v1.VirtualMachineInstanceMigration{},
		controller.GetVirtualMachineInstanceMigrationInformerIndexers())
	kubeVirts := p.kubeVirts(namespace)
	pods := p.pods(namespace)
	claims := informer(p.controller.CoreV1().RESTClient(), namespace, "persistentvolumeclaims", &corev1.PersistentVolumeClaim{},
		labels.Everything(), byNamespace())
	revisions := informer(p.controller.AppsV1().RESTClient(), namespace, "controllerrevisions", &appsv1.ControllerRevision{},
		labels.Everything(), controller.GetControllerRevisionInformerIndexers())
	own := []cache.SharedIndexInformer{vmis, vms, migrations, kubeVirts, pods, claims, revisions}

	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: p.controller.CoreV1().Events(metav1.NamespaceAll)})
	recorder := func(component string) record.EventRecorder {
		return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component})
	}

	netAnnotations := netannotations.NewGenerator(p.clusterConfig)
	storageAnnotations := storageannotations.NewGenerator(p.clusterConfig)
	templates := services.NewTemplateService(launcherImage, 240, "/var/run/kubevirt", "/var/run/kubevirt-ephemeral-disks",
		"/var/run/kubevirt/container-disks", "/var/run/kubevirt/hotplug-disks", "", claims.GetStore(), p.controller,
		p.clusterConfig, 107, "virt-exportserver", p.shared.quotas.GetStore(), p.shared.namespaces.GetStore(),
		services.WithAnnotationsGenerators(netAnnotations, storageannotations.Generator{}),
		services.WithNetTargetAnnotationsGenerator(netAnnotations))

	vmController, err := vm.NewController(vmis, vms, p.shared.dataVolumes, p.shared.dataSources, kubeVirts, p.shared.namespaces,
		claims, revisions, recorder("virtualmachine-controller"), p.controller, p.clusterConfig,
		netcontrollers.NewVMController(p.controller.GeneratedKubeVirtClient()),
		vm.NewFirmwareController(p.controller.GeneratedKubeVirtClient()),
		instancetypecontroller.New(p.shared.instancetypes.GetStore(), p.shared.clusterInstancetypes.GetStore(),
			p.shared.preferences.GetStore(), p.shared.clusterPreferences.GetStore(), revisions.GetStore(),
			p.controller, p.clusterConfig, recorder("virtualmachine-controller")),
		nil, nil)
	if err != nil {
		return nil, err
	}
	vmiController, err := vmi.NewController(templates, vmis, vms, pods, claims, migrations, p.shared.storageClasses,
		recorder("virtualmachine-controller"), p.controller, p.shared.dataVolumes, p.shared.storageProfiles, p.shared.cdis,
		p.shared.cdiConfigs, kubeVirts, p.clusterConfig,
		topology.NewTopologyHinter(p.shared.nodes.GetStore(), vmis.GetStore(), p.clusterConfig),
		netAnnotations, storageAnnotations, netcontrollers.UpdateVMIStatus,
		func(path *field.Path, spec *v1.VirtualMachineInstanceSpec, config *virtconfig.ClusterConfig) []metav1.StatusCause {
			return netadmitter.ValidateCreation(path, spec, config)
		},
		netmigration.NewEvaluator(), nil, nil)
	if err != nil {
		return nil, err
	}
	migrationController, err := migration.NewController(templates, vmis, pods, migrations, p.shared.nodes, claims,
		p.shared.storageClasses, p.shared.storageProfiles, p.shared.migrationPolicies, p.shared.quotas, kubeVirts,
		recorder("virtualmachine-controller"), p.controller, p.clusterConfig, netAnnotations)
	if err != nil {
		return nil, err
	}
	evacuationController, err := evacuation.NewEvacuationController(vmis, migrations, p.shared.nodes, pods,
		recorder("evacuation-controller"), p.controller, p.clusterConfig)
	if err != nil {
		return nil, err
	}
	updater, err := workloadupdater.NewWorkloadUpdateController(launcherImage, vmis, pods, migrations, kubeVirts,
		recorder("workload-update-controller"), p.controller, p.clusterConfig)
	if err != nil {
		return nil, err
	}

	var running sync.WaitGroup
	for _, one := range own {
		running.Go(func() { one.Run(stopped) })
	}
	// As many workers as virt-controller has (application.go:100-105).
	running.Go(func() { vmController.Run(3, stopped) })
	running.Go(func() { vmiController.Run(10, stopped) })
	running.Go(func() { migrationController.Run(3, stopped) })
	running.Go(func() { evacuationController.Run(3, stopped) })
	running.Go(func() { updater.Run(stopped) })
	return func() {
		close(stopped)
		running.Wait()
		broadcaster.Shutdown()
	}, nil
}

// VMIs is an informer of the VMIs in a namespace, for tests to watch. Whoever asks for it runs it.
func (p *Platform) VMIs(namespace string) cache.SharedIndexInformer {
	return p.virtInformer(namespace, "virtualmachineinstances", &v1.VirtualMachineInstance{}, byNamespace())
}

func (p *Platform) virtInformer(namespace, resource string, object runtime.Object, indexers cache.Indexers) cache.SharedIndexInformer {
	return informer(p.Virt.RestClient(), namespace, resource, object, labels.Everything(), indexers)
}

func (p *Platform) kubeVirts(namespace string) cache.SharedIndexInformer {
	return p.virtInformer(namespace, "kubevirts", &v1.KubeVirt{}, byNamespace())
}

func (p *Platform) pods(namespace string) cache.SharedIndexInformer {
	ofKubeVirt, err := labels.Parse(v1.AppLabel)
	if err != nil {
		panic(err)
	}
	return informer(p.Kube.CoreV1().RESTClient(), namespace, "pods", &corev1.Pod{}, ofKubeVirt, byNamespace())
}

func informer(client rest.Interface, namespace, resource string, object runtime.Object, selector labels.Selector, indexers cache.Indexers) cache.SharedIndexInformer {
	source := controller.NewListWatchFromClient(client, resource, namespace, fields.Everything(), selector)
	return cache.NewSharedIndexInformer(source, object, 0, indexers)
}

func byNamespace() cache.Indexers {
	return cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
}

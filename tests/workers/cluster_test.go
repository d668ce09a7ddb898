package workers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	kubevirtv1 "kubevirt.io/api/core/v1"
	provider "sigs.k8s.io/cluster-api-provider-kubevirt/api/v1alpha1"
	providercontrollers "sigs.k8s.io/cluster-api-provider-kubevirt/controllers"
	providercontext "sigs.k8s.io/cluster-api-provider-kubevirt/pkg/context"
	"sigs.k8s.io/cluster-api-provider-kubevirt/pkg/infracluster"
	"sigs.k8s.io/cluster-api-provider-kubevirt/pkg/kubevirt"
	"sigs.k8s.io/cluster-api-provider-kubevirt/pkg/ssh"
	"sigs.k8s.io/cluster-api-provider-kubevirt/pkg/workloadcluster"
	clusterv1 "sigs.k8s.io/cluster-api/api/v1beta1"
	"sigs.k8s.io/cluster-api/api/v1beta1/index"
	"sigs.k8s.io/cluster-api/controllers"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	expv1 "sigs.k8s.io/cluster-api/exp/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"cozy-kubevirt/internal/sandbox"
)

// This file starts etcd and kube-apiserver with the CRDs of Cluster API, its KubeVirt provider and KubeVirt, and the
// controllers of the first two, wired as their own main.go wires them.

// resync is how often the provider looks at every machine. It does not watch VMIs (its SetupWithManager), so that a mark
// is seen on the next resync only: a minute as the provider ships it (main.go, --sync-period), here the least that
// informers take.
const resync = time.Second

// cluster is a running control plane with its controllers.
type cluster struct {
	client.Client // uncached
	config        *rest.Config
	looks         looks

	cancel   context.CancelFunc
	managers sync.WaitGroup
}

func (c *cluster) start(ctx context.Context, folder string) error {
	binaries := os.Getenv("KUBEBUILDER_ASSETS")
	if binaries == "" {
		binaries = filepath.Join("..", "..", "bin")
	}
	for _, binary := range []string{"etcd", "kube-apiserver"} {
		if _, err := sandbox.Server(folder, filepath.Join(binaries, binary)); err != nil {
			return err
		}
	}
	os.Setenv("KUBEBUILDER_ASSETS", folder) // where envtest looks for them
	crds, err := customResourceDefinitions(ctx)
	if err != nil {
		return err
	}
	environment := &envtest.Environment{CRDs: crds, ControlPlaneStartTimeout: time.Minute}
	environment.ControlPlane.Etcd = &envtest.Etcd{}
	environment.ControlPlane.Etcd.Configure().Append("unsafe-no-fsync") // its data is gone after the run anyway
	if c.config, err = environment.Start(); err != nil {
		return err
	}
	c.config.QPS, c.config.Burst = 2000, 4000
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, extv1.AddToScheme, clusterv1.AddToScheme, expv1.AddToScheme, provider.AddToScheme, kubevirtv1.AddToScheme,
	} {
		if err := add(types); err != nil {
			return err
		}
	}
	if c.Client, err = client.New(c.config, client.Options{Scheme: types}); err != nil {
		return err
	}
	ctx, c.cancel = context.WithCancel(ctx)
	for _, part := range []struct {
		resync time.Duration
		setup  func(context.Context, ctrl.Manager) error
	}{
		{10 * time.Minute, clusterAPI},
		{resync, c.kubeVirtProvider},
		{10 * time.Minute, standIn},
	} {
		manager, err := ctrl.NewManager(c.config, ctrl.Options{
			Scheme:  types,
			Metrics: metricsserver.Options{BindAddress: "0"},
			Cache:   cache.Options{SyncPeriod: &part.resync},
		})
		if err != nil {
			return err
		}
		if err := part.setup(ctx, manager); err != nil {
			return err
		}
		c.managers.Go(func() {
			if err := manager.Start(ctx); err != nil {
				fmt.Println("a manager ended:", err)
			}
		})
	}
	return nil
}

// stop ends the controllers. The servers are left to the sandbox.
func (c *cluster) stop() {
	if c.cancel != nil {
		c.cancel()
		c.managers.Wait()
	}
}

// clusterAPI runs Cluster API's Machine, MachineSet and MachineHealthCheck controllers.
func clusterAPI(ctx context.Context, manager ctrl.Manager) error {
	secrets, err := client.New(manager.GetConfig(), client.Options{
		HTTPClient: manager.GetHTTPClient(), Cache: &client.CacheOptions{Reader: manager.GetCache()},
	})
	if err != nil {
		return err
	}
	tenants, err := clustercache.SetupWithManager(ctx, manager, clustercache.Options{
		SecretClient: secrets,
		Cache:        clustercache.CacheOptions{Indexes: []clustercache.CacheOptionsIndex{clustercache.NodeProviderIDIndex}},
		Client: clustercache.ClientOptions{
			UserAgent: "cluster-api",
			Cache: clustercache.ClientCacheOptions{DisableFor: []client.Object{ // what a drain reads
				&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Pod{}, &appsv1.DaemonSet{},
				&storagev1.VolumeAttachment{}, &corev1.PersistentVolume{},
			}},
		},
	}, concurrent)
	if err != nil {
		return err
	}
	return errors.Join(
		index.AddDefaultIndexes(ctx, manager),
		(&controllers.MachineReconciler{
			Client: manager.GetClient(), APIReader: manager.GetAPIReader(), ClusterCache: tenants,
			RemoteConditionsGracePeriod: 5 * time.Minute,
		}).SetupWithManager(ctx, manager, concurrent),
		(&controllers.MachineSetReconciler{
			Client: manager.GetClient(), APIReader: manager.GetAPIReader(), ClusterCache: tenants,
			PreflightChecks: sets.New(clusterv1.MachineSetPreflightCheckAll),
		}).SetupWithManager(ctx, manager, concurrent),
		(&controllers.MachineHealthCheckReconciler{
			Client: manager.GetClient(), ClusterCache: tenants,
		}).SetupWithManager(ctx, manager, concurrent),
	)
}

// concurrent is how many objects of a kind a controller works on at once; the same as in the two projects.
var concurrent = controller.Options{MaxConcurrentReconciles: 10}

// kubeVirtProvider runs the KubeVirt provider's KubevirtMachine controller.
func (c *cluster) kubeVirtProvider(ctx context.Context, manager ctrl.Manager) error {
	return (&providercontrollers.KubevirtMachineReconciler{
		Client:          manager.GetClient(),
		InfraCluster:    infracluster.New(manager.GetClient(), c.Client),
		WorkloadCluster: workloadcluster.New(manager.GetClient()),
		MachineFactory:  &c.looks,
	}).SetupWithManager(ctx, manager, concurrent)
}

// looks is the provider's own machine factory, which it asks once in each reconciliation, and a count of them: where
// nothing is to happen, a test waits until the provider has had its chance.
type looks struct {
	kubevirt.DefaultMachineFactory
	mu    sync.Mutex
	count map[client.ObjectKey]int
}

func (l *looks) NewMachine(ctx *providercontext.MachineContext, c client.Client, namespace string, keys *ssh.ClusterNodeSshKeys) (kubevirt.MachineInterface, error) {
	l.mu.Lock()
	if l.count == nil {
		l.count = map[client.ObjectKey]int{}
	}
	l.count[client.ObjectKeyFromObject(ctx.KubevirtMachine)]++
	l.mu.Unlock()
	return l.DefaultMachineFactory.NewMachine(ctx, c, namespace, keys)
}

func (l *looks) at(machine client.ObjectKey) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count[machine]
}

// customResourceDefinitions reads those of Cluster API and its provider from their modules. KubeVirt's and Kamaji's are
// made, for the kinds that count here, and open: KubeVirt's Go API comes without any.
func customResourceDefinitions(ctx context.Context) ([]*extv1.CustomResourceDefinition, error) {
	output, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}",
		"sigs.k8s.io/cluster-api", "sigs.k8s.io/cluster-api-provider-kubevirt").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	files := envtest.CRDInstallOptions{ErrorIfPathMissing: true}
	for _, module := range strings.Fields(string(output)) {
		files.Paths = append(files.Paths, filepath.Join(module, "config", "crd", "bases"))
	}
	if err := envtest.ReadCRDFiles(&files); err != nil {
		return nil, err
	}
	crds := append(files.CRDs,
		openDefinition(kubevirtv1.VirtualMachineGroupVersionKind, "virtualmachines"),
		openDefinition(kubevirtv1.VirtualMachineInstanceGroupVersionKind, "virtualmachineinstances"),
		openDefinition(controlPlane, "kamajicontrolplanes"),
	)
	for _, crd := range crds {
		if group := crd.Spec.Group; group == provider.GroupVersion.Group || group == controlPlane.Group {
			// By this label Cluster API finds a provider's version. The files lack it, as kustomize adds it.
			crd.Labels = map[string]string{clusterv1.GroupVersion.Group + "/" + clusterv1.GroupVersion.Version: crd.Spec.Versions[0].Name}
		}
	}
	return crds, nil
}

// controlPlane is what the tenants' control planes are on the platform: run by somebody else than Cluster API.
var controlPlane = schema.GroupVersionKind{Group: "controlplane.cluster.x-k8s.io", Version: "v1alpha1", Kind: "KamajiControlPlane"}

// openDefinition defines a kind whose objects may have any field.
func openDefinition(kind schema.GroupVersionKind, plural string) *extv1.CustomResourceDefinition {
	open := true
	return &extv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + kind.Group},
		Spec: extv1.CustomResourceDefinitionSpec{
			Group: kind.Group,
			Scope: extv1.NamespaceScoped,
			Names: extv1.CustomResourceDefinitionNames{
				Kind: kind.Kind, ListKind: kind.Kind + "List", Plural: plural, Singular: strings.ToLower(kind.Kind),
			},
			Versions: []extv1.CustomResourceDefinitionVersion{{
				Name: kind.Version, Served: true, Storage: true,
				Schema: &extv1.CustomResourceValidation{
					OpenAPIV3Schema: &extv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open},
				},
			}},
		},
	}
}

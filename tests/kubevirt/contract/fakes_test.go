// The cluster that KubeVirt's code sees here: informers that only hold what a test puts in them, and a client over
// client-go's object trackers. They decide nothing.
package contract

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	k8sfake "k8s.io/client-go/kubernetes/fake"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	policyv1client "k8s.io/client-go/kubernetes/typed/policy/v1"
	"k8s.io/client-go/tools/cache"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/client-go/kubecli"
	"kubevirt.io/client-go/kubevirt"
	virtfake "kubevirt.io/client-go/kubevirt/fake"
	virtclient "kubevirt.io/client-go/kubevirt/typed/core/v1"

	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
	"cozy-kubevirt/tests/kubevirt/internal/configuration"
)

// informer is always in sync; add, update and remove tell the controllers that listen.
type informer struct {
	cache.SharedIndexInformer
	indexer  cache.Indexer
	handlers []cache.ResourceEventHandler
}

func newInformer(indexers ...cache.Indexers) *informer {
	all := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	for _, some := range indexers {
		for name, f := range some {
			all[name] = f
		}
	}
	return &informer{indexer: cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, all)}
}

func (i *informer) GetStore() cache.Store     { return i.indexer }
func (i *informer) GetIndexer() cache.Indexer { return i.indexer }
func (i *informer) HasSynced() bool           { return true }
func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, h)
	return nil, nil
}

func (i *informer) add(t testing.TB, objects ...any) {
	for _, o := range objects {
		require.NoError(t, i.indexer.Add(o))
		for _, h := range i.handlers {
			h.OnAdd(o, false)
		}
	}
}

func (i *informer) remove(t testing.TB, o any) {
	require.NoError(t, i.indexer.Delete(o))
	for _, h := range i.handlers {
		h.OnDelete(o)
	}
}

// client answers only for what the code under test should touch; anything else panics, and fails the test.
type client struct {
	kubecli.KubevirtClient
	k8s  *k8sfake.Clientset
	virt *virtfake.Clientset
}

func newClient() *client {
	return &client{k8s: k8sfake.NewClientset(), virt: virtfake.NewSimpleClientset()}
}

func (c *client) CoreV1() corev1client.CoreV1Interface        { return c.k8s.CoreV1() }
func (c *client) AppsV1() appsv1client.AppsV1Interface        { return c.k8s.AppsV1() }
func (c *client) PolicyV1() policyv1client.PolicyV1Interface  { return c.k8s.PolicyV1() }
func (c *client) KubevirtV1() virtclient.KubevirtV1Interface  { return c.virt.KubevirtV1() }
func (c *client) GeneratedKubeVirtClient() kubevirt.Interface { return c.virt }

func (c *client) VirtualMachine(ns string) kubecli.VirtualMachineInterface {
	return c.virt.KubevirtV1().VirtualMachines(ns)
}

func (c *client) VirtualMachineInstance(ns string) kubecli.VirtualMachineInstanceInterface {
	return c.virt.KubevirtV1().VirtualMachineInstances(ns)
}

func (c *client) VirtualMachineInstanceMigration(ns string) kubecli.VirtualMachineInstanceMigrationInterface {
	return c.virt.KubevirtV1().VirtualMachineInstanceMigrations(ns)
}

func (c *client) KubeVirt(ns string) kubecli.KubeVirtInterface {
	return c.virt.KubevirtV1().KubeVirts(ns)
}

// deployed is the CR as virt-operator leaves it.
func deployed(cr *v1.KubeVirt) *v1.KubeVirt {
	cr = configuration.Deployed(cr)
	cr.Namespace = chart.Namespace
	return cr
}

// withStrategy is the CR with another cluster-wide eviction strategy; "" leaves it unset.
func withStrategy(cr *v1.KubeVirt, strategy v1.EvictionStrategy) *v1.KubeVirt {
	cr = cr.DeepCopy()
	cr.Spec.Configuration.EvictionStrategy = nil
	if strategy != "" {
		cr.Spec.Configuration.EvictionStrategy = &strategy
	}
	return cr
}

// clusterConfig is what KubeVirt's components make of a CR.
func clusterConfig(t testing.TB, cr *v1.KubeVirt) *virtconfig.ClusterConfig {
	t.Helper()
	config, _, err := configuration.Of(deployed(cr))
	require.NoError(t, err)
	return config
}

// rendered is the chart with its defaults, the CR that most tests start from.
func rendered(t testing.TB) *v1.KubeVirt {
	t.Helper()
	return chart.Render(t, chart.Options{}).KubeVirt
}

// podReader and vmiWriter are the two clients of the eviction admitter: it reads pods, and reads and patches one VMI.
// Slimmer than a tracker, since the matrix makes thousands, and a dry run changes nothing, as on an API server.
type podReader struct {
	kubernetes.Interface
	corev1client.CoreV1Interface
	corev1client.PodInterface
	pods []*k8sv1.Pod
}

func (r podReader) CoreV1() corev1client.CoreV1Interface  { return r }
func (r podReader) Pods(string) corev1client.PodInterface { return r }
func (r podReader) Get(_ context.Context, name string, _ metav1.GetOptions) (*k8sv1.Pod, error) {
	for _, pod := range r.pods {
		if pod.Name == name {
			return pod, nil
		}
	}
	return nil, errors.NewNotFound(k8sv1.Resource("pods"), name)
}

type oneVMI struct {
	vmi     *v1.VirtualMachineInstance
	gone    bool
	patched bool
}

type vmiWriter struct {
	kubevirt.Interface
	virtclient.KubevirtV1Interface
	virtclient.VirtualMachineInstanceInterface
	vmis *oneVMI
}

func (w vmiWriter) KubevirtV1() virtclient.KubevirtV1Interface { return w }
func (w vmiWriter) VirtualMachineInstances(string) virtclient.VirtualMachineInstanceInterface {
	return w
}

func (w vmiWriter) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1.VirtualMachineInstance, error) {
	if w.vmis.gone {
		return nil, errors.NewNotFound(v1.Resource("virtualmachineinstances"), name)
	}
	return w.vmis.vmi, nil
}

func (w vmiWriter) Patch(_ context.Context, _ string, kind types.PatchType, patch []byte, options metav1.PatchOptions,
	_ ...string) (*v1.VirtualMachineInstance, error) {
	w.vmis.patched = true
	if kind != types.JSONPatchType {
		return nil, errors.NewBadRequest("want a JSON patch")
	}
	raw, err := json.Marshal(w.vmis.vmi)
	if err != nil {
		return nil, err
	}
	after := &v1.VirtualMachineInstance{}
	if raw, err = patchJSON(raw, patch); err == nil {
		err = json.Unmarshal(raw, after)
	}
	if err == nil && len(options.DryRun) == 0 {
		w.vmis.vmi = after
	}
	return after, err
}

// patchJSON does what the API server does with a JSON patch, by the same library.
func patchJSON(raw, patch []byte) ([]byte, error) {
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return decoded.Apply(raw)
}

func applied(t testing.TB, raw, patch []byte) []byte {
	t.Helper()
	raw, err := patchJSON(raw, patch)
	require.NoError(t, err)
	return raw
}

func mustMarshal(t testing.TB, o any) []byte {
	t.Helper()
	raw, err := json.Marshal(o)
	require.NoError(t, err)
	return raw
}

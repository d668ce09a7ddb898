package controlplane

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/controller"
)

// This file is the cluster's nodes: what each says of itself, and the loop that moves the pods and VMIs on them
// (kubelet.go, handler.go).

const (
	controlPlaneNode = "control-plane"
	beat             = 10 * time.Second // a kubelet renews its lease every 10 s
)

// Node is a node to be.
type Node struct {
	Name    string
	Labels  map[string]string
	Devices corev1.ResourceList // that device plugins offer, beside KubeVirt's own
}

type nodes struct {
	cluster    *Cluster
	ctx        context.Context
	pods, vmis cache.SharedIndexInformer
	queue      workqueue.TypedRateLimitingInterface[string]
	running    sync.WaitGroup
	processes  processes
	handlers   handlers

	mu     sync.Mutex
	all    map[string]string       // addresses by name
	silent map[string]bool         // nodes that have stopped answering
	torn   map[types.UID]time.Time // when a launcher whose guest has ended is gone
	pace   time.Duration           // how long a migration takes
}

func (c *Cluster) startNodes(ctx context.Context) error {
	n := &nodes{
		cluster: c,
		ctx:     ctx,
		pods:    informer(c.Kube.CoreV1().RESTClient(), "pods", &corev1.Pod{}),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, 500*time.Millisecond)),
		processes: processes{all: map[types.UID]*process{}, held: map[string]bool{}},
		all:       map[string]string{},
		silent:    map[string]bool{},
		torn:      map[types.UID]time.Time{},
	}
	n.handlers.init(n)
	// VMIs are there once KubeVirt's operator has created the CRD; until then the list is asked for again and again.
	n.vmis = informer(c.Virt.RestClient(), "virtualmachineinstances", &v1.VirtualMachineInstance{})
	c.nodes = n
	for kind, informer := range map[string]cache.SharedIndexInformer{"pod": n.pods, "vmi": n.vmis} {
		enqueue := func(object any) {
			key, _ := cache.MetaNamespaceKeyFunc(object)
			n.queue.Add(kind + " " + key)
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    enqueue,
			UpdateFunc: func(_, object any) { enqueue(object) },
		}); err != nil {
			return err
		}
	}
	n.running.Go(func() { n.pods.Run(ctx.Done()) })
	n.running.Go(func() { n.runVMIs(ctx) })
	for range 8 {
		n.running.Go(func() {
			cache.WaitForCacheSync(ctx.Done(), n.pods.HasSynced)
			for n.next() {
			}
		})
	}
	n.running.Go(func() {
		for sleep(ctx, beat) {
			n.beat(ctx)
		}
	})
	c.atStop(func() { // the context has ended: the workers first, then what they would have started
		n.queue.ShutDown()
		n.running.Wait()
	})
	if err := n.adopt(ctx); err != nil {
		return err
	}
	if _, ok := n.all[controlPlaneNode]; ok {
		return nil
	}
	return c.create(ctx, Node{Name: controlPlaneNode, Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}},
		corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule})
}

// runVMIs waits for the CRD: an informer that starts before it is there backs off for up to a minute.
func (n *nodes) runVMIs(ctx context.Context) {
	for {
		if _, err := n.cluster.Virt.VirtualMachineInstance(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1}); err == nil {
			break
		}
		if !sleep(ctx, 200*time.Millisecond) {
			return
		}
	}
	n.vmis.Run(ctx.Done())
}

// adopt takes over the nodes of a snapshot.
func (n *nodes) adopt(ctx context.Context) error {
	list, err := n.cluster.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	n.mu.Lock()
	for _, node := range list.Items {
		n.all[node.Name] = node.Status.Addresses[0].Address
	}
	n.mu.Unlock()
	n.beat(ctx)
	return nil
}

// CreateNode adds a node for VMs.
func (c *Cluster) CreateNode(ctx context.Context, node Node) error {
	own := Node{Name: node.Name, Labels: node.Labels, Devices: corev1.ResourceList{}}
	for _, device := range []string{"kvm", "tun", "vhost-net", "vhost-vsock"} {
		own.Devices[corev1.ResourceName("devices.kubevirt.io/"+device)] = resource.MustParse("1000")
	}
	maps.Copy(own.Devices, node.Devices)
	return c.create(ctx, own)
}

func (c *Cluster) create(ctx context.Context, node Node, taints ...corev1.Taint) error {
	labels := map[string]string{corev1.LabelHostname: node.Name, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux"}
	maps.Copy(labels, node.Labels)
	created, err := c.Kube.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: taints},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	c.nodes.mu.Lock()
	address := c.addresses.node(len(c.nodes.all))
	c.nodes.all[node.Name] = address
	c.nodes.mu.Unlock()
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("500"),
	}
	maps.Copy(capacity, node.Devices)
	if err := c.nodes.renew(ctx, node.Name); err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := c.Kube.CoreV1().Nodes().Get(ctx, created.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.Status.Capacity, now.Status.Allocatable = capacity, capacity
		now.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		now.Status.NodeInfo.KubeletVersion, now.Status.NodeInfo.OperatingSystem, now.Status.NodeInfo.Architecture = c.Version, "linux", "amd64"
		now.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}
		_, err = c.Kube.CoreV1().Nodes().UpdateStatus(ctx, now, metav1.UpdateOptions{})
		return err
	})
}

// beat is what the kubelets and virt-handlers say again and again: that they are there.
func (n *nodes) beat(ctx context.Context) {
	n.mu.Lock()
	names := make([]string, 0, len(n.all))
	for name := range n.all {
		if !n.silent[name] {
			names = append(names, name)
		}
	}
	n.mu.Unlock()
	for _, name := range names {
		if err := n.renew(ctx, name); err != nil && ctx.Err() == nil {
			klog.Infof("node %s: lease: %v", name, err)
		}
	}
	n.handlers.beat(ctx, names)
}

// renew renews a node's lease.
func (n *nodes) renew(ctx context.Context, node string) error {
	leases := n.cluster.Kube.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	seconds, now := int32(40), metav1.NowMicro()
	lease, err := leases.Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node, Namespace: corev1.NamespaceNodeLease},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &now}}
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// Silence makes a node stop answering: its lease is not renewed, and nothing on it moves. The VMs on it may run or not;
// the cluster cannot know.
func (c *Cluster) Silence(node string) { c.setSilent(node, true) }

// Wake makes a silent node answer again.
func (c *Cluster) Wake(node string) {
	c.setSilent(node, false)
	c.nodes.beat(c.nodes.ctx)
	c.nodes.lookAgain()
}

// lookAgain is for when something has changed that is not in the API.
func (n *nodes) lookAgain() {
	for kind, informer := range map[string]cache.SharedIndexInformer{"pod": n.pods, "vmi": n.vmis} {
		for _, key := range informer.GetIndexer().ListKeys() {
			n.queue.Add(kind + " " + key)
		}
	}
}

func (c *Cluster) setSilent(node string, silent bool) {
	c.nodes.mu.Lock()
	defer c.nodes.mu.Unlock()
	c.nodes.silent[node] = silent
}

func (n *nodes) isSilent(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.silent[node]
}

func (n *nodes) hostIP(node string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all[node]
}

func (n *nodes) next() bool {
	key, shutdown := n.queue.Get()
	if shutdown {
		return false
	}
	defer n.queue.Done(key)
	ctx, cancel := context.WithTimeout(n.ctx, 20*time.Second)
	defer cancel()
	kind, name, _ := strings.Cut(key, " ")
	var err error
	if kind == "pod" {
		if object, exists, _ := n.pods.GetIndexer().GetByKey(name); exists {
			err = n.movePod(ctx, object.(*corev1.Pod).DeepCopy())
		}
	} else if object, exists, _ := n.vmis.GetIndexer().GetByKey(name); exists {
		err = n.moveVMI(ctx, object.(*v1.VirtualMachineInstance).DeepCopy())
	}
	if err == nil || apierrors.IsNotFound(err) || n.ctx.Err() != nil {
		n.queue.Forget(key)
	} else {
		klog.Infof("nodes: %s: %v", key, err)
		n.queue.AddRateLimited(key)
	}
	return true
}

// VMIs is an informer of the VMIs in a namespace, for tests to watch. Whoever asks for it runs it.
func (c *Cluster) VMIs(namespace string) cache.SharedIndexInformer {
	source := controller.NewListWatchFromClient(c.Virt.RestClient(), "virtualmachineinstances", namespace, fields.Everything(), labels.Everything())
	return cache.NewSharedIndexInformer(source, &v1.VirtualMachineInstance{}, 0, byNamespace())
}

func byNamespace() cache.Indexers {
	return cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
}

func informer(client cache.Getter, resource string, object runtime.Object) cache.SharedIndexInformer {
	source := cache.NewListWatchFromClient(client, resource, metav1.NamespaceAll, fields.Everything())
	return cache.NewSharedIndexInformer(source, object, 0, byNamespace())
}

package platform

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/client-go/kubecli"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"

	"cozy-kubevirt/tests/kubevirt/internal/virthandler"
)

// This file is the stand-in for what a control plane lacks: scheduler, kubelet, virt-handler, virt-launcher and guest.
// It moves pods and VMIs through their phases and decides nothing else. Where a pod may run it reads from the pod and the
// nodes; what is reported of a VMI is internal/virthandler's.
//
//	pod without a node                → bound to a node of the scenario that the pod allows and that takes pods
//	pod bound                         → running and ready
//	VMI scheduled                     → running, with the condition LiveMigratable
//	VMI handed to a migration target  → migrated there
//	launcher whose VMI has moved on   → ended
//	launcher being deleted            → its VMI succeeded or failed, then the pod gone

// NodesOf labels the nodes of a scenario with its namespace.
const NodesOf = "rehearsal/nodes-of"

type nodes struct {
	platform   *Platform
	namespace  string
	pods, vmis cache.SharedIndexInformer
	queue      workqueue.TypedRateLimitingInterface[string]
	mu         sync.Mutex
	bound      map[string]int                    // pods bound to a node so far, to spread them
	handlers   map[string]kubecli.KubevirtClient // a virt-handler by node
	placed     map[types.UID]bool                // pods that were bound
	torn       map[types.UID]time.Time           // when a launcher whose guest has ended is gone
}

// cpuModel is of every node.
const cpuModel = "Skylake-Server"

// CreateNode adds a node to those of a namespace, with room, with the labels that launchers select and virt-handler sets, and without
// the taint that kube-apiserver puts on a new node and the node controller takes away once the node is ready.
func (p *Platform) CreateNode(ctx context.Context, name, namespace string) error {
	node, err := p.Kube.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name,
		Labels: map[string]string{
			NodesOf:                                      namespace,
			corev1.LabelHostname:                         name,
			corev1.LabelArchStable:                       "amd64",
			v1.NodeSchedulable:                           "true",
			v1.SupportedMachineTypeLabel + "q35":         "true",
			v1.CPUModelVendorLabel + "Intel":             "true",
			v1.HostModelCPULabel + cpuModel:              "true",
			v1.SupportedHostModelMigrationCPU + cpuModel: "true",
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node.Spec.Taints = nil
	if node, err = p.Kube.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		return err
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.Allocatable = corev1.ResourceList{}
	for _, device := range []corev1.ResourceName{"devices.kubevirt.io/kvm", "devices.kubevirt.io/tun", "devices.kubevirt.io/vhost-net", virthandler.GPU,
		corev1.ResourcePods} {
		node.Status.Allocatable[device] = resource.MustParse("1000")
	}
	for name, room := range map[corev1.ResourceName]string{corev1.ResourceCPU: "128", corev1.ResourceMemory: "1Ti", corev1.ResourceEphemeralStorage: "1Ti"} {
		node.Status.Allocatable[name] = resource.MustParse(room)
	}
	node.Status.Capacity = node.Status.Allocatable
	_, err = p.Kube.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

// StartNodes runs the stand-in for the nodes of one namespace, or of all, until stop is called.
func (p *Platform) StartNodes(namespace string) (stop func()) {
	n := &nodes{
		platform:  p,
		namespace: namespace,
		pods:      p.pods(namespace),
		vmis:      p.VMIs(namespace),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, 200*time.Millisecond)),
		bound:    map[string]int{},
		handlers: map[string]kubecli.KubevirtClient{},
		placed:   map[types.UID]bool{},
		torn:     map[types.UID]time.Time{},
	}
	stopped := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { n.pods.Run(stopped) })
	running.Go(func() { n.vmis.Run(stopped) })
	if namespace == metav1.NamespaceAll {
		running.Go(func() { p.endDeletedNamespaces(stopped) })
	}
	for kind, informer := range map[string]cache.SharedIndexInformer{"pod": n.pods, "vmi": n.vmis} {
		enqueue := func(object any) {
			key, _ := cache.MetaNamespaceKeyFunc(object)
			n.queue.Add(kind + " " + key)
		}
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    enqueue,
			UpdateFunc: func(_, object any) { enqueue(object) },
		})
	}
	for range 8 {
		running.Go(func() {
			cache.WaitForCacheSync(stopped, n.pods.HasSynced, n.vmis.HasSynced)
			for n.next() {
			}
		})
	}
	return func() {
		close(stopped)
		n.queue.ShutDown()
		running.Wait()
	}
}

func (n *nodes) next() bool {
	key, shutdown := n.queue.Get()
	if shutdown {
		return false
	}
	defer n.queue.Done(key)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	kind, object, _ := strings.Cut(key, " ")
	var err error
	if kind == "pod" {
		if object, exists, _ := n.pods.GetIndexer().GetByKey(object); exists {
			err = n.movePod(ctx, object.(*corev1.Pod).DeepCopy())
		}
	} else if object, exists, _ := n.vmis.GetIndexer().GetByKey(object); exists {
		err = n.moveVMI(ctx, object.(*v1.VirtualMachineInstance).DeepCopy())
	}
	if err == nil || apierrors.IsNotFound(err) {
		n.queue.Forget(key)
	} else { // a conflict, or no node takes the pod yet
		klog.Infof("nodes: %s: %v", key, err)
		n.queue.AddRateLimited(key)
	}
	return true
}

func (n *nodes) movePod(ctx context.Context, pod *corev1.Pod) error {
	pods := n.platform.Kube.CoreV1().Pods(pod.Namespace)
	switch vmi := virthandler.VMIOf(pod, n.vmis.GetStore()); {
	case pod.DeletionTimestamp != nil:
		if vmi != nil && vmi.Status.NodeName == pod.Spec.NodeName && !vmi.IsFinal() {
			if err := n.endGuest(ctx, vmi.DeepCopy()); err != nil {
				return err
			}
			n.mu.Lock()
			n.torn[pod.UID] = time.Now().Add(virthandler.Teardown)
			n.mu.Unlock()
		}
		n.mu.Lock()
		left := time.Until(n.torn[pod.UID])
		n.mu.Unlock()
		if left > 0 {
			n.queue.AddAfter("pod "+pod.Namespace+"/"+pod.Name, left)
			return nil
		}
		now := int64(0)
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID},
		})
	case pod.Spec.NodeName == "":
		n.mu.Lock()
		already := n.placed[pod.UID]
		n.mu.Unlock()
		if already { // and the informer has not heard of it yet
			return nil
		}
		node, err := n.schedule(ctx, pod)
		if err != nil {
			return err
		}
		err = pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: node},
		}, metav1.CreateOptions{})
		if err == nil {
			n.mu.Lock()
			n.placed[pod.UID] = true
			n.mu.Unlock()
		}
		return err
	case pod.Status.Phase == corev1.PodPending:
		run(pod)
		_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err
	case pod.Status.Phase == corev1.PodRunning && vmi != nil && virthandler.HasLeft(vmi, pod):
		pod.Status.Phase = corev1.PodSucceeded
		_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err
	}
	return nil
}

// schedule picks, of the nodes that the pod may run on, the one that got the fewest pods.
func (n *nodes) schedule(ctx context.Context, pod *corev1.Pod) (string, error) {
	own := NodesOf
	if n.namespace != metav1.NamespaceAll {
		own += "=" + n.namespace
	}
	list, err := n.platform.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: own})
	if err != nil {
		return "", err
	}
	taken := map[string]bool{} // a VMI has no two launchers on one node
	for _, object := range n.pods.GetIndexer().List() {
		other := object.(*corev1.Pod)
		if other.Labels[v1.AppLabel] == "virt-launcher" && other.Labels[v1.CreatedByLabel] == pod.Labels[v1.CreatedByLabel] &&
			other.Status.Phase == corev1.PodRunning && pod.Labels[v1.AppLabel] == "virt-launcher" {
			taken[other.Spec.NodeName] = true
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	best := ""
	for _, node := range list.Items {
		if node.Spec.Unschedulable || taken[node.Name] || !allows(pod, node.Labels) {
			continue
		}
		if best == "" || n.bound[node.Name] < n.bound[best] {
			best = node.Name
		}
	}
	if best == "" {
		return "", fmt.Errorf("no node takes pod %s with selector %v and affinity %v", pod.Name, pod.Spec.NodeSelector, pod.Spec.Affinity)
	}
	n.bound[best]++
	return best, nil
}

// allows checks the pod's node selector and required node affinity.
func allows(pod *corev1.Pod, node labels.Set) bool {
	if !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(node) {
		return false
	}
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		matches := true
		for _, expression := range term.MatchExpressions {
			operator := selection.Operator(strings.ToLower(string(expression.Operator)))
			if expression.Operator == corev1.NodeSelectorOpDoesNotExist {
				operator = selection.DoesNotExist
			}
			requirement, err := labels.NewRequirement(expression.Key, operator, expression.Values)
			matches = matches && err == nil && requirement.Matches(node)
		}
		if matches {
			return true
		}
	}
	return false
}

func run(pod *corev1.Pod) {
	now := metav1.Now()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.StartTime = &now
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
}

func (n *nodes) moveVMI(ctx context.Context, vmi *v1.VirtualMachineInstance) error {
	// What becomes of its launchers depends on it.
	for _, object := range n.pods.GetIndexer().List() {
		if pod := object.(*corev1.Pod); pod.Labels[v1.CreatedByLabel] == string(vmi.UID) {
			n.queue.Add("pod " + pod.Namespace + "/" + pod.Name)
		}
	}
	node := vmi.Status.NodeName
	switch {
	case vmi.Status.Phase == v1.Scheduled:
		virthandler.Started(vmi)
	case virthandler.Migrating(vmi):
		now := metav1.Now()
		state := vmi.Status.MigrationState
		state.TargetNodeAddress, state.StartTimestamp = "127.0.0.1", &now
		virthandler.Migrated(vmi, now)
	default:
		return nil
	}
	return n.update(ctx, node, vmi)
}

func (n *nodes) endGuest(ctx context.Context, vmi *v1.VirtualMachineInstance) error {
	virthandler.Ended(vmi)
	return n.update(ctx, vmi.Status.NodeName, vmi)
}

// update writes as the node's own virt-handler: KubeVirt lets another node's not touch the VMI.
func (n *nodes) update(ctx context.Context, node string, vmi *v1.VirtualMachineInstance) error {
	n.mu.Lock()
	handler, ok := n.handlers[node]
	if !ok {
		var err error
		if handler, err = n.platform.as(components.HandlerServiceAccountName, node); err != nil {
			n.mu.Unlock()
			return err
		}
		n.handlers[node] = handler
	}
	n.mu.Unlock()
	_, err := handler.VirtualMachineInstance(vmi.Namespace).Update(ctx, vmi, metav1.UpdateOptions{})
	return err
}

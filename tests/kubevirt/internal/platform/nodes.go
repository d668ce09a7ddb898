package platform

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/client-go/kubecli"
	"kubevirt.io/kubevirt/pkg/controller"
	"kubevirt.io/kubevirt/pkg/network/vmispec"
	storagetypes "kubevirt.io/kubevirt/pkg/storage/types"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
)

// This file is the stand-in for what a control plane lacks: scheduler, kubelet, virt-handler, virt-launcher and guest.
// It moves pods and VMIs through their phases and decides nothing else. Whether a VMI can migrate it reads from its
// network and claims, unless the scenario says by an annotation that it cannot; how its guest ends the scenario says by
// another. Where a pod may run it reads from the pod and the nodes.
//
//	pod without a node                → bound to a node of the scenario that the pod allows and that takes pods
//	pod bound                         → running and ready
//	VMI scheduled                     → running, with the condition LiveMigratable
//	VMI handed to a migration target  → migrated there
//	launcher whose VMI has moved on   → ended
//	launcher being deleted            → its VMI succeeded or failed, then the pod gone

const (
	// NotMigratable on a VMI is the reason why it cannot migrate; virt-handler would find it in the domain.
	NotMigratable = "rehearsal/not-migratable"
	// GuestCrashes on a VMI makes it fail, not succeed, when its launcher is taken down.
	GuestCrashes = "rehearsal/guest-crashes"
	// NodesOf labels the nodes of a scenario with its namespace.
	NodesOf = "rehearsal/nodes-of"
)

// teardown is how long a launcher outlives its guest. It is not only for show: an outdated VMI that still seems to run
// when its launcher is gone makes the workload updater panic (pkg/virt-controller/watch/workload-updater/
// workload-updater.go:606-617 uses a pod that CurrentVMIPod did not find).
const teardown = time.Second

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

// CreateNode adds a node to those of a namespace, with the labels that launchers select and virt-handler sets, and without
// the taint that kube-apiserver puts on a new node and the node controller takes away once the node is ready.
func (p *Platform) CreateNode(ctx context.Context, name, namespace string) error {
	node, err := p.Kube.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name,
		Labels: map[string]string{
			NodesOf:                              namespace,
			corev1.LabelHostname:                 name,
			corev1.LabelArchStable:               "amd64",
			v1.NodeSchedulable:                   "true",
			v1.SupportedMachineTypeLabel + "q35": "true",
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node.Spec.Taints = nil
	_, err = p.Kube.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
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
	switch vmi := n.vmiOf(pod); {
	case pod.DeletionTimestamp != nil:
		if vmi != nil && vmi.Status.NodeName == pod.Spec.NodeName && !vmi.IsFinal() {
			if err := n.endGuest(ctx, vmi.DeepCopy()); err != nil {
				return err
			}
			n.mu.Lock()
			n.torn[pod.UID] = time.Now().Add(teardown)
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
	case pod.Status.Phase == corev1.PodRunning && vmi != nil && movedOn(vmi, pod):
		pod.Status.Phase = corev1.PodSucceeded
		_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err
	}
	return nil
}

// vmiOf is the VMI that a launcher runs, if it still exists.
func (n *nodes) vmiOf(pod *corev1.Pod) *v1.VirtualMachineInstance {
	if pod.Labels[v1.AppLabel] != "virt-launcher" {
		return nil
	}
	object, exists, _ := n.vmis.GetIndexer().GetByKey(pod.Namespace + "/" + pod.Annotations[v1.DomainAnnotation])
	if !exists {
		return nil
	}
	vmi := object.(*v1.VirtualMachineInstance)
	if string(vmi.UID) != pod.Labels[v1.CreatedByLabel] {
		return nil
	}
	return vmi
}

// movedOn says whether the VMI has left this launcher by a migration.
func movedOn(vmi *v1.VirtualMachineInstance, launcher *corev1.Pod) bool {
	migration := vmi.Status.MigrationState
	return migration != nil && migration.Completed && migration.SourcePod == launcher.Name
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
	switch migration := vmi.Status.MigrationState; {
	case vmi.Status.Phase == v1.Scheduled:
		start(vmi)
	case vmi.Status.Phase == v1.Running && vmi.DeletionTimestamp == nil &&
		migration != nil && migration.TargetNode != "" && !migration.Completed && !migration.Failed:
		migrate(vmi)
	default:
		return nil
	}
	return n.update(ctx, node, vmi)
}

// start is what virt-handler reports of a domain that it has started.
func start(vmi *v1.VirtualMachineInstance) {
	enter(vmi, v1.Running)
	vmi.Status.MigrationMethod = v1.LiveMigration
	vmi.Status.SelinuxContext = "none" // a node without SELinux; without any word of it KubeVirt migrates nothing
	condition := v1.VirtualMachineInstanceCondition{Type: v1.VirtualMachineInstanceIsMigratable, Status: corev1.ConditionTrue}
	if reason, message := cannotMigrate(vmi); reason != "" {
		condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, reason, message
	}
	controller.NewVirtualMachineInstanceConditionManager().UpdateCondition(vmi, &condition)
}

// cannotMigrate is why a VMI cannot migrate, if it cannot: the scenario says so, or virt-handler would, of the network
// (pkg/virt-handler/vm.go:1250-1253) and of claims that are not shared (1867-1883).
func cannotMigrate(vmi *v1.VirtualMachineInstance) (reason, message string) {
	if reason, ok := vmi.Annotations[NotMigratable]; ok {
		return reason, "said by the rehearsal's scenario"
	}
	if err := vmispec.VerifyVMIMigratable(vmi, nil); err != nil {
		return v1.VirtualMachineInstanceReasonInterfaceNotMigratable, err.Error()
	}
	for _, volume := range vmi.Status.VolumeStatus {
		if claim := volume.PersistentVolumeClaimInfo; claim != nil && !storagetypes.HasSharedAccessMode(claim.AccessModes) {
			return v1.VirtualMachineInstanceReasonDisksNotMigratable, fmt.Sprintf("PVC %s is not shared", claim.ClaimName)
		}
	}
	return "", ""
}

// enter dates the phase as virt-handler does (pkg/virt-handler/vm.go:1133). Without the date of Running KubeVirt takes a
// guest that ends for one that never started, and holds its next start back for 10 s and more (pkg/virt-controller/
// watch/vm/vm.go:1507-1519, 1575).
func enter(vmi *v1.VirtualMachineInstance, phase v1.VirtualMachineInstancePhase) {
	before := vmi.Status.DeepCopy()
	vmi.Status.Phase = phase
	controller.SetVMIPhaseTransitionTimestamp(before, &vmi.Status)
}

// migrate is what the two virt-handlers report when a domain has moved (pkg/virt-handler/migration-target.go:284-316,
// 1090-1130 for the CPU sockets).
func migrate(vmi *v1.VirtualMachineInstance) {
	now := metav1.Now()
	state := vmi.Status.MigrationState
	state.TargetNodeAddress = "127.0.0.1"
	state.TargetNodeDomainDetected = true
	state.TargetNodeDomainReadyTimestamp = &now
	state.StartTimestamp, state.EndTimestamp = &now, &now
	state.Completed = true
	vmi.Status.NodeName = state.TargetNode
	vmi.Labels[v1.NodeNameLabel] = state.TargetNode
	vmi.Status.EvacuationNodeName = ""
	vmi.Status.LauncherContainerImageVersion = ""
	delete(vmi.Labels, v1.OutdatedLauncherImageLabel)
	delete(vmi.Annotations, v1.EvictionSourceAnnotation)
	conditions := controller.NewVirtualMachineInstanceConditionManager()
	conditions.RemoveCondition(vmi, v1.VirtualMachineInstanceMigrationRequired)
	if conditions.HasCondition(vmi, v1.VirtualMachineInstanceVCPUChange) {
		conditions.RemoveCondition(vmi, v1.VirtualMachineInstanceVCPUChange)
		cpu := vmi.Spec.Domain.CPU
		vmi.Status.CurrentCPUTopology = &v1.CPUTopology{Sockets: cpu.Sockets, Cores: cpu.Cores, Threads: cpu.Threads}
	}
}

func (n *nodes) endGuest(ctx context.Context, vmi *v1.VirtualMachineInstance) error {
	ended := v1.Succeeded
	if _, crashes := vmi.Annotations[GuestCrashes]; crashes {
		ended = v1.Failed
	}
	enter(vmi, ended)
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

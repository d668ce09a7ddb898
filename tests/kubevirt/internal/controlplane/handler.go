package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/client-go/kubecli"

	"cozy-kubevirt/tests/kubevirt/internal/client"
	"cozy-kubevirt/tests/kubevirt/internal/virthandler"
)

// This file is the stand-in for virt-handler, virt-launcher and the guest. It writes as the virt-handler pod of the node,
// with that pod's token; what it reports of a VMI is internal/virthandler's.
//
//	VMI scheduled                     → running, with the condition LiveMigratable
//	VMI handed to a migration target  → migrated there
//	its launcher being deleted        → succeeded or failed

// handlers are the virt-handlers by their nodes.
type handlers struct {
	nodes *nodes
	mu    sync.Mutex
	known map[string]handler
}

type handler struct {
	pod    types.UID
	client kubecli.KubevirtClient
}

func (h *handlers) init(n *nodes) { h.nodes, h.known = n, map[string]handler{} }

// on is a client that speaks as the virt-handler of a node.
func (h *handlers) on(ctx context.Context, node string) (kubecli.KubevirtClient, error) {
	pod := h.pod(node)
	if pod == nil {
		return nil, fmt.Errorf("node %s has no virt-handler that runs", node)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.known[node]; known.pod == pod.UID {
		return known.client, nil
	}
	token, err := h.nodes.tokenFor(ctx, pod)
	if err != nil {
		return nil, err
	}
	config := rest.AnonymousClientConfig(h.nodes.cluster.Config)
	config.BearerToken, config.QPS, config.Burst = token, 200, 400
	client, err := kubecli.GetKubevirtClientFromRESTConfig(config)
	if err != nil {
		return nil, err
	}
	h.known[node] = handler{pod.UID, client}
	return client, nil
}

// pod is the virt-handler pod that runs on a node.
func (h *handlers) pod(node string) *corev1.Pod {
	for _, object := range h.nodes.podsOf(client.Namespace) {
		pod := object.(*corev1.Pod)
		if pod.Labels[v1.AppLabel] == "virt-handler" && pod.Spec.NodeName == node &&
			pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			return pod
		}
	}
	return nil
}

// isNew says whether a pod is a virt-handler that runs and was not heard of yet.
func (h *handlers) isNew(pod *corev1.Pod) bool {
	if pod.Labels[v1.AppLabel] != "virt-handler" || pod.Status.Phase != corev1.PodRunning {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known[pod.Spec.NodeName].pod != pod.UID
}

// beat is virt-handler's heartbeat (pkg/virt-handler/heartbeat/heartbeat.go), and what it says of the machine, from those of
// the nodes that have one.
func (h *handlers) beat(ctx context.Context, names []string) {
	for _, name := range names {
		if h.pod(name) == nil {
			continue
		}
		if err := h.beatOn(ctx, name); err != nil && ctx.Err() == nil {
			klog.Infof("virt-handler on %s: heartbeat: %v", name, err)
		}
	}
}

func (h *handlers) beatOn(ctx context.Context, node string) error {
	client, err := h.on(ctx, node)
	if err != nil {
		return err
	}
	said := map[string]string{v1.NodeSchedulable: "true"}
	maps.Copy(said, hardware)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"labels": said, "annotations": map[string]string{v1.VirtHandlerHeartbeat: time.Now().UTC().Format(time.RFC3339)},
	}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (n *nodes) moveVMI(ctx context.Context, vmi *v1.VirtualMachineInstance) error {
	node := vmi.Status.NodeName
	if n.isSilent(node) {
		return nil
	}
	// What becomes of its launchers depends on it.
	for _, object := range n.podsOf(vmi.Namespace) {
		if pod := object.(*corev1.Pod); pod.Labels[v1.CreatedByLabel] == string(vmi.UID) {
			n.queue.Add(podKey(pod))
		}
	}
	switch {
	case vmi.Status.Phase == v1.Scheduled:
		vmi.Status.Machine = &v1.Machine{Type: machineType}
		virthandler.Started(vmi)
	case virthandler.Migrating(vmi):
		if n.isSilent(vmi.Status.MigrationState.TargetNode) {
			return nil
		}
		if wait := n.migrate(vmi); wait > 0 {
			n.queue.AddAfter("vmi "+vmi.Namespace+"/"+vmi.Name, wait)
		}
	default:
		return nil
	}
	return n.update(ctx, node, vmi)
}

func (n *nodes) podsOf(namespace string) []any {
	found, err := n.pods.GetIndexer().Index("namespace", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}})
	if err != nil {
		return nil
	}
	return found
}

// SetMigrationsTake makes every migration that has not ended take that long.
func (c *Cluster) SetMigrationsTake(pace time.Duration) {
	c.nodes.mu.Lock()
	c.nodes.pace = pace
	c.nodes.mu.Unlock()
	c.nodes.lookAgain()
}

// migrate is what the two virt-handlers report while a domain moves and when it has moved. It returns how long the domain has
// still to go.
func (n *nodes) migrate(vmi *v1.VirtualMachineInstance) (left time.Duration) {
	now := metav1.Now()
	state := vmi.Status.MigrationState
	if state.StartTimestamp == nil {
		state.TargetNodeAddress = n.hostIP(state.TargetNode)
		state.StartTimestamp = &now
	}
	n.mu.Lock()
	left = n.pace - time.Since(state.StartTimestamp.Time)
	n.mu.Unlock()
	if state.AbortRequested {
		state.AbortStatus, state.EndTimestamp, state.Failed, state.Completed = v1.MigrationAbortSucceeded, &now, true, true
		return 0
	}
	if left > 0 {
		return left
	}
	virthandler.Migrated(vmi, now)
	return 0
}

func (n *nodes) endGuest(ctx context.Context, vmi *v1.VirtualMachineInstance) error {
	virthandler.Ended(vmi)
	return n.update(ctx, vmi.Status.NodeName, vmi)
}

// update writes as the node's own virt-handler: KubeVirt lets another node's not touch the VMI.
func (n *nodes) update(ctx context.Context, node string, vmi *v1.VirtualMachineInstance) error {
	handler, err := n.handlers.on(ctx, node)
	if err != nil {
		return err
	}
	_, err = handler.VirtualMachineInstance(vmi.Namespace).Update(ctx, vmi, metav1.UpdateOptions{})
	return err
}

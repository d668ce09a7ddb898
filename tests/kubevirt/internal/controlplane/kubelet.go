package controlplane

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/tests/kubevirt/internal/virthandler"
)

// This file is the stand-in for the kubelet. A pod that is bound to a node:
//
//	its image has a binary here       → runs as a process (process.go)
//	any other                         → running and ready
//	a launcher whose VMI has moved on → ended
//	being deleted                     → its process, or its guest, is ended; then it is gone

// digest stands for an image's. Without one no VMI with a container disk migrates.
const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func (n *nodes) movePod(ctx context.Context, pod *corev1.Pod) error {
	if pod.Spec.NodeName == "" || n.isSilent(pod.Spec.NodeName) {
		return nil
	}
	vmi := virthandler.VMIOf(pod, n.vmis.GetStore())
	switch {
	case pod.DeletionTimestamp != nil:
		return n.endPod(ctx, pod, vmi)
	case n.isProcess(pod):
		n.ensureProcess(pod)
		return nil
	case pod.Status.Phase == corev1.PodPending:
		return n.report(ctx, pod, running(pod))
	case n.handlers.isNew(pod):
		return n.handlers.beatOn(ctx, pod.Spec.NodeName)
	case pod.Status.Phase == corev1.PodRunning && vmi != nil && virthandler.HasLeft(vmi, pod):
		return n.report(ctx, pod, func(status *corev1.PodStatus) { status.Phase = corev1.PodSucceeded })
	}
	return nil
}

func (n *nodes) endPod(ctx context.Context, pod *corev1.Pod, vmi *v1.VirtualMachineInstance) error {
	if !n.endProcess(pod) { // it asks again when the process has ended
		return nil
	}
	if vmi != nil && vmi.Status.NodeName == pod.Spec.NodeName && !vmi.IsFinal() && pod.Status.Phase == corev1.PodRunning {
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
		n.queue.AddAfter(podKey(pod), left)
		return nil
	}
	n.mu.Lock()
	delete(n.torn, pod.UID)
	n.mu.Unlock()
	now := int64(0)
	err := n.cluster.Kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if err == nil && pod.Status.PodIP != "" {
		n.cluster.addresses.free(pod.Status.PodIP)
	}
	return err
}

// report changes a pod's status, if it is still the pod that it was.
func (n *nodes) report(ctx context.Context, pod *corev1.Pod, change func(*corev1.PodStatus)) error {
	pods := n.cluster.Kube.CoreV1().Pods(pod.Namespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil || now.UID != pod.UID {
			return err
		}
		before := now.Status.DeepCopy()
		change(&now.Status)
		if equality.Semantic.DeepEqual(before, &now.Status) {
			return nil
		}
		_, err = pods.UpdateStatus(ctx, now, metav1.UpdateOptions{})
		return err
	})
}

// running reports a pod's containers as running and ready.
func running(pod *corev1.Pod) func(*corev1.PodStatus) {
	return func(status *corev1.PodStatus) { containers(pod, status, true, 0) }
}

// containers reports a pod that has been started, whose containers are ready or not.
func containers(pod *corev1.Pod, status *corev1.PodStatus, ready bool, restarts int32) {
	now := metav1.Now()
	status.Phase = corev1.PodRunning
	if status.StartTime == nil {
		status.StartTime = &now
	}
	for kind, holds := range map[corev1.PodConditionType]bool{
		corev1.PodReadyToStartContainers: true, corev1.PodInitialized: true, corev1.ContainersReady: ready, corev1.PodReady: ready,
	} {
		setCondition(status, kind, holds)
	}
	status.ContainerStatuses, status.InitContainerStatuses = nil, nil
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ImageID: repository(container.Image) + digest, Ready: ready, Started: &ready,
			RestartCount: restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *status.StartTime}},
		})
	}
	for _, container := range pod.Spec.InitContainers {
		status.InitContainerStatuses = append(status.InitContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ImageID: repository(container.Image) + digest, Ready: true,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason: "Completed", StartedAt: *status.StartTime, FinishedAt: *status.StartTime,
			}},
		})
	}
}

func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, holds bool) {
	value := corev1.ConditionFalse
	if holds {
		value = corev1.ConditionTrue
	}
	for i := range status.Conditions {
		if condition := &status.Conditions[i]; condition.Type == kind {
			if condition.Status != value {
				condition.Status, condition.LastTransitionTime = value, metav1.Now()
			}
			return
		}
	}
	status.Conditions = append(status.Conditions,
		corev1.PodCondition{Type: kind, Status: value, LastTransitionTime: metav1.Now()})
}

// repository is an image's name without its tag.
func repository(image string) string {
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		return image[:colon]
	}
	return image
}

// nameAndTag splits quay.io/kubevirt/virt-api:v1.9.0 into virt-api and v1.9.0.
func nameAndTag(image string) (name, tag string) {
	name = path.Base(repository(image))
	return name, strings.TrimPrefix(strings.TrimPrefix(image, repository(image)), ":")
}

func podKey(pod *corev1.Pod) string { return fmt.Sprintf("pod %s/%s", pod.Namespace, pod.Name) }

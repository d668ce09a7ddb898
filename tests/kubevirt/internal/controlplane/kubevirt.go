package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/tests/kubevirt/internal/client"
)

// This file installs KubeVirt: its operator, from the manifest that the release's own code makes, and its CR.

const (
	rollout  = 12 * time.Minute // patience for an operator; a machine with other work is slow
	interval = 200 * time.Millisecond
)

// InstallOperator installs an operator of that version, or moves the one that is there to it.
func (c *Cluster) InstallOperator(ctx context.Context, version string) error {
	generator, err := c.binary(filepath.Join("kubevirt-"+version, "operator-manifest"))
	if err != nil {
		return err
	}
	manifest, err := exec.CommandContext(ctx, generator, client.Namespace, version).Output()
	if err != nil {
		return fmt.Errorf("%s: %w", generator, err)
	}
	_, err = c.kubectl(ctx, manifest, "apply", "--server-side", "--force-conflicts", "--field-manager", "operator-manifest", "--filename", "-")
	return err
}

// Kubectl runs the kubectl that make built against this cluster, and returns what it printed.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.kubectl(ctx, nil, args...)
}

// Apply has kubectl apply a manifest, whatever other managers own of it.
func (c *Cluster) Apply(ctx context.Context, manifest string) error {
	_, err := c.kubectl(ctx, []byte(manifest), "apply", "--server-side", "--force-conflicts", "--filename", "-")
	return err
}

func (c *Cluster) kubectl(ctx context.Context, input []byte, args ...string) (string, error) {
	binary, err := c.binary("kubectl")
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, binary, append(args, "--kubeconfig", c.Kubeconfig)...)
	command.Stdin = bytes.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return string(output), nil
}

// Install installs the chart, or upgrades to it, and returns once KubeVirt acts on its CR.
func (c *Cluster) Install(ctx context.Context, helm, chart string, args ...string) error {
	if err := c.HelmUpgrade(ctx, helm, chart, args...); err != nil {
		return err
	}
	return c.Deployed(ctx, "")
}

// Deployed waits until the operator has rolled out what the CR says, at a version if one is named, and until every part
// of KubeVirt runs at it.
func (c *Cluster) Deployed(ctx context.Context, version string) error {
	var last string
	err := wait.PollUntilContextTimeout(ctx, interval, rollout, true, func(ctx context.Context) (bool, error) {
		kubeVirt, err := c.KubeVirt(ctx)
		if err != nil {
			last = err.Error()
			return false, nil
		}
		last = undeployed(kubeVirt, version)
		if last == "" {
			last = c.nodes.waitingFor()
		}
		if last == "" {
			last = c.unready(ctx)
		}
		return last == "", nil
	})
	if err != nil {
		return fmt.Errorf("KubeVirt is not deployed: %s: %w", last, err)
	}
	return nil
}

// undeployed is what the CR's status still lacks.
func undeployed(kubeVirt *v1.KubeVirt, version string) string {
	status := kubeVirt.Status
	switch {
	case status.Phase != v1.KubeVirtPhaseDeployed:
		return fmt.Sprintf("its phase is %q", status.Phase)
	case status.ObservedGeneration == nil || *status.ObservedGeneration != kubeVirt.Generation:
		return "the operator has not seen its last change"
	case status.ObservedDeploymentID == "" || status.ObservedDeploymentID != status.TargetDeploymentID:
		return "the operator is at work"
	case version != "" && status.ObservedKubeVirtVersion != version:
		return fmt.Sprintf("it is at %s, not at %s", status.ObservedKubeVirtVersion, version)
	}
	for kind, wanted := range map[v1.KubeVirtConditionType]corev1.ConditionStatus{
		v1.KubeVirtConditionAvailable: corev1.ConditionTrue, v1.KubeVirtConditionProgressing: corev1.ConditionFalse, v1.KubeVirtConditionDegraded: corev1.ConditionFalse,
	} {
		found := false
		for _, condition := range status.Conditions {
			found = found || condition.Type == kind && condition.Status == wanted
		}
		if !found {
			return fmt.Sprintf("it is not %s=%s", kind, wanted)
		}
	}
	return ""
}

// unready is a part of KubeVirt that has not as many pods as it should, all of its newest version.
func (c *Cluster) unready(ctx context.Context) string {
	deployments, err := c.Kube.AppsV1().Deployments(client.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, d := range deployments.Items {
		wanted := int32(1)
		if d.Spec.Replicas != nil {
			wanted = *d.Spec.Replicas
		}
		ready := d.Status.ReadyReplicas
		if d.Name == "virt-controller" && ready > 0 {
			ready = wanted // only the one that leads is ready
		}
		if d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas != wanted || d.Status.Replicas != wanted || ready < wanted {
			return fmt.Sprintf("%s has %d of %d pods updated, %d in all, %d ready", d.Name, d.Status.UpdatedReplicas, wanted, d.Status.Replicas, d.Status.ReadyReplicas)
		}
	}
	sets, err := c.Kube.AppsV1().DaemonSets(client.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, d := range sets.Items {
		if d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedNumberScheduled != d.Status.DesiredNumberScheduled || d.Status.NumberReady != d.Status.DesiredNumberScheduled {
			return fmt.Sprintf("%s has %d of %d pods updated, %d ready", d.Name, d.Status.UpdatedNumberScheduled, d.Status.DesiredNumberScheduled, d.Status.NumberReady)
		}
	}
	return ""
}

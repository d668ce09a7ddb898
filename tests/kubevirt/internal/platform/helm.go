package platform

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	v1 "kubevirt.io/api/core/v1"
)

// This file installs the chart, and plays the part of virt-operator that the rest of KubeVirt waits for.

// Install installs the chart, or upgrades to it, and returns once KubeVirt's webhooks and controllers act on its CR.
func (p *Platform) Install(ctx context.Context, helm, chart string, args ...string) error {
	if err := p.HelmUpgrade(ctx, helm, chart, append(args, "--create-namespace")...); err != nil {
		return err
	}
	return p.Deployed(ctx)
}

// Deployed reports the CR as deployed, as virt-operator does, and waits until KubeVirt's configuration is this CR's.
// KubeVirt ignores a CR whose phase is empty (pkg/virt-config/configuration.go:366).
func (p *Platform) Deployed(ctx context.Context) error {
	kubeVirt, err := p.KubeVirt(ctx)
	if err != nil {
		return err
	}
	if kubeVirt, err = p.reportDeployed(ctx, kubeVirt); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		p.clusterConfig.GetConfig() // it is read only when asked for
		return p.clusterConfig.GetResourceVersion() == kubeVirt.ResourceVersion, nil
	})
}

func (p *Platform) reportDeployed(ctx context.Context, kubeVirt *v1.KubeVirt) (*v1.KubeVirt, error) {
	kubeVirt.Status.Phase = v1.KubeVirtPhaseDeployed
	kubeVirt.Status.ObservedDeploymentID = "rehearsed"
	kubeVirt.Status.TargetDeploymentID = "rehearsed"
	kubeVirt.Status.DefaultArchitecture = "amd64"
	return p.Virt.KubeVirt(kubeVirt.Namespace).UpdateStatus(ctx, kubeVirt, metav1.UpdateOptions{})
}

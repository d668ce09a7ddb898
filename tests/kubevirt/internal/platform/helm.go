package platform

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	v1 "kubevirt.io/api/core/v1"
)

// This file installs the chart, and plays the part of virt-operator that the rest of KubeVirt waits for.

// Release is the name under which the chart is installed; its CR has the same name.
const Release = "kubevirt"

// Helm runs the Helm binary against this control plane and returns what it printed.
func (p *Platform) Helm(ctx context.Context, binary string, args ...string) (string, error) {
	args = append(args, "--kubeconfig", p.Kubeconfig, "--namespace", Namespace)
	output, err := exec.CommandContext(ctx, binary, args...).CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return string(output), nil
}

// Install installs the chart, or upgrades to it, and returns once KubeVirt's webhooks and controllers act on its CR.
// The values are reset: Helm takes an empty values file for none and would keep those of the last release.
func (p *Platform) Install(ctx context.Context, helm, chart string, args ...string) error {
	args = append([]string{"upgrade", Release, chart, "--install", "--create-namespace", "--reset-values"}, args...)
	if _, err := p.Helm(ctx, helm, args...); err != nil {
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

// KubeVirt is the CR that the chart installed.
func (p *Platform) KubeVirt(ctx context.Context) (*v1.KubeVirt, error) {
	return p.Virt.KubeVirt(Namespace).Get(ctx, Release, metav1.GetOptions{})
}

func (p *Platform) reportDeployed(ctx context.Context, kubeVirt *v1.KubeVirt) (*v1.KubeVirt, error) {
	kubeVirt.Status.Phase = v1.KubeVirtPhaseDeployed
	kubeVirt.Status.ObservedDeploymentID = "rehearsed"
	kubeVirt.Status.TargetDeploymentID = "rehearsed"
	kubeVirt.Status.DefaultArchitecture = "amd64"
	return p.Virt.KubeVirt(kubeVirt.Namespace).UpdateStatus(ctx, kubeVirt, metav1.UpdateOptions{})
}

// DryRun asks the API server whether it would create the object, with strict field validation.
func (p *Platform) DryRun(ctx context.Context, object *unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(p.config)
	if err != nil {
		return err
	}
	kind := object.GroupVersionKind()
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	_, err = client.Resource(resource).Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

package rehearsal

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
	"cozy-kubevirt/tests/kubevirt/internal/client"
	"cozy-kubevirt/tests/kubevirt/internal/platform"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
)

// This file is the way from what the platform has today to this package: a release with the objects that it installs,
// VMs that run, then helm upgrade with the platform's values, and back.

// takeOver leaves the control plane as it found it.
func takeOver(t *testing.T, own *platform.Platform) {
	ctx := t.Context()
	before, err := filepath.Abs(filepath.Join("testdata", "before"))
	require.NoError(t, err)
	require.NoError(t, own.Install(ctx, helm(), before))
	stop := runVMs(t, own)
	defer stop()
	launchers := launchersOf(t, own)
	require.Len(t, launchers, 2)

	require.NoError(t, own.Install(ctx, helm(), chart.Dir(t), "--values", chart.ValuesFiles(t)["platform"]))
	kubeVirt, err := own.KubeVirt(ctx)
	require.NoError(t, err)
	want := chart.Render(t, chart.Options{ValuesFiles: []string{chart.ValuesFiles(t)["platform"]}}).KubeVirt.Spec
	assertSpec(t, want, kubeVirt.Spec, "nothing of the CR before is left")
	ingresses, err := own.Kube.NetworkingV1().Ingresses(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, ingresses.Items, 1, "the route is neither doubled nor orphaned")
	require.Equal(t, components.VirtExportProxyServiceName, ingresses.Items[0].Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name)
	kubeVirts, err := own.Virt.KubeVirt(client.Namespace).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, kubeVirts.Items, 1)
	stayUp(t, own, launchers, "after the upgrade")

	_, err = own.Helm(ctx, helm(), "rollback", client.Release, "1")
	require.NoError(t, err)
	require.NoError(t, own.Deployed(ctx))
	kubeVirt, err = own.KubeVirt(ctx)
	require.NoError(t, err)
	require.Equal(t, v1.EvictionStrategyLiveMigrate, *kubeVirt.Spec.Configuration.EvictionStrategy, "after the rollback")
	require.Nil(t, kubeVirt.Spec.Configuration.DeveloperConfiguration.DisabledFeatureGates)
	require.Empty(t, kubeVirt.Spec.UninstallStrategy)
	stayUp(t, own, launchers, "after the rollback")

	for _, vm := range []string{"web", "db"} {
		require.NoError(t, own.Virt.VirtualMachine(metav1.NamespaceDefault).Delete(ctx, vm, metav1.DeleteOptions{}))
	}
	require.NoError(t, wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		list, err := own.Virt.VirtualMachine(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	}), "the VMs are gone")
	_, err = own.Helm(ctx, helm(), "uninstall", client.Release)
	require.NoError(t, err)
}

// runVMs runs two VMs on a node, with KubeVirt's controllers.
func runVMs(t *testing.T, own *platform.Platform) (stop func()) {
	ctx, namespace := t.Context(), metav1.NamespaceDefault
	require.NoError(t, own.CopyKubeVirt(ctx, namespace, func(*v1.KubeVirt) {}))
	stopController, err := own.StartVirtController(namespace, newLauncher)
	require.NoError(t, err)
	require.NoError(t, own.CreateNode(ctx, "node", namespace))
	stopNodes := own.StartNodes(namespace)
	no, memory := false, resource.MustParse("64Mi")
	for name, runs := range map[string]v1.VirtualMachineRunStrategy{"web": v1.RunStrategyAlways, "db": v1.RunStrategyRerunOnFailure} {
		_, err := own.Virt.VirtualMachine(namespace).Create(ctx, &v1.VirtualMachine{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1.VirtualMachineSpec{RunStrategy: &runs, Template: &v1.VirtualMachineInstanceTemplateSpec{
				Spec: v1.VirtualMachineInstanceSpec{Domain: v1.DomainSpec{
					Memory:  &v1.Memory{Guest: &memory},
					Devices: v1.Devices{AutoattachPodInterface: &no},
				}},
			}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.NoError(t, wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		list, err := own.Virt.VirtualMachineInstance(namespace).List(ctx, metav1.ListOptions{})
		running := 0
		for _, vmi := range list.Items {
			if vmi.Status.Phase == v1.Running && vmi.Status.LauncherContainerImageVersion != "" {
				running++
			}
		}
		return running == 2, err
	}), "the VMs run")
	return func() {
		stopNodes()
		stopController()
	}
}

// launchersOf are the launchers that live, by UID, and the nodes that they are on.
func launchersOf(t *testing.T, own *platform.Platform) map[types.UID]string {
	pods, err := own.Kube.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{LabelSelector: v1.AppLabel + "=virt-launcher"})
	require.NoError(t, err)
	launchers := map[types.UID]string{}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
			launchers[pod.UID] = pod.Spec.NodeName
		}
	}
	return launchers
}

// stayUp gives KubeVirt's controllers the CR that is installed and time to act on it, and expects that they do not.
func stayUp(t *testing.T, own *platform.Platform, launchers map[types.UID]string, when string) {
	t.Helper()
	require.NoError(t, own.CopyKubeVirt(t.Context(), metav1.NamespaceDefault, func(*v1.KubeVirt) {}))
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		require.True(t, maps.Equal(launchers, launchersOf(t, own)), "%s: a VM has restarted or moved", when)
	}
}

// theOperatorsVersionDecides: Helm looks at the operator's Deployment, on an API server as it cannot without one.
func theOperatorsVersionDecides(t *testing.T, own *platform.Platform) {
	ctx := t.Context()
	deployments := own.Kube.AppsV1().Deployments(client.Namespace)
	install := func() error { return own.Install(ctx, helm(), chart.Dir(t)) }
	require.NoError(t, install(), "where no operator is to be seen")
	for _, operator := range []struct {
		image, version, refused string
	}{
		{image: "quay.io/kubevirt/virt-operator:v1.8.4", refused: "v1.8.4"},
		{image: "registry.example.org:5000/virt-operator@sha256:0123", version: "v1.8.4", refused: "v1.8.4"},
		{image: "quay.io/kubevirt/virt-operator:v1.8.4", version: "v1.9.0"},
		{image: "quay.io/kubevirt/virt-operator:v1.9.0"},
		{image: "registry.example.org:5000/virt-operator:v1.9.0-platform.1@sha256:0123"},
		{image: "quay.io/kubevirt/virt-operator:v1.10.0"},
		{image: "registry.example.org:5000/virt-operator"},
		{image: "quay.io/kubevirt/virt-operator:latest"},
	} {
		labels := map[string]string{v1.AppLabel: "virt-operator"}
		container := corev1.Container{Name: "virt-operator", Image: operator.image}
		if operator.version != "" {
			container.Env = []corev1.EnvVar{{Name: "KUBEVIRT_VERSION", Value: operator.version}}
		}
		_, err := deployments.Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "virt-operator"},
			Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{container}},
			}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		err = install()
		if operator.refused == "" {
			assert.NoError(t, err, "%v", operator)
		} else if assert.Error(t, err, "%v", operator) {
			assert.Contains(t, err.Error(), "is KubeVirt "+operator.refused+", and this package needs v1.9.0 or newer")
		}
		require.NoError(t, deployments.Delete(ctx, "virt-operator", metav1.DeleteOptions{}))
	}
	_, err := own.Helm(ctx, helm(), "uninstall", client.Release)
	require.NoError(t, err)
}

// thePlatformsSecretInstalls: with and without what the platform writes only on some clusters.
func thePlatformsSecretInstalls(t *testing.T, own *platform.Platform) {
	raw, err := os.ReadFile(chart.ValuesFiles(t)["platform"])
	require.NoError(t, err)
	for name, variant := range map[string]struct {
		change map[string]any // a nil takes the key away
		kind   string
	}{
		"with an ingress":                           {nil, "Ingress"},
		"with the gateway":                          {map[string]any{"gateway-enabled": "true"}, "TLSRoute"},
		"without OIDC":                              {map[string]any{"oidc-enabled": "false", "keycloak-internal-url": "", "extra-keycloak-redirect-uri-for-dashboard": ""}, "Ingress"},
		"without branding and scheduling":           {map[string]any{"branding": nil, "scheduling": nil}, "Ingress"},
		"of an older release, with nothing exposed": {map[string]any{"clusterissuer": "letsencrypt-prod", "expose-services": ""}, ""},
	} {
		values := map[string]any{}
		require.NoError(t, yaml.Unmarshal(raw, &values))
		cluster := values["_cluster"].(map[string]any)
		for key, value := range variant.change {
			cluster[key] = value
			if value == nil {
				delete(cluster, key)
			}
		}
		file := filepath.Join(t.TempDir(), "values.yaml")
		changed, err := yaml.Marshal(values)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, changed, 0o644))
		require.NoError(t, own.Install(t.Context(), helm(), chart.Dir(t), "--values", file), name)
		manifest, err := own.Helm(t.Context(), helm(), "get", "manifest", client.Release)
		require.NoError(t, err)
		for _, kind := range []string{"Ingress", "TLSRoute"} {
			if kind == variant.kind {
				assert.Contains(t, manifest, "kind: "+kind+"\n", name)
			} else {
				assert.NotContains(t, manifest, "kind: "+kind+"\n", name)
			}
		}
	}
	_, err = own.Helm(t.Context(), helm(), "uninstall", client.Release)
	require.NoError(t, err)
}

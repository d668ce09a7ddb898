package rehearsal

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cozy-kubevirt/internal/registry"
	"cozy-kubevirt/tests/kubevirt/internal/chart"
	"cozy-kubevirt/tests/kubevirt/internal/client"
	"cozy-kubevirt/tests/kubevirt/internal/platform"
	v1 "kubevirt.io/api/core/v1"
)

// The chart's life on an API server: what Helm and KubeVirt's webhooks make of it.

func TestChartLivesThroughItsReleases(t *testing.T) {
	asOther(t)
	// A control plane of its own: uninstalling is refused while any VM exists in the cluster.
	s := &scenario{T: t, started: time.Now(), timeline: &timeline{}}
	own, err := platform.Start(bin(""), tlsRoutes)
	require.NoError(t, err)
	t.Cleanup(own.Stop)
	t.Cleanup(func() { record(s, time.Since(s.started)) })
	ctx := t.Context()
	values := chart.ValuesFiles(t)
	kubeVirt := func() *v1.KubeVirt {
		t.Helper()
		kubeVirt, err := own.KubeVirt(ctx)
		require.NoError(t, err)
		return kubeVirt
	}
	rendered := func(set string) v1.KubeVirtSpec {
		return chart.Render(t, chart.Options{ValuesFiles: []string{values[set]}}).KubeVirt.Spec
	}

	takeOver(t, own)
	theOperatorsVersionDecides(t, own)
	thePlatformsSecretInstalls(t, own)

	published := publish(t)
	require.NoError(t, own.Install(ctx, helm(), published.chart, "--version", published.version, "--values", values["default"]))
	assertSpec(t, rendered("default"), kubeVirt().Spec, "after the install from the registry")
	require.NoError(t, own.Install(ctx, helm(), chart.Dir(t), "--values", values["vgpu"]))
	assertSpec(t, rendered("vgpu"), kubeVirt().Spec, "after an upgrade with other values")

	// A hand edit of what the chart sets. Helm compares the manifests of two releases and not what is there.
	run(t, bin("kubectl"), "--kubeconfig", own.Kubeconfig, "--namespace", client.Namespace, "patch", "kubevirt", client.Release,
		"--type", "merge", "--patch", `{"spec": {"imagePullPolicy": "Always"}}`)
	require.NoError(t, own.Install(ctx, helm(), chart.Dir(t), "--values", values["default"]))
	edited := rendered("default")
	edited.ImagePullPolicy = "Always"
	assertSpec(t, edited, kubeVirt().Spec, "after an upgrade over a hand edit")

	_, err = own.Helm(ctx, helm(), "rollback", client.Release, "2")
	require.NoError(t, err)
	rolledBack := rendered("vgpu")
	rolledBack.ImagePullPolicy = "Always"
	assertSpec(t, rolledBack, kubeVirt().Spec, "after the rollback")

	require.NoError(t, own.Deployed(ctx))
	halted := v1.RunStrategyHalted
	vm, err := own.Virt.VirtualMachine(metav1.NamespaceDefault).Create(ctx, &v1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Name: "vm"},
		Spec:       v1.VirtualMachineSpec{RunStrategy: &halted, Template: &v1.VirtualMachineInstanceTemplateSpec{}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = own.Helm(ctx, helm(), "uninstall", client.Release, "--debug") // without it Helm keeps the reason to itself
	require.ErrorContains(t, err, "there are still Virtual Machines present")
	kubeVirt()
	require.NoError(t, own.Virt.VirtualMachine(vm.Namespace).Delete(ctx, vm.Name, metav1.DeleteOptions{}))
	_, err = own.Helm(ctx, helm(), "uninstall", client.Release)
	require.NoError(t, err)
	_, err = own.KubeVirt(ctx)
	require.True(t, apierrors.IsNotFound(err), "the CR is gone: %v", err)
	s.verdict = "the chart takes over from the platform's own and back without a restart, refuses an old operator, installs from a registry, " +
		"upgrades, rolls back; a hand edit outlives an upgrade; it uninstalls only when no VM is left"
}

// published is the chart in a registry.
type published struct{ chart, version string }

// publish takes the way of a release, make package and make push, to a registry that is gone after the test, and makes
// sure that what comes back is what went in.
func publish(t *testing.T) published {
	registry, stop := registry.Start()
	t.Cleanup(stop)
	folder := t.TempDir()
	p := published{"oci://" + registry + "/charts/cozy-kubevirt", "1.2.3"}
	archive := strings.TrimSpace(run(t, bin("package"), "-chart", chart.Dir(t), "-out", folder, "-version", p.version, "-allow-dirty"))
	run(t, bin("push"), "-archive", archive, "-registry", "oci://"+registry+"/charts")

	back := t.TempDir()
	run(t, helm(), "pull", p.chart, "--version", p.version, "--destination", back, "--plain-http")
	sent, err := os.ReadFile(archive)
	require.NoError(t, err)
	received, err := os.ReadFile(filepath.Join(back, filepath.Base(archive)))
	require.NoError(t, err)
	require.True(t, bytes.Equal(sent, received), "the registry gives the archive back to the byte")

	// tests/render compares archive and folder for every values set.
	template := func(args ...string) string {
		args = append([]string{"template", client.Release, "--namespace", client.Namespace, "--kube-version", chart.KubeVersions[0],
			"--values", chart.ValuesFiles(t)["full"]}, args...)
		return run(t, helm(), args...)
	}
	require.Equal(t, template(chart.Dir(t)), template(p.chart, "--version", p.version, "--plain-http"),
		"the registry's chart renders what the folder's does")
	return p
}

// run returns what a command prints, and fails with all that it said if it fails.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	var said bytes.Buffer
	command := exec.CommandContext(t.Context(), name, args...)
	command.Stderr = &said
	printed, err := command.Output()
	require.NoError(t, err, "%s %s: %s%s", filepath.Base(name), strings.Join(args, " "), printed, &said)
	return string(printed)
}

func assertSpec(t *testing.T, want, got v1.KubeVirtSpec, when string) {
	t.Helper()
	if !equality.Semantic.DeepEqual(want, got) {
		assert.Equal(t, want, got, when)
	}
}

func TestEveryDocumentIsAcceptedStrictly(t *testing.T) {
	asOther(t)
	install(t, shipped)
	s := &scenario{T: t, started: time.Now(), timeline: &timeline{}}
	t.Cleanup(func() { record(s, time.Since(s.started)) })
	documents, kinds := 0, map[string]bool{}
	for set, file := range chart.ValuesFiles(t) {
		for _, object := range chart.Render(t, chart.Options{ValuesFiles: []string{file}}).Objects {
			object.SetNamespace(metav1.NamespaceDefault) // beside what is installed
			assert.NoError(t, cluster.DryRun(t.Context(), object), "%s: %s", set, object.GetKind())
			documents++
			kinds[object.GetKind()] = true
		}
	}
	require.Equal(t, map[string]bool{"KubeVirt": true, "Ingress": true, "TLSRoute": true}, kinds)
	s.verdict = fmt.Sprintf("all %d documents of the ci sets pass a dry run with strict field validation", documents)
}

package rehearsal

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
	"cozy-kubevirt/tests/kubevirt/internal/platform"
	v1 "kubevirt.io/api/core/v1"
)

// The chart's life on an API server: what Helm and KubeVirt's webhooks make of it.

func TestChartLivesThroughItsReleases(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	// A control plane of its own: uninstalling is refused while any VM exists in the cluster.
	own, err := platform.Start(os.TempDir(), filepath.Join(root, "bin"))
	require.NoError(t, err)
	t.Cleanup(own.Stop)
	s := &scenario{T: t, started: begun, timeline: &timeline{stop: func() {}}}
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

	require.NoError(t, own.Install(ctx, helm(), chart.Dir(t), "--values", values["default"]))
	assertSpec(t, rendered("default"), kubeVirt().Spec, "after the install")
	require.NoError(t, own.Install(ctx, helm(), chart.Dir(t), "--values", values["vgpu"]))
	assertSpec(t, rendered("vgpu"), kubeVirt().Spec, "after an upgrade with other values")

	// A hand edit of what the chart sets. Helm compares the manifests of two releases and not what is there.
	edit := []byte(`{"spec": {"imagePullPolicy": "Always"}}`)
	_, err = own.Virt.KubeVirt(platform.Namespace).Patch(ctx, platform.Release, types.MergePatchType, edit,
		metav1.PatchOptions{FieldManager: "kubectl-edit"})
	require.NoError(t, err)
	require.NoError(t, own.Install(ctx, helm(), chart.Dir(t), "--values", values["default"]))
	edited := rendered("default")
	edited.ImagePullPolicy = "Always"
	assertSpec(t, edited, kubeVirt().Spec, "after an upgrade over a hand edit")

	_, err = own.Helm(ctx, helm(), "rollback", platform.Release, "2")
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
	_, err = own.Helm(ctx, helm(), "uninstall", platform.Release, "--debug") // without it Helm keeps the reason to itself
	require.ErrorContains(t, err, "there are still Virtual Machines present")
	kubeVirt()
	require.NoError(t, own.Virt.VirtualMachine(vm.Namespace).Delete(ctx, vm.Name, metav1.DeleteOptions{}))
	_, err = own.Helm(ctx, helm(), "uninstall", platform.Release)
	require.NoError(t, err)
	_, err = own.KubeVirt(ctx)
	require.True(t, apierrors.IsNotFound(err), "the CR is gone: %v", err)
	s.verdict = "the chart installs, upgrades, rolls back; a hand edit outlives an upgrade; it uninstalls only when no VM is left"
}

func assertSpec(t *testing.T, want, got v1.KubeVirtSpec, when string) {
	t.Helper()
	if !equality.Semantic.DeepEqual(want, got) {
		assert.Equal(t, want, got, when)
	}
}

func TestEveryDocumentIsAcceptedStrictly(t *testing.T) {
	t.Parallel()
	install(t, shipped)
	s := &scenario{T: t, started: time.Now(), timeline: &timeline{stop: func() {}}}
	t.Cleanup(func() { record(s, time.Since(s.started)) })
	documents := 0
	for set, file := range chart.ValuesFiles(t) {
		for _, object := range chart.Render(t, chart.Options{ValuesFiles: []string{file}}).Objects {
			if object.GetKind() == "TLSRoute" {
				continue // Gateway API is no part of this control plane; the contract tests judge the route
			}
			object.SetNamespace(metav1.NamespaceDefault) // beside what is installed
			assert.NoError(t, cluster.DryRun(t.Context(), object), "%s: %s", set, object.GetKind())
			documents++
		}
	}
	require.NotZero(t, documents)
	s.verdict = fmt.Sprintf("all %d documents of the ci sets pass a dry run with strict field validation", documents)
}

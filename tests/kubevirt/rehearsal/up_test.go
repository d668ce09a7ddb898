//go:build up

package rehearsal

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "kubevirt.io/api/core/v1"
)

// This file is make rehearsal-up: the rehearsal's control plane, for other tools to work on.

// over is closed by ^C, which is how it ends.
var over = make(chan struct{})

func init() { interrupt = func() { close(over) } }

// TestStaysUp starts some VMs, prints the kubeconfig and stays until ^C. VMs in any namespace run, on nodes that all
// share.
func TestStaysUp(t *testing.T) {
	install(t, shipped)
	_, err := cluster.StartVirtController(metav1.NamespaceAll, newLauncher)
	require.NoError(t, err)
	cluster.StartNodes(metav1.NamespaceAll)
	s := &scenario{T: t, namespace: metav1.NamespaceDefault, patience: patience, timeline: &timeline{}}
	s.watch()
	first := s.node("a")
	s.create(
		migratable("migratable"),
		onLocalDisk("on-local-disk"),
		onLocalDisk("rerun-on-failure").run(v1.RunStrategyRerunOnFailure),
		withGPU("with-gpu"),
		migratable("worker").with(v1.EvictionStrategyExternal),
		onLocalDisk("holds").with(v1.EvictionStrategyLiveMigrate),
		migratable("lets-go").with(v1.EvictionStrategyNone),
		onLocalDisk("manual").run(v1.RunStrategyManual),
		onLocalDisk("bound-to-node"),
		onLocalDisk("budgeted"),
		onLocalDisk("hotplugged"),
	)
	s.bind("bound-to-node", first)
	s.budget("budgeted")
	s.hotplug("hotplugged")
	s.node("b")
	fmt.Println(cluster.Kubeconfig)
	<-over
}

// bind makes the volume of a VM's claim one that only a node can mount.
func (s *scenario) bind(vm, node string) {
	_, err := cluster.Kube.CoreV1().PersistentVolumes().Create(s.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: vm},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/mnt"}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
				},
			}}}},
		},
	}, metav1.CreateOptions{})
	require.NoError(s, err)
}

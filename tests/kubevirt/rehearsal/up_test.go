//go:build up

package rehearsal

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
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
	s.node("a")
	s.create(
		migratable("migratable"),
		onLocalDisk("on-local-disk"),
		onLocalDisk("rerun-on-failure").run(v1.RunStrategyRerunOnFailure),
		withGPU("with-gpu"),
		migratable("worker").with(v1.EvictionStrategyExternal),
		onLocalDisk("holds").with(v1.EvictionStrategyLiveMigrate),
		migratable("lets-go").with(v1.EvictionStrategyNone),
	)
	s.node("b")
	fmt.Println(cluster.Kubeconfig)
	<-over
}

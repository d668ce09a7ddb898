//go:build up

package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cozy-kubevirt/tests/kubevirt/internal/controlplane"
	v1 "kubevirt.io/api/core/v1"
)

// This file is make rehearsal-up: a whole cluster, for other tools and for curious people to work on.

// over is closed by ^C, which is how it ends.
var over = make(chan struct{})

func init() { interrupt = func() { close(over) } }

// snapshotLife is how long a cluster that was kept is taken up again: KubeVirt's certificates live for a day.
const snapshotLife = 12 * time.Hour

// TestStaysUp brings KubeVirt up at $KUBEVIRT_VERSION, with the chart or, before it, the CR that the platform had; starts some
// VMs on two nodes, prints the kubeconfig and stays until ^C.
func TestStaysUp(t *testing.T) {
	version := os.Getenv("KUBEVIRT_VERSION")
	if version == "" {
		version = kubeVirtVersion()
	}
	require.Contains(t, []string{kubeVirtVersion(), versionBefore()}, version, "KUBEVIRT_VERSION: there are binaries of these two only")
	c, err := startUp(t.Context(), version)
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	s := &scenario{T: t, kube: c.Kube, virt: c.Virt, kubeconfig: c.Kubeconfig, whole: c, namespace: metav1.NamespaceDefault, patience: patience, timeline: &timeline{}}
	s.watch(c.VMIs(s.namespace))
	s.create(
		migratable("migratable"),
		onLocalDisk("on-local-disk"),
		onLocalDisk("rerun-on-failure").run(v1.RunStrategyRerunOnFailure),
		withGPU("with-gpu"),
		migratable("worker").with(v1.EvictionStrategyExternal),
		onLocalDisk("holds").with(v1.EvictionStrategyLiveMigrate),
		migratable("lets-go").with(v1.EvictionStrategyNone),
		onLocalDisk("manual").run(v1.RunStrategyManual),
		onLocalDisk("bound-to-node").onNode(dayNodes[0]),
		onLocalDisk("budgeted"),
		onLocalDisk("hotplugged"),
	)
	s.budget("budgeted")
	s.hotplug("hotplugged")
	fmt.Println(s.kubeconfig)
	fmt.Fprintf(os.Stderr, `KubeVirt %s is up, ^C ends it. In another terminal:
  export KUBECONFIG=%s PATH="$PWD/bin:$PATH"
  kubectl get vmi,pods,nodes
  kubectl drain-preview
  make e2e
`, version, s.kubeconfig)
	<-over
}

// startUp starts a cluster, from the snapshot of one that was started before if there is one.
func startUp(ctx context.Context, version string) (*controlplane.Cluster, error) {
	kept := filepath.Join(bin("kubevirt-"+version), "snapshot")
	options := controlplane.Options{Binaries: bin(""), CRDs: []string{tlsRoutes}}
	if upToDate(kept, version) {
		options.Snapshot = kept
	}
	c, err := controlplane.Start(options)
	if err != nil {
		return nil, err
	}
	if options.Snapshot == "" {
		err = bringUp(ctx, c, version)
	} else if err = c.Deployed(ctx, version); err == nil { // the operator's webhook is asked about the CR
		err = installCR(ctx, c, version) // the chart may have changed since
	}
	if err == nil {
		err = c.Deployed(ctx, version)
	}
	if err == nil && options.Snapshot == "" {
		err = keep(c, kept)
	}
	if err != nil {
		c.Stop()
	}
	return c, err
}

// keep puts a snapshot in place of what was kept.
func keep(c *controlplane.Cluster, kept string) error {
	snapshot, err := c.Snapshot()
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(kept), os.RemoveAll(kept+".new")); err != nil {
		return err
	}
	if err := os.CopyFS(kept+".new", os.DirFS(snapshot)); err != nil {
		return err
	}
	return os.Rename(kept+".new", kept)
}

// upToDate says whether what was kept is younger than what it was made with, and than the certificates in it.
func upToDate(kept, version string) bool {
	made, err := os.Stat(kept)
	if err != nil || time.Since(made.ModTime()) > snapshotLife {
		return false
	}
	for _, part := range []string{bin("kubernetes"), bin("etcd"), filepath.Join(bin("kubevirt-"+version), "controlplane"),
		filepath.Join("testdata", "before", "templates", "objects.yaml")} {
		if info, err := os.Stat(part); err != nil || info.ModTime().After(made.ModTime()) {
			return false
		}
	}
	return true
}

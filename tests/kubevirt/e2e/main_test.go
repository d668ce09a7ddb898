// Package e2e proves tests/e2e, the suite that asks a live cluster whether it would let a launcher go: it passes on a
// cluster that answers as KubeVirt does, and fails on every wrong answer, saying which. The cluster is the rehearsal's.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cozy-kubevirt/internal/sandbox"
	"cozy-kubevirt/tests/kubevirt/internal/client"
	"cozy-kubevirt/tests/kubevirt/internal/platform"
)

// root is the repository, seen from here.
var root = filepath.Join("..", "..", "..")

// cluster is the control plane that all tests share.
var cluster *platform.Platform

func TestMain(m *testing.M) {
	os.Exit(sandbox.Within(func() int {
		_ = flag.Set("test.parallel", "4") // a run waits as much as it works
		flag.Parse()
		if err := os.MkdirAll(out(), 0o755); err != nil {
			fmt.Println(err)
			return 1
		}
		log, err := os.Create(filepath.Join(out(), "e2e.log"))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		defer log.Close()
		client.Quiet(log)
		if cluster, err = platform.Start(filepath.Join(root, "bin")); err != nil {
			fmt.Println("the control plane does not start:", err)
			return 1
		}
		defer cluster.Stop()
		if err := prepare(context.Background()); err != nil {
			fmt.Println("the cluster cannot be prepared:", err)
			return 1
		}
		return m.Run()
	}))
}

// prepare installs the chart and starts all that makes VMs run, in every namespace.
func prepare(ctx context.Context) error {
	if err := cluster.Install(ctx, fromEnv("HELM", "helm"), filepath.Join(root, "charts", "kubevirt")); err != nil {
		return err
	}
	if _, err := cluster.StartVirtController(metav1.NamespaceAll, "quay.io/kubevirt/virt-launcher"); err != nil {
		return err
	}
	cluster.StartNodes(metav1.NamespaceAll)
	for _, name := range []string{"a", "b"} {
		if err := cluster.CreateNode(ctx, name, metav1.NamespaceDefault); err != nil {
			return err
		}
	}
	return startVMs(ctx)
}

// fromEnv is the binary that a variable names, or else the repository's own.
func fromEnv(variable, binary string) string {
	if path := os.Getenv(variable); path != "" {
		return path
	}
	return filepath.Join(root, "bin", binary)
}

// out is where the log and the table of wrong answers go.
func out() string { return filepath.Join(root, "_out") }

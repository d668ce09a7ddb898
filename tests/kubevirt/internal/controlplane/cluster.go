// Package controlplane is a whole control plane as processes on this machine: etcd and Kubernetes, and KubeVirt installed by
// its own operator. Only what a node does is a stand-in (nodes.go, kubelet.go, handler.go): it runs the pods that are part
// of KubeVirt's control plane as processes, and reports all others as running. It decides nothing that a scheduler or a
// controller decides. It runs on Linux, as root or with user namespaces.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"cozy-kubevirt/internal/sandbox"
	"cozy-kubevirt/tests/kubevirt/internal/client"
)

// Options say how to start a cluster.
type Options struct {
	Binaries string   // folder of the binaries that make builds
	CRDs     []string // files of further CRDs that it serves
	Snapshot string   // folder of the cluster that it continues (Snapshot), if any
}

// Cluster is one that runs.
type Cluster struct {
	client.Client
	Version string // of Kubernetes

	binaries  string
	folder    string // its files, in the sandbox
	addresses *addresses
	isolation isolation
	nodes     *nodes
	etcd      *server
	stop      context.CancelFunc

	mu      sync.Mutex
	atStops []func()
}

// Start brings Kubernetes up, with a node for control planes and without KubeVirt. Its servers listen on loopback only,
// and its files stand in the sandbox.
func Start(o Options) (*Cluster, error) {
	client.CollectLess()
	binaries, err := filepath.Abs(o.Binaries)
	if err != nil {
		return nil, err
	}
	c := &Cluster{binaries: binaries}
	if err := c.begin(o); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) begin(o Options) (err error) {
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	if c.isolation, err = c.probeIsolation(); err != nil {
		return err
	}
	if c.folder, err = sandbox.Folder("cluster-"); err != nil {
		return err
	}
	if o.Snapshot != "" {
		if err := os.CopyFS(c.folder, os.DirFS(o.Snapshot)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(c.log(""), 0o700); err != nil {
		return err
	}
	if c.addresses, err = claimAddresses(); err != nil {
		return err
	}
	c.atStop(func() { _ = c.addresses.claim.Close() })
	if err := c.startKubernetes(ctx); err != nil {
		return err
	}
	version, err := c.Kube.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	c.Version = version.GitVersion
	if len(o.CRDs) > 0 {
		if _, err := envtest.InstallCRDs(c.Config, envtest.CRDInstallOptions{Paths: o.CRDs, ErrorIfPathMissing: true}); err != nil {
			return err
		}
	}
	return c.startNodes(ctx)
}

// Stop ends everything that Start began, and removes its files.
func (c *Cluster) Stop() {
	c.end()
	if c.folder != "" {
		_ = os.RemoveAll(c.folder) // what is left of it the sandbox removes
	}
}

// Snapshot returns a folder that others can start from; the cluster runs on. It holds etcd's files as the end of the
// process at one moment would have left them, which etcd copes with.
func (c *Cluster) Snapshot() (folder string, err error) {
	if folder, err = sandbox.Folder("snapshot-"); err != nil {
		return "", err
	}
	process := c.etcd.cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, process.Signal(syscall.SIGCONT)) }()
	for _, part := range []string{"etcd", "keys"} {
		if err := os.CopyFS(filepath.Join(folder, part), os.DirFS(filepath.Join(c.folder, part))); err != nil {
			return "", err
		}
	}
	return folder, nil
}

func (c *Cluster) end() {
	c.stop()
	c.mu.Lock()
	all := c.atStops
	c.atStops = nil
	c.mu.Unlock()
	for _, stop := range slices.Backward(all) {
		stop()
	}
}

// atStop has something done when the cluster ends, before what was asked for earlier.
func (c *Cluster) atStop(stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.atStops = append(c.atStops, stop)
}

// binary is the path of one that make built.
func (c *Cluster) binary(name string) (string, error) {
	path := filepath.Join(c.binaries, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w (make rehearsal builds it)", err)
	}
	return path, nil
}

// Logs is the folder with what each process said, for as long as the cluster runs.
func (c *Cluster) Logs() string { return c.log("") }

func (c *Cluster) log(name string) string {
	folder := filepath.Join(c.folder, "logs")
	if name == "" {
		return folder
	}
	return filepath.Join(folder, name+".log")
}

// tail is the end of what a process said.
func (c *Cluster) tail(name string) string {
	const enough = 2000
	text, err := os.ReadFile(c.log(name))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-enough):])
}

func (c *Cluster) auditLog() string { return c.log("evictions") }

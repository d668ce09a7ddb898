package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"cozy-kubevirt/internal/sandbox"
)

// This file starts Kubernetes: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, as processes.

// auditPolicy has the API server write down who asked for which eviction, and what came of it.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources: [{group: "", resources: [pods/eviction]}]
- level: None
`

// server is one process of the cluster's own.
type server struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // once ended
}

func (c *Cluster) startKubernetes(ctx context.Context) error {
	keys := filepath.Join(c.folder, "keys")
	if err := os.MkdirAll(keys, 0o700); err != nil {
		return err
	}
	address := c.addresses.server()
	ca, err := newAuthority(keys, "ca")
	if err != nil {
		return err
	}
	frontProxy, err := newAuthority(keys, "front-proxy-ca")
	if err != nil {
		return err
	}
	if _, err := newAuthority(keys, "service-accounts"); err != nil { // only its key signs
		return err
	}
	const admin, manager, scheduler, proxy = "admin", "system:kube-controller-manager", "system:kube-scheduler", "front-proxy-client"
	if err := errors.Join(ca.server(keys, "kube-apiserver", address), ca.client(keys, admin, "system:masters"),
		ca.client(keys, manager), ca.client(keys, scheduler), frontProxy.client(keys, proxy)); err != nil {
		return err
	}
	url := fmt.Sprintf("https://%s:6443", address)
	kubeconfigs := map[string]string{admin: "kubeconfig", manager: "controller-manager.kubeconfig", scheduler: "scheduler.kubeconfig"}
	for user, file := range kubeconfigs {
		kubeconfigs[user] = filepath.Join(c.folder, file)
		if err := writeKubeconfig(kubeconfigs[user], url, keys, user); err != nil {
			return err
		}
	}
	c.Kubeconfig = kubeconfigs[admin]
	egress, stop, err := startProxy(c.folder, c.addresses)
	if err != nil {
		return err
	}
	c.atStop(stop)
	policy := filepath.Join(c.folder, "audit.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	key := func(name string) string { return filepath.Join(keys, name) }

	client, peer := "http://"+address+":2379", "http://"+address+":2380"
	etcd, err := c.start("etcd",
		"--data-dir="+filepath.Join(c.folder, "etcd"),
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--unsafe-no-fsync", // what the machine's own end would cost is gone after the run anyway
		"--log-level=warn")
	if err != nil {
		return err
	}
	c.etcd = etcd
	apiServer, err := c.start("kube-apiserver",
		"--etcd-servers="+client,
		"--bind-address="+address, "--advertise-address="+c.addresses.advertised(), "--secure-port=6443",
		"--endpoint-reconciler-type=none", // pods are told the address by their environment
		"--service-cluster-ip-range=10.96.0.0/16",
		"--tls-cert-file="+key("kube-apiserver.crt"), "--tls-private-key-file="+key("kube-apiserver.key"),
		"--client-ca-file="+key("ca.crt"),
		"--authorization-mode=RBAC", "--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+key("service-accounts.key"),
		"--service-account-signing-key-file="+key("service-accounts.key"),
		"--enable-aggregator-routing=true", "--egress-selector-config-file="+egress,
		"--proxy-client-cert-file="+key(proxy+".crt"), "--proxy-client-key-file="+key(proxy+".key"),
		"--requestheader-client-ca-file="+key("front-proxy-ca.crt"), "--requestheader-allowed-names="+proxy,
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--audit-policy-file="+policy, "--audit-log-path="+c.auditLog())
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	if err := c.Connect(config); err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, s := range []*server{etcd, apiServer} {
			select {
			case <-s.ended:
				return false, fmt.Errorf("%s ended: %w; it said:\n%s", s.name, s.err, c.tail(s.name))
			default:
			}
		}
		_, err := c.Kube.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("kube-apiserver does not get ready: %w", err)
	}
	if _, err := c.start("kube-controller-manager",
		"--kubeconfig="+kubeconfigs[manager], "--leader-elect=false", "--secure-port=0",
		"--use-service-account-credentials=true",
		"--pvclaimbinder-sync-period=2s", // a claim whose binding has met a conflict waits for the next
		"--service-account-private-key-file="+key("service-accounts.key"), "--root-ca-file="+key("ca.crt")); err != nil {
		return err
	}
	_, err = c.start("kube-scheduler", "--kubeconfig="+kubeconfigs[scheduler], "--leader-elect=false", "--secure-port=0")
	return err
}

// start runs one of the binaries; what it says is in its log.
func (c *Cluster) start(name string, args ...string) (*server, error) {
	binary, err := c.binary(name)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(c.log(name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	s := &server{name: name, cmd: exec.Command(binary, args...), ended: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := sandbox.Start(s.cmd); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		s.err = s.cmd.Wait()
		state := s.cmd.ProcessState
		klog.Infof("%s: ended, after %.1f s of CPU time: %v", s.name, (state.UserTime() + state.SystemTime()).Seconds(), s.err)
		close(s.ended)
	}()
	c.atStop(func() { s.stop(10 * time.Second) })
	return s, nil
}

// stop ends the process in order, or after the grace period at once.
func (s *server) stop(grace time.Duration) {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(grace):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}

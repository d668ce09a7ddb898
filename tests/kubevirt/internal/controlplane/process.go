package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"cozy-kubevirt/internal/sandbox"
	v1 "kubevirt.io/api/core/v1"
)

// This file runs a pod as a process: in namespaces of its own, with its service account's token, its volumes, its
// arguments and its address. Its readiness is what its own probe says.

const (
	probeStarting = 300 * time.Millisecond // pause between probes of a process that is not ready yet; nobody waits for InitialDelay
	probeReady    = time.Second
	refresh       = 10 * time.Second // pause between looks at the volumes' sources
	firstBackoff  = 500 * time.Millisecond
	longBackoff   = 10 * time.Second
)

// leaderElection has a virt-controller follow one that is gone sooner than after the 15 s that it waits by itself. (It does
// not give its lease back, and virt-operator takes no such flags.)
var leaderElection = []string{"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s"}

// process is a pod's.
type process struct {
	nodes  *nodes
	pod    *corev1.Pod
	stop   context.CancelFunc
	ended  chan struct{} // closed when the process is gone and does not come back
	folder string

	isReady atomic.Bool // as its probe said last
}

// processes are all that run.
type processes struct {
	mu   sync.Mutex
	all  map[types.UID]*process
	held map[string]bool // components that may not run, by their label kubevirt.io
}

// isProcess says whether the pod is one that has a binary here: part of KubeVirt's control plane.
func (n *nodes) isProcess(pod *corev1.Pod) bool {
	return n.executable(pod) != ""
}

func (n *nodes) executable(pod *corev1.Pod) string {
	name, tag := nameAndTag(pod.Spec.Containers[0].Image)
	path := filepath.Join(n.cluster.binaries, "kubevirt-"+tag, name)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// ensureProcess starts the pod's process, if it was not yet.
func (n *nodes) ensureProcess(pod *corev1.Pod) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	n.processes.mu.Lock()
	defer n.processes.mu.Unlock()
	if n.processes.all[pod.UID] != nil {
		return
	}
	ctx, stop := context.WithCancel(n.ctx)
	p := &process{nodes: n, pod: pod.DeepCopy(), stop: stop, ended: make(chan struct{}),
		folder: filepath.Join(n.cluster.folder, "pods", string(pod.UID))}
	n.processes.all[pod.UID] = p
	n.running.Go(func() {
		defer close(p.ended)
		if err := p.live(ctx); err != nil && ctx.Err() == nil {
			klog.Infof("pod %s: %v", pod.Name, err)
		}
	})
}

// endProcess ends the pod's process, and says whether it has ended.
func (n *nodes) endProcess(pod *corev1.Pod) bool {
	n.processes.mu.Lock()
	p := n.processes.all[pod.UID]
	n.processes.mu.Unlock()
	if p == nil {
		return true
	}
	p.stop()
	select {
	case <-p.ended:
		n.processes.mu.Lock()
		delete(n.processes.all, pod.UID)
		n.processes.mu.Unlock()
		_ = os.RemoveAll(p.folder)
		return true
	default:
		n.queue.AddAfter(podKey(pod), 50*time.Millisecond)
		return false
	}
}

// component is the part of KubeVirt that a pod is.
func (p *process) component() string { return p.pod.Labels[v1.AppLabel] }

func (p *process) held() bool {
	p.nodes.processes.mu.Lock()
	defer p.nodes.processes.mu.Unlock()
	return p.nodes.processes.held[p.component()]
}

// live keeps the process running until the context ends, or until it has ended for good.
func (p *process) live(ctx context.Context) error {
	address := p.pod.Status.PodIP
	if address == "" {
		address = p.nodes.cluster.addresses.pod()
	} else {
		p.nodes.cluster.addresses.keep(address) // a snapshot's
	}
	p.pod.Status.PodIP = address
	volumes := &volumes{process: p}
	for restarts, backoff := int32(0), firstBackoff; ; restarts++ {
		for p.held() {
			if !sleep(ctx, 100*time.Millisecond) {
				return ctx.Err()
			}
		}
		mounts, err := volumes.prepare(ctx)
		if err != nil {
			return err
		}
		p.report(ctx, false, restarts)
		begun := time.Now()
		ended, err := p.once(ctx, mounts, volumes, restarts)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if policy := p.pod.Spec.RestartPolicy; policy == corev1.RestartPolicyNever || (policy == corev1.RestartPolicyOnFailure && ended == nil) {
			return p.finish(ctx, ended)
		}
		if err != nil {
			klog.Infof("pod %s: %v", p.pod.Name, err)
		}
		p.report(ctx, false, restarts+1)
		if time.Since(begun) > longBackoff {
			backoff = firstBackoff
		}
		if !sleep(ctx, backoff) {
			return ctx.Err()
		}
		backoff = min(2*backoff, longBackoff)
	}
}

// once runs the process once, and returns how it ended.
func (p *process) once(ctx context.Context, mounts map[string]string, volumes *volumes, restarts int32) (ended, failed error) {
	command, err := p.command(mounts)
	if err != nil {
		return err, err
	}
	log, err := os.OpenFile(p.nodes.cluster.log(p.pod.Name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err, err
	}
	defer func() { _ = log.Close() }()
	command.Stdout, command.Stderr = log, log
	if err := sandbox.Start(command); err != nil {
		return err, err
	}
	over := make(chan error, 1)
	go func() {
		err := command.Wait()
		state := command.ProcessState
		klog.Infof("pod %s: ended, after %.1f s of CPU time: %v", p.pod.Name, (state.UserTime() + state.SystemTime()).Seconds(), err)
		over <- err
	}()
	ready, readyBefore := p.ready(), false
	probe, fresh, hold := time.NewTimer(0), time.NewTicker(refresh), time.NewTicker(100*time.Millisecond)
	defer probe.Stop()
	defer fresh.Stop()
	defer hold.Stop()
	for {
		select {
		case err := <-over:
			return err, err
		case <-ctx.Done():
			_ = command.Process.Signal(syscall.SIGTERM)
			select {
			case <-over:
			case <-time.After(p.grace()):
				_ = command.Process.Kill()
				<-over
			}
			return nil, ctx.Err()
		case <-hold.C:
			if p.held() {
				_ = command.Process.Kill()
				return <-over, errors.New("it may not run")
			}
		case <-fresh.C:
			if _, err := volumes.prepare(ctx); err != nil {
				klog.Infof("pod %s: %v", p.pod.Name, err)
			}
		case <-probe.C:
			now := ready()
			if now != readyBefore {
				p.report(ctx, now, restarts)
			}
			readyBefore = now
			if now {
				probe.Reset(probeReady)
			} else {
				probe.Reset(probeStarting)
			}
		}
	}
}

// grace is how long the process may take to end: a few seconds of what the pod asks for, which is half a minute.
func (p *process) grace() time.Duration { return 2 * time.Second }

func (p *process) command(mounts map[string]string) (*exec.Cmd, error) {
	address, err := p.nodes.cluster.addresses.onMachine(p.pod.Status.PodIP)
	if err != nil {
		return nil, err
	}
	spec := p.pod.Spec.Containers[0]
	args := slices.Concat(spec.Command, spec.Args)
	if !slices.Contains(args, "--dump-install-strategy") { // it listens nowhere
		args = append(args, "--listen", address)
	}
	if p.component() == "virt-controller" {
		args = append(args, leaderElection...)
	}
	command, err := p.nodes.cluster.launch(container{Hostname: p.pod.Name, Mounts: mounts, Binary: p.nodes.executable(p.pod), Args: args})
	if err != nil {
		return nil, err
	}
	command.Dir = "/"
	command.Env = []string{
		"PATH=/usr/bin:/bin", "GOGC=" + os.Getenv("GOGC"),
		"KUBERNETES_SERVICE_HOST=" + p.nodes.cluster.addresses.server(), "KUBERNETES_SERVICE_PORT=6443",
	}
	for _, variable := range spec.Env {
		value := variable.Value
		if variable.ValueFrom != nil {
			if variable.ValueFrom.FieldRef == nil {
				return nil, fmt.Errorf("variable %s is of a kind that the stand-in does not know", variable.Name)
			}
			value = field(p.pod, variable.ValueFrom.FieldRef.FieldPath)
		}
		command.Env = append(command.Env, variable.Name+"="+value)
	}
	return command, nil
}

// field is what the downward API says of a pod.
func field(pod *corev1.Pod, path string) string {
	switch path {
	case "metadata.name":
		return pod.Name
	case "metadata.namespace":
		return pod.Namespace
	case "spec.nodeName":
		return pod.Spec.NodeName
	case "status.podIP":
		return pod.Status.PodIP
	}
	for prefix, values := range map[string]map[string]string{"metadata.annotations['": pod.Annotations, "metadata.labels['": pod.Labels} {
		if name, ok := strings.CutPrefix(path, prefix); ok {
			return values[strings.TrimSuffix(name, "']")]
		}
	}
	return ""
}

// ready asks the pod's readiness probe; a pod without one is ready while it runs.
func (p *process) ready() func() bool {
	probe := p.pod.Spec.Containers[0].ReadinessProbe
	if probe == nil || probe.HTTPGet == nil {
		return func() bool { return true }
	}
	address, err := p.nodes.cluster.addresses.onMachine(p.pod.Status.PodIP)
	if err != nil {
		return func() bool { return false }
	}
	url := fmt.Sprintf("%s://%s%s", strings.ToLower(string(probe.HTTPGet.Scheme)),
		net.JoinHostPort(address, probe.HTTPGet.Port.String()), probe.HTTPGet.Path)
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}, // as the kubelet does
	}
	return func() bool {
		answer, err := client.Get(url)
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode >= 200 && answer.StatusCode < 400
	}
}

func (p *process) report(ctx context.Context, ready bool, restarts int32) {
	p.isReady.Store(ready)
	err := p.nodes.report(ctx, p.pod, func(status *corev1.PodStatus) {
		containers(p.pod, status, ready, restarts)
		status.PodIP, status.PodIPs = p.pod.Status.PodIP, []corev1.PodIP{{IP: p.pod.Status.PodIP}}
		status.HostIP = p.nodes.hostIP(p.pod.Spec.NodeName)
	})
	if err != nil && ctx.Err() == nil {
		klog.Infof("pod %s: status: %v", p.pod.Name, err)
	}
}

// finish reports the end of a pod that is not started again.
func (p *process) finish(ctx context.Context, ended error) error {
	return p.nodes.report(ctx, p.pod, func(status *corev1.PodStatus) {
		containers(p.pod, status, false, 0)
		status.Phase = corev1.PodSucceeded
		code := int32(0)
		if ended != nil {
			status.Phase, code = corev1.PodFailed, 1
		}
		for i := range status.ContainerStatuses {
			status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
		}
	})
}

// Hold kills the processes of a component of KubeVirt (its label kubevirt.io), such as virt-api, and starts none until
// Release.
func (c *Cluster) Hold(component string) { c.setHeld(component, true) }

// Release lets a component run again.
func (c *Cluster) Release(component string) { c.setHeld(component, false) }

func (c *Cluster) setHeld(component string, held bool) {
	processes := &c.nodes.processes
	processes.mu.Lock()
	defer processes.mu.Unlock()
	processes.held[component] = held
}

// waitingFor is a component of which no process is ready. What a pod's status says may be older: a snapshot's.
func (n *nodes) waitingFor() string {
	n.processes.mu.Lock()
	defer n.processes.mu.Unlock()
	ready := map[string]bool{}
	for _, p := range n.processes.all {
		if p.pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			ready[p.component()] = ready[p.component()] || p.isReady.Load()
		}
	}
	for component, is := range ready {
		if !is {
			return component + " is not ready"
		}
	}
	if len(ready) < 3 { // operator, api and controller; exportproxy only with its gate
		return fmt.Sprintf("only %d components have processes", len(ready))
	}
	return ""
}

// Ready names the pods of a component whose processes are ready.
func (c *Cluster) Ready(component string) string {
	c.nodes.processes.mu.Lock()
	defer c.nodes.processes.mu.Unlock()
	var names []string
	for _, p := range c.nodes.processes.all {
		if p.component() == component && p.isReady.Load() {
			names = append(names, p.pod.Name)
		}
	}
	return strings.Join(names, ", ")
}

func sleep(ctx context.Context, how time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(how):
		return true
	}
}

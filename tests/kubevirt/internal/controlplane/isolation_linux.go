package controlplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// This file gives a pod's process the namespaces in which it finds its name and its files where it expects them.

// isolation is the way to namespaces that this machine allows.
type isolation uintptr

const (
	asRoot     isolation = syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS
	asAnybody            = asRoot | syscall.CLONE_NEWUSER
	needsOther           = `a pod's process needs namespaces of its own, and none may be made here: %w
Allow one of these:
  run as root with CAP_SYS_ADMIN (in Docker: --privileged)
  user namespaces for everybody:
    sysctl -w user.max_user_namespaces=10000
    sysctl -w kernel.apparmor_restrict_unprivileged_userns=0    # Ubuntu 23.10 and newer
    sysctl -w kernel.unprivileged_userns_clone=1                # older Debian
    in Docker: --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined`
)

// container is what the launcher is told (cmd/launcher/main.go).
type container struct {
	Hostname string
	Mounts   map[string]string
	Binary   string
	Args     []string
}

// probeIsolation tries to run a process in namespaces of its own.
func (c *Cluster) probeIsolation() (isolation, error) {
	nothing, err := exec.LookPath("true")
	if err != nil {
		return 0, err
	}
	var failures []error
	for _, way := range []isolation{asRoot, asAnybody} {
		c.isolation = way
		var said []byte
		command, err := c.launch(container{Hostname: "probe", Mounts: map[string]string{"/etc/probe": os.TempDir()}, Binary: nothing, Args: []string{"true"}})
		if err != nil {
			return 0, err
		}
		if said, err = command.CombinedOutput(); err == nil {
			return way, nil
		}
		failures = append(failures, fmt.Errorf("%w %s", err, said))
	}
	return 0, fmt.Errorf(needsOther, errors.Join(failures...))
}

// launch is the command that becomes a container's process.
func (c *Cluster) launch(what container) (*exec.Cmd, error) {
	launcher, err := c.binary("launcher")
	if err != nil {
		return nil, err
	}
	told, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	command := exec.Command(launcher, string(told))
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: uintptr(c.isolation)}
	if c.isolation&syscall.CLONE_NEWUSER != 0 {
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return command, nil
}

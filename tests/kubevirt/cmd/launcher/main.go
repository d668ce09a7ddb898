//go:build linux

// The launcher becomes a container's process: in the namespaces that it was started in it takes the pod's name as its
// hostname, lays empty folders over /etc and /run, binds the pod's volumes there, and runs the binary in its place. It is
// started with one argument, a Container as JSON (internal/controlplane/isolation_linux.go writes it).
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Container is what to become.
type Container struct {
	Hostname string
	Mounts   map[string]string // folders by where they are to be seen, below /etc or /run
	Binary   string
	Args     []string // the first is the name that it is run under
}

// The parent's death signal belongs to the thread that was started, which is the one that has to become the binary.
func init() { runtime.LockOSThread() }

func main() {
	var container Container
	err := json.Unmarshal([]byte(os.Args[1]), &container)
	if err == nil {
		err = become(container)
	}
	fmt.Fprintln(os.Stderr, "launcher:", err)
	os.Exit(1)
}

func become(c Container) error {
	if err := syscall.Sethostname([]byte(c.Hostname)); err != nil {
		return fmt.Errorf("hostname: %w", err)
	}
	sources := map[string]*os.File{} // opened before anything is laid over them
	for target, source := range c.Mounts {
		folder, err := os.Open(source)
		if err != nil {
			return err
		}
		sources[target] = folder
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	for _, folder := range []string{"/etc", "/run", "/var/run"} {
		if info, err := os.Lstat(folder); err != nil || !info.IsDir() {
			continue // /var/run is mostly a link to /run
		}
		if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "mode=0755"); err != nil {
			return fmt.Errorf("tmpfs on %s: %w", folder, err)
		}
	}
	for target, source := range sources {
		if err := os.MkdirAll(filepath.Clean(target), 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(fmt.Sprintf("/proc/self/fd/%d", source.Fd()), target, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("%s on %s: %w", source.Name(), target, err)
		}
	}
	return syscall.Exec(c.Binary, c.Args, os.Environ())
}

package platform

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"cozy-kubevirt/tests/kubevirt/internal/sandbox"
)

// This file runs an OCI registry, for the way that a release takes to a cluster.

// StartRegistry runs the distribution registry on a free port of loopback until stop is called, and returns its
// address, host:port. Its files stand in the sandbox.
func StartRegistry(ctx context.Context, binary string) (address string, stop func(), err error) {
	folder, err := sandbox.Folder("registry-")
	if err != nil {
		return "", nil, err
	}
	if binary, err = sandbox.Server(folder, binary); err != nil {
		return "", nil, err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address = free.Addr().String()
	if err := free.Close(); err != nil { // the registry does not say which port it took, so it is told one
		return "", nil, err
	}
	config := filepath.Join(folder, "config.yaml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n", folder, address)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", nil, err
	}
	registry := exec.Command(binary, "serve", config)
	if err := registry.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = registry.Process.Kill()
		_ = registry.Wait()
		_ = os.RemoveAll(folder)
	}
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		response, err := http.Get("http://" + address + "/v2/")
		if err != nil {
			return false, nil
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("the registry on %s does not answer: %w", address, err)
	}
	return address, stop, nil
}

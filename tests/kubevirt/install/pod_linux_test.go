package install

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// inPod is a command that finds what a pod's container finds: the token of its account where Kubernetes mounts it, the API server's
// address in the environment, and no kubeconfig.
func inPod(t *testing.T, token, host, port, binary string, arguments ...string) *exec.Cmd {
	t.Helper()
	secrets := t.TempDir()
	for name, content := range map[string][]byte{"token": []byte(token), "ca.crt": config.CAData, "namespace": []byte(name)} {
		require.NoError(t, os.WriteFile(filepath.Join(secrets, name), content, 0o600))
	}
	bin, err := filepath.Abs(filepath.Join(root, "bin"))
	require.NoError(t, err)
	container, err := json.Marshal(map[string]any{
		"Hostname": name, "Mounts": map[string]string{"/var/run/secrets/kubernetes.io/serviceaccount": secrets},
		"Binary": filepath.Join(bin, binary), "Args": append([]string{binary}, arguments...),
	})
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), filepath.Join(bin, "launcher"), string(container))
	command.Env = []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS}
	if os.Geteuid() != 0 {
		command.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return command
}

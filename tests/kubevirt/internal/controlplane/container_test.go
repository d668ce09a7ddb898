package controlplane

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"cozy-kubevirt/internal/sandbox"
)

func TestMain(m *testing.M) {
	os.Exit(sandbox.Within(func() int {
		if version := os.Getenv(victim); version != "" {
			return becomeVictim(version)
		}
		return m.Run()
	}))
}

// envtest asks for the place of its cache when it is initialised, which the sandbox has to be before.
func TestEnvtestKeepsItsCacheInTheSandbox(t *testing.T) {
	require.DirExists(t, filepath.Join(os.Getenv("TMPDIR"), "kubebuilder-envtest"))
}

const binaries = "../../../../bin"

func TestContainerFindsItsNameAndItsFiles(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, lay(folder, map[string][]byte{"greeting": []byte("hello")}))
	shell, err := exec.LookPath("sh")
	require.NoError(t, err)
	for way, isolation := range map[string]isolation{"as root": asRoot, "in a user namespace": asAnybody} {
		if os.Getuid() != 0 && isolation == asRoot {
			continue
		}
		c := &Cluster{binaries: absolute(t, binaries), isolation: isolation}
		command, err := c.launch(container{
			Hostname: "pod-1", Mounts: map[string]string{"/etc/pod": folder, "/var/run/secrets/pod": folder}, Binary: shell,
			Args: []string{"sh", "-c", "cat /proc/sys/kernel/hostname /etc/pod/greeting /var/run/secrets/pod/greeting; ls /etc"},
		})
		require.NoError(t, err)
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s: %s", way, output)
		assert.Equal(t, "pod-1\nhellohellopod\n", string(output), way)
	}
}

func TestMachineWithoutNamespacesIsToldWhatToAllow(t *testing.T) {
	folder := t.TempDir()
	refuses, err := exec.LookPath("false")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(refuses, filepath.Join(folder, "launcher")))
	_, err = (&Cluster{binaries: folder}).probeIsolation()
	for _, way := range []string{"CAP_SYS_ADMIN", "user.max_user_namespaces", "apparmor_restrict_unprivileged_userns"} {
		assert.ErrorContains(t, err, way)
	}
}

func TestVolumeChangesWhole(t *testing.T) {
	folder := t.TempDir()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		return string(text)
	}
	require.NoError(t, lay(folder, map[string][]byte{"tls.crt": []byte("1"), "tls.key": []byte("1")}))
	first, err := os.Readlink(filepath.Join(folder, "..data"))
	require.NoError(t, err)
	require.NoError(t, lay(folder, map[string][]byte{"tls.crt": []byte("1"), "tls.key": []byte("1")}))
	second, err := os.Readlink(filepath.Join(folder, "..data"))
	require.NoError(t, err)
	assert.Equal(t, first, second, "what has not changed stays")
	require.NoError(t, lay(folder, map[string][]byte{"tls.crt": []byte("2"), "tls.key": []byte("2")}))
	assert.Equal(t, "22", read("tls.crt")+read("tls.key"))
}

func TestClustersAtOnceHaveTheirOwnAddresses(t *testing.T) {
	one, err := claimAddresses()
	require.NoError(t, err)
	defer one.claim.Close()
	other, err := claimAddresses()
	require.NoError(t, err)
	defer other.claim.Close()
	assert.NotEqual(t, one.server(), other.server())
	pod := one.pod()
	here, err := one.onMachine(pod)
	require.NoError(t, err)
	continued, err := other.onMachine(pod) // from a snapshot
	require.NoError(t, err)
	assert.NotEqual(t, here, continued)
	assert.Equal(t, lastTwo(pod), lastTwo(continued))
	_, err = one.onMachine("192.0.2.1")
	assert.Error(t, err)
}

func absolute(t *testing.T, path string) string {
	absolute, err := filepath.Abs(path)
	require.NoError(t, err)
	return absolute
}

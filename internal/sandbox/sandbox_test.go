package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const victim = "SANDBOX_TEST_VICTIM"

func TestMain(m *testing.M) {
	if os.Getenv(victim) != "" {
		becomeVictim()
	}
	os.Exit(Within(m.Run))
}

// becomeVictim starts a server, says where everything is, and waits to be killed.
func becomeVictim() {
	folder, err := Folder("platform-")
	if err != nil {
		panic(err)
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		panic(err)
	}
	script, err := Server(folder, sleep)
	if err != nil {
		panic(err)
	}
	server := exec.Command(script, "1000")
	if err := server.Start(); err != nil {
		panic(err)
	}
	fmt.Println(filepath.Dir(folder))
	fmt.Println(server.Process.Pid)
	_ = server.Wait()
}

func TestNothingIsLeftOfAProcessThatIsKilled(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			process, says := again(t, victim)
			folder := says()
			server, err := strconv.Atoi(says())
			require.NoError(t, err)
			require.DirExists(t, folder)
			require.NoError(t, syscall.Kill(server, 0), "the server runs")

			require.NoError(t, process.Process.Signal(signal))
			_ = process.Wait()
			require.Eventually(t, func() bool { return gone(t, folder, server) }, time.Minute, 10*time.Millisecond, "the folder and the server are gone")
		})
	}
}

func TestAServerStartsWhateverItsPathHolds(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "it's a $HOME `#1`;", "echo")
	require.NoError(t, os.MkdirAll(filepath.Dir(binary), 0o700))
	require.NoError(t, os.WriteFile(binary, []byte("#!/bin/sh\necho \"$@\"\n"), 0o700))
	folder, err := Folder("it's ")
	require.NoError(t, err)
	script, err := Server(folder, binary)
	require.NoError(t, err)
	said, err := exec.Command(script, "a  b").CombinedOutput()
	require.NoError(t, err, string(said))
	require.Equal(t, "a  b\n", string(said))
	require.FileExists(t, filepath.Join(folder, pidFile))
}

// again runs this test program in the part that a variable names; says returns the next line that it prints.
func again(t *testing.T, part string) (process *exec.Cmd, says func() string) {
	t.Helper()
	process = exec.Command(os.Args[0])
	process.Env = append(os.Environ(), part+"=1")
	output, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	lines := bufio.NewScanner(output)
	return process, func() string {
		t.Helper()
		require.True(t, lines.Scan())
		return lines.Text()
	}
}

func gone(t *testing.T, folder string, pid int) bool {
	left, err := filepath.Glob(folder + "*")
	require.NoError(t, err)
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	alive := syscall.Kill(pid, 0) == nil && !strings.Contains(string(status), ") Z ") // nobody may wait for an orphan
	return len(left) == 0 && !alive
}

package sandbox

import (
	"bufio"
	"context"
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
	"k8s.io/apimachinery/pkg/util/wait"

	_ "sigs.k8s.io/controller-runtime/pkg/envtest" // takes the place for its cache when it is initialised
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
			process := exec.Command(os.Args[0])
			process.Env = append(os.Environ(), victim+"=1")
			output, err := process.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, process.Start())
			lines := bufio.NewScanner(output)
			require.True(t, lines.Scan())
			folder := lines.Text()
			require.True(t, lines.Scan())
			server, err := strconv.Atoi(strings.TrimSpace(lines.Text()))
			require.NoError(t, err)
			require.DirExists(t, folder)
			require.NoError(t, syscall.Kill(server, 0), "the server runs")

			require.NoError(t, process.Process.Signal(signal))
			_ = process.Wait()
			require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, gone(folder, server)),
				"the folder and the server are gone")
		})
	}
}

func TestEnvtestKeepsItsCacheInTheSandbox(t *testing.T) {
	require.DirExists(t, filepath.Join(folder, "kubebuilder-envtest"))
}

func gone(folder string, pid int) wait.ConditionWithContextFunc {
	return func(context.Context) (bool, error) {
		left, err := filepath.Glob(folder + "*")
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		alive := syscall.Kill(pid, 0) == nil && !strings.Contains(string(status), ") Z ") // nobody may wait for an orphan
		return len(left) == 0 && !alive, err
	}
}

package controlplane

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"

	"cozy-kubevirt/tests/kubevirt/internal/client"
)

// victim is the version of KubeVirt whose operator a process that is to be killed runs.
const victim = "CONTROLPLANE_TEST_VICTIM"

// becomeVictim starts a cluster and KubeVirt's operator on it, prints the processes of both, and waits to be killed.
func becomeVictim(version string) int {
	client.Quiet(io.Discard)
	c, err := Start(Options{Binaries: binaries})
	if err == nil {
		err = c.InstallOperator(context.Background(), version)
	}
	if err == nil {
		err = wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, 5*time.Minute, true, func(context.Context) (bool, error) {
			return c.Ready("virt-operator") != "", nil
		})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for pid, name := range descendants(os.Getpid()) {
		fmt.Println(pid, name)
	}
	fmt.Println("all")
	select {}
}

func TestNoProcessOutlivesItsRunThatIsKilled(t *testing.T) {
	versions, err := filepath.Glob(filepath.Join(binaries, "kubevirt-*"))
	require.NoError(t, err)
	require.NotEmpty(t, versions, "make rehearsal builds them")
	version := strings.TrimPrefix(filepath.Base(versions[len(versions)-1]), "kubevirt-")
	run := exec.Command(os.Args[0])
	run.Env = append(os.Environ(), victim+"="+version)
	run.Stderr = os.Stderr
	output, err := run.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, run.Start())
	processes := map[int]string{}
	lines := bufio.NewScanner(output)
	for lines.Scan() && lines.Text() != "all" {
		id, name, _ := strings.Cut(lines.Text(), " ")
		pid, err := strconv.Atoi(id)
		require.NoError(t, err, "the run says: %s", lines.Text())
		processes[pid] = name
	}
	for _, wanted := range []string{"etcd", "kube-apiserver", "kube-controller", "kube-scheduler", "virt-operator"} {
		assert.Contains(t, strings.Join(values(processes), " "), wanted)
	}

	require.NoError(t, run.Process.Kill())
	_ = run.Wait()
	left := ""
	require.Eventually(t, func() bool {
		left = ""
		for pid, name := range processes {
			if now, _, alive := look(pid); alive && now == name {
				left += fmt.Sprintf("%d %s, ", pid, name)
			}
		}
		return left == ""
	}, time.Minute, 50*time.Millisecond, "what is left")
	assert.Empty(t, left)
}

func values(all map[int]string) []string {
	var found []string
	for _, name := range all {
		found = append(found, name)
	}
	return found
}

// descendants are the processes that a process has started, and those that these have, by id.
func descendants(of int) map[int]string {
	entries, _ := os.ReadDir("/proc")
	found := map[int]string{}
	for grown := true; grown; {
		grown = false
		for _, entry := range entries {
			pid, err := strconv.Atoi(entry.Name())
			if err != nil || found[pid] != "" {
				continue
			}
			name, parent, alive := look(pid)
			if alive && (parent == of || found[parent] != "") {
				found[pid], grown = name, true
			}
		}
	}
	return found
}

// look says what /proc knows of one; one that has ended and that nobody has waited for is not alive.
func look(pid int) (name string, parent int, alive bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || syscall.Kill(pid, 0) != nil {
		return "", 0, false
	}
	_, rest, _ := strings.Cut(string(text), "(")
	name, rest, _ = strings.Cut(rest, ") ")
	fields := strings.Fields(rest)
	parent, _ = strconv.Atoi(fields[1])
	return name, parent, fields[0] != "Z"
}

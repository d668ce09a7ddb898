package report

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// words are what a shell makes of a command: each word that the program would get, and nothing else run.
func words(t *testing.T, command string) []string {
	t.Helper()
	const stubs = "kubectl() { printf '%s\\0' \"$@\"; }\nvirtctl() { kubectl \"$@\"; }\n"
	out, err := exec.Command("sh", "-c", stubs+command).CombinedOutput()
	require.NoError(t, err, "%s: %s", command, out)
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

func TestAShellReadsBackEveryNameInACommand(t *testing.T) {
	for _, name := range []string{"web", "a b", "it's", `"$(echo ran)"`, "`echo ran`", "a;echo ran", "a&echo ran", "a>b", "~", "*", `\`, "#", "a\nb", "", "''", "$HOME", "é"} {
		for i, a := range advised {
			command := a.command(VM{Namespace: name, Name: name, Node: name, Launcher: name, RunStrategy: "Always"})
			if strings.Contains(command, "kubevirt -A") {
				continue // names nothing
			}
			assert.Contains(t, strings.Join(words(t, command), "\n"), name, "advice %d: %s", i, command)
			assert.NotContains(t, words(t, command), "ran")
		}
		assert.Equal(t, []string{"delete", "vmi", "-n", name, name}, words(t, deleteVMI(VM{Namespace: name, Name: name})))
		assert.Equal(t, []string{"stop", "-n", name, name}, words(t, virtctl("stop", VM{Namespace: name, Name: name})))
	}
}

func TestAShellReadsBackTheNodeOfEachDrain(t *testing.T) {
	const node = "a'; echo $(echo ran)"
	r := &Report{Nodes: []string{node}, VMs: []VM{{Node: node, Drain: Drain{End: verdict.Ends}}}}
	for _, a := range drains(r) {
		for _, command := range a.Commands {
			assert.Equal(t, []string{"drain", "--ignore-daemonsets", "--delete-emptydir-data", node}, words(t, command))
		}
	}
	assert.NotEmpty(t, drains(r))
}

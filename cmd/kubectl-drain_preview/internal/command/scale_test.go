package command

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// This file is about large clusters. The dump is as kubectl prints one: for each VM also its VMI, its launcher with all
// of a pod's fields, its claim and a volume that is bound to its node.

const (
	nodesOfALargeCluster = 100
	limitOfMemory        = 500 << 20 // bytes
	asTheCommand         = "RUN_AS_DRAIN_PREVIEW"
)

// TestMain lets the test binary be the command, so that a process of its own can be measured.
func TestMain(m *testing.M) {
	if os.Getenv(asTheCommand) != "" {
		os.Exit(Run(os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
	}
	os.Exit(m.Run())
}

// largeDump writes a dump with a number of VMs and returns its path.
func largeDump(t testing.TB, vms int) string {
	t.Helper()
	template, err := os.ReadFile(filepath.Join("testdata", "one-of-many.yaml.tmpl"))
	require.NoError(t, err)
	file, err := os.Create(filepath.Join(t.TempDir(), "dump.yaml"))
	require.NoError(t, err)
	defer file.Close()
	w := bufio.NewWriter(file)
	fmt.Fprint(w, "apiVersion: v1\nitems:\n- apiVersion: kubevirt.io/v1\n  kind: KubeVirt\n  metadata:\n    name: kubevirt\n"+
		"  spec:\n    workloadUpdateStrategy:\n      workloadUpdateMethods:\n      - LiveMigrate\n      - Evict\n")
	for i := range nodesOfALargeCluster {
		fmt.Fprintf(w, "- apiVersion: v1\n  kind: Node\n  metadata:\n    labels:\n      kubernetes.io/hostname: node-%[1]d\n"+
			"      kubevirt.io/schedulable: \"true\"\n    name: node-%[1]d\n", i)
	}
	for i := range vms {
		_, err := strings.NewReplacer("NAMESPACE", fmt.Sprintf("tenant-%d", i%50), "NAME", fmt.Sprintf("vm-%05d", i),
			"NODE", fmt.Sprintf("node-%d", i%nodesOfALargeCluster), "NUMBER", fmt.Sprintf("%07d", i)).WriteString(w, string(template))
		require.NoError(t, err)
	}
	fmt.Fprint(w, "kind: List\nmetadata:\n  resourceVersion: \"\"\n")
	require.NoError(t, w.Flush())
	return file.Name()
}

// preview runs the command in a process of its own, and returns what it used.
func preview(t testing.TB, dump string) *syscall.Rusage {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-f", dump, "-o", "json")
	cmd.Env = append(os.Environ(), asTheCommand+"=1")
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Run())
	return cmd.ProcessState.SysUsage().(*syscall.Rusage)
}

// peak is the most memory that a process had, in bytes.
func peak(usage *syscall.Rusage) int64 { return usage.Maxrss << 10 } // Linux counts KiB

func TestADumpOf10000VMsTakesLessThan500MiB(t *testing.T) {
	assert.Less(t, peak(preview(t, largeDump(t, 10_000))), int64(limitOfMemory))
}

// The time is measured here and not asserted: it is the machine's as much as the command's.
func BenchmarkDump(b *testing.B) {
	for _, vms := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("%d VMs", vms), func(b *testing.B) {
			dump := largeDump(b, vms)
			var most int64
			for b.Loop() {
				most = max(most, peak(preview(b, dump)))
			}
			b.ReportMetric(float64(most)/(1<<20), "peak-MiB")
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/float64(vms)*1e6, "µs/VM")
		})
	}
}

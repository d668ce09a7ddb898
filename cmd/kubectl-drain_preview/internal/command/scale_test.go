package command

import (
	"bufio"
	"bytes"
	"encoding/json"
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
	"sigs.k8s.io/yaml"
)

// This file is about large clusters. The dump is as kubectl prints one: for each VM also its VMI, its launcher with all
// of a pod's fields, its claim and a volume that is bound to its node.

const (
	limitOfMemory = 500 << 20 // bytes
	asTheCommand  = "RUN_AS_DRAIN_PREVIEW"
)

// TestMain lets the test binary be the command, so that a process of its own can be measured.
func TestMain(m *testing.M) {
	if os.Getenv(asTheCommand) != "" {
		Frugally()
		os.Exit(Run(os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
	}
	os.Exit(m.Run())
}

// largeDump writes a dump, as JSON, with a number of VMs, three times as many other pods, and a node for twenty VMs. It
// returns its path.
func largeDump(t testing.TB, vms int) string {
	t.Helper()
	template, err := os.ReadFile(filepath.Join("testdata", "one-of-many.yaml.tmpl"))
	require.NoError(t, err)
	list, err := yaml.YAMLToJSON(append([]byte("items:\n"), template...))
	require.NoError(t, err)
	list = list[len(`{"items":[`) : len(list)-len(`]}`)]
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, append(append([]byte("["), list...), ']'), "", "    "))
	one := strings.Trim(indented.String(), "[]\n")

	file, err := os.Create(filepath.Join(t.TempDir(), "dump.json"))
	require.NoError(t, err)
	defer file.Close()
	w := bufio.NewWriter(file)
	nodes := max(2, vms/20)
	fmt.Fprint(w, `{"apiVersion": "v1", "items": [{"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"},`+
		` "spec": {"workloadUpdateStrategy": {"workloadUpdateMethods": ["LiveMigrate", "Evict"]}}}`)
	for i := range nodes {
		fmt.Fprintf(w, `,{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-%[1]d", "labels": {"kubernetes.io/hostname": "node-%[1]d",`+
			` "kubernetes.io/arch": "amd64", "kubevirt.io/schedulable": "true"}}, "status": {"allocatable": {"cpu": "128", "memory": "1Ti",`+
			` "ephemeral-storage": "1Ti", "pods": "250", "devices.kubevirt.io/kvm": "1k", "devices.kubevirt.io/tun": "1k", "devices.kubevirt.io/vhost-net": "1k"}}}`, i)
	}
	for i := range vms {
		fmt.Fprint(w, ",")
		_, err := strings.NewReplacer("NAMESPACE", fmt.Sprintf("tenant-%d", i%50), "NAME", fmt.Sprintf("vm-%05d", i),
			"NODE", fmt.Sprintf("node-%d", i%nodes), "NUMBER", fmt.Sprintf("%07d", i)).WriteString(w, one)
		require.NoError(t, err)
	}
	for i := range 3 * vms {
		fmt.Fprintf(w, `,{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-%[1]d", "namespace": "web-%[2]d", "labels": {"app": "web"},`+
			` "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": true}]},`+
			` "spec": {"nodeName": "node-%[3]d", "containers": [{"name": "web", "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}}}]},`+
			` "status": {"phase": "Running"}}`, i, i%100, i%nodes)
	}
	fmt.Fprint(w, `], "kind": "List"}`)
	require.NoError(t, w.Flush())
	return file.Name()
}

// preview runs the command in a process of its own, and returns what it used.
func preview(t testing.TB, dump string) *syscall.Rusage {
	t.Helper()
	cmd := exec.Command(os.Args[0], "--complete", "-f", dump, "-o", "json")
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

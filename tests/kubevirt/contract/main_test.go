// Package contract lets KubeVirt's own code, at the pinned version and in process, judge the CR that the chart
// renders. Every test names the promise (P1 to P22, docs/eviction.md) that breaks when it fails.
package contract

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"k8s.io/klog/v2"
	"kubevirt.io/client-go/log"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	flag.Parse()
	// KubeVirt logs every decision that it takes; a failing test says what matters.
	log.InitializeLogging("contract")
	log.Log.SetIOWriter(io.Discard)
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)

	code := m.Run()
	fmt.Printf("KubeVirt %s judged:", kubeVirtVersion())
	for _, kind := range counted.order {
		fmt.Printf(" %d %s;", counted.number[kind], kind)
	}
	fmt.Println()
	os.Exit(code)
}

// kubeVirtVersion is the version that this test binary is built from.
func kubeVirtVersion() string {
	version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "kubevirt.io/kubevirt").Output()
	if err != nil {
		return "(version unknown)"
	}
	return strings.TrimSpace(string(version))
}

// counted is what the summary line prints: t.Log is only shown with -v.
var counted = struct {
	sync.Mutex
	order  []string
	number map[string]int
}{number: map[string]int{}}

func count(kind string, n int) {
	counted.Lock()
	defer counted.Unlock()
	if _, known := counted.number[kind]; !known {
		counted.order = append(counted.order, kind)
	}
	counted.number[kind] += n
}

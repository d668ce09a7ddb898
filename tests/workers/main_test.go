// Package workers shows what Cluster API and its KubeVirt provider do with a tenant's worker once KubeVirt has marked it
// for evacuation. Their own controllers run; what lies outside them is played by a stand-in (standin_test.go).
package workers

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"cozy-kubevirt/internal/sandbox"
)

// infra is the cluster that all tests share: the platform, with Cluster API and KubeVirt's API on it.
var infra *cluster

func TestMain(m *testing.M) { os.Exit(sandbox.Within(func() int { return run(m) })) }

func run(m *testing.M) int {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	ctrllog.SetLogger(logr.Discard())
	folder, err := sandbox.Folder("servers-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	infra = &cluster{}
	defer infra.stop()
	if err := infra.start(context.Background(), folder); err != nil {
		fmt.Println("the control plane does not start:", err)
		return 1
	}
	// The tests mostly wait, so more of them run at once than there are cores.
	_ = flag.Set("test.parallel", "20")
	return m.Run()
}

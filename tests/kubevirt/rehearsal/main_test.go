// Package rehearsal runs drains and upgrades with nothing but the nodes a stand-in: the days (day_*_test.go) on whole clusters
// with KubeVirt's own operator (internal/controlplane), and the scenarios of single promises on one API server with KubeVirt's
// webhooks and controllers in process (internal/platform). The chart is installed by Helm.
package rehearsal

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"cozy-kubevirt/internal/sandbox"
	"cozy-kubevirt/tests/kubevirt/internal/chart"
	"cozy-kubevirt/tests/kubevirt/internal/client"
	"cozy-kubevirt/tests/kubevirt/internal/platform"
)

// root is the repository, seen from here.
var root = filepath.Join("..", "..", "..")

// cluster is the control plane that the scenarios share, once one of them has installed the chart.
var cluster *platform.Platform

// tlsRoutes is the file with the CRD of the chart's TLSRoute.
var tlsRoutes string

func TestMain(m *testing.M) {
	os.Exit(sandbox.Within(func() int {
		// All of them run at once, as far as their order lets them: they mostly wait.
		_ = flag.Set("test.parallel", "64")
		flag.Parse()
		log, err := os.Create(filepath.Join(out(), "rehearsal.log"))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		defer log.Close()
		client.Quiet(log)
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
		if tlsRoutes, err = gatewayAPI(); err != nil {
			fmt.Println("the CRD of TLSRoute is not found:", err)
			return 1
		}
		defer func() {
			if cluster != nil {
				cluster.Stop()
			}
		}()
		go func() {
			<-interrupted
			interrupt()
		}()
		code := m.Run()
		if err := writeReport(); err != nil {
			fmt.Println("the report cannot be written:", err)
			return 1
		}
		return code
	}))
}

// interrupt is what ^C does. The sandbox is removed once this process is gone.
var interrupt = func() {
	fmt.Println("interrupted")
	os.Exit(130)
}

// policy is a variant of the chart.
type policy string

const (
	shipped policy = "shipped"
	old     policy = "old" // what the platform had: LiveMigrate
)

var installed struct {
	sync.Mutex
	policy policy
}

// install brings the platform to the chart at a policy, if it is not there yet.
func install(t *testing.T, wanted policy) {
	installed.Lock()
	defer installed.Unlock()
	if installed.policy == wanted {
		return
	}
	if cluster == nil {
		started, err := platform.Start(bin(""), tlsRoutes)
		require.NoError(t, err, "the control plane does not start")
		cluster = started
		sawKubernetes(started.Version)
	}
	folder := chart.Dir(t)
	if wanted == old {
		folder = atOldPolicy(t)
	}
	values := filepath.Join(chart.Dir(t), "ci", "gpu-passthrough-values.yaml") // the scenarios' GPU is permitted there
	require.NoError(t, cluster.Install(context.Background(), helm(), folder, "--values", values))
	installed.policy = wanted
}

func helm() string {
	if binary := os.Getenv("HELM"); binary != "" {
		return binary
	}
	return bin("helm")
}

// bin is a binary that make built.
func bin(name string) string { return filepath.Join(root, "bin", name) }

// gatewayAPI finds the CRD in the release of Gateway API that the root module pins.
func gatewayAPI() (string, error) {
	output, err := exec.Command("go", "-C", root, "mod", "download", "-json", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		return "", fmt.Errorf("go mod download: %w: %s", err, output)
	}
	var module struct{ Dir string }
	err = json.Unmarshal(output, &module)
	return filepath.Join(module.Dir, "config", "crd", "standard", "gateway.networking.k8s.io_tlsroutes.yaml"), err
}

// atOldPolicy makes a copy of the chart whose CR has the old cluster strategy.
func atOldPolicy(t *testing.T) string {
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, os.DirFS(chart.Dir(t))))
	template := filepath.Join(folder, "templates", "kubevirt-cr.yaml")
	text, err := os.ReadFile(template)
	require.NoError(t, err)
	strategy := regexp.MustCompile(`(?m)^(    evictionStrategy: )\w+`)
	require.Len(t, strategy.FindAll(text, -1), 1, "the template sets the strategy once")
	require.NoError(t, os.WriteFile(template, strategy.ReplaceAll(text, []byte("${1}LiveMigrate")), 0o644))
	return folder
}

// out is where the log and the report go.
func out() string {
	folder := filepath.Join(root, "_out")
	_ = os.MkdirAll(folder, 0o755)
	return folder
}

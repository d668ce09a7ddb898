// Package client is what a test asks of the rehearsal's clusters, whichever way they came up (internal/controlplane,
// internal/platform).
package client

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/client-go/kubecli"
	kubevirtlog "kubevirt.io/client-go/log"

	"cozy-kubevirt/internal/chart"
)

const (
	// Namespace is where the platform installs the chart, and with it KubeVirt.
	Namespace = chart.Namespace
	// Release is the name under which the chart is installed; its CR has the same name.
	Release = "kubevirt"
)

// Client speaks to a cluster as an administrator.
type Client struct {
	Kube       kubernetes.Interface
	Virt       kubecli.KubevirtClient
	Kubeconfig string // path of an administrator's kubeconfig
	Config     *rest.Config
}

// Connect takes an administrator's configuration.
func (c *Client) Connect(config *rest.Config) (err error) {
	c.Config = config
	c.Config.QPS, c.Config.Burst = 2000, 4000
	if c.Virt, err = kubecli.GetKubevirtClientFromRESTConfig(c.Config); err != nil {
		return err
	}
	builtin := rest.CopyConfig(c.Config)
	builtin.ContentType = runtime.ContentTypeProtobuf // cheaper than JSON, and there are many pods
	builtin.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c.Kube, err = kubernetes.NewForConfig(builtin)
	return err
}

// Helm runs the Helm binary against the cluster and returns what it printed.
func (c *Client) Helm(ctx context.Context, binary string, args ...string) (string, error) {
	args = append(args, "--kubeconfig", c.Kubeconfig, "--namespace", Namespace)
	output, err := exec.CommandContext(ctx, binary, args...).CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return string(output), nil
}

// HelmUpgrade installs the chart, or upgrades to it. The values are reset: Helm takes an empty values file for none and would
// keep those of the last release.
func (c *Client) HelmUpgrade(ctx context.Context, helm, chart string, args ...string) error {
	_, err := c.Helm(ctx, helm, append([]string{"upgrade", Release, chart, "--install", "--reset-values"}, args...)...)
	return err
}

// KubeVirt is the CR that the chart installed.
func (c *Client) KubeVirt(ctx context.Context) (*v1.KubeVirt, error) {
	return c.Virt.KubeVirt(Namespace).Get(ctx, Release, metav1.GetOptions{})
}

// DryRun asks the API server whether it would create the object, with strict field validation.
func (c *Client) DryRun(ctx context.Context, object *unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	_, err = client.Resource(resource).Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

// Quiet sends the logs of everything that runs in this process to one writer.
func Quiet(w io.Writer) {
	kubevirtlog.InitializeLogging("rehearsal")
	kubevirtlog.Log.SetIOWriter(w)
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")
	_ = flags.Set("stderrthreshold", "FATAL")
	klog.SetOutput(w)
	ctrllog.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
}

// CollectLess has this process and those that it starts collect garbage less often: they live for minutes, and that saves an
// eighth of the run's CPU time.
func CollectLess() {
	const percent = 400
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
		_ = os.Setenv("GOGC", strconv.Itoa(percent))
	}
}

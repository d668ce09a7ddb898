// Command images reads what the chart renders and lists the images that it makes a cluster pull, for mirrors:
// those that KubeVirt's own operator would deploy for that KubeVirt resource, at the version go.mod pins.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/virt-config/featuregate"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/install"
	"kubevirt.io/kubevirt/pkg/virt-operator/util"
)

func main() {
	registry := flag.String("registry", "quay.io/kubevirt", "registry and folder that hold the images of KubeVirt's release")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *registry); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, registry string) error {
	version, err := pinnedVersion()
	if err != nil {
		return err
	}
	kv, err := readKubeVirt(in)
	if err != nil {
		return err
	}
	images, err := list(kv, registry, version)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, strings.Join(images, "\n"))
	return err
}

// pinnedVersion is the version of KubeVirt that this program is built from.
func pinnedVersion() (string, error) {
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == "kubevirt.io/kubevirt" {
				return module.Version, nil
			}
		}
	}
	return "", errors.New("the binary does not say which kubevirt.io/kubevirt it holds; build it with go build, from its module")
}

// readKubeVirt returns the KubeVirt among the rendered documents.
func readKubeVirt(in io.Reader) (*v1.KubeVirt, error) {
	documents := yaml.NewYAMLOrJSONDecoder(in, 4096)
	for {
		kv := &v1.KubeVirt{}
		err := documents.Decode(kv)
		if errors.Is(err, io.EOF) {
			return nil, errors.New("stdin: no document of kind KubeVirt; expected what the chart renders: make template | images")
		}
		if err != nil {
			return nil, fmt.Errorf("stdin: %w", err)
		}
		if kv.Kind == "KubeVirt" {
			return kv, nil
		}
	}
}

// list returns the images, sorted, each once. The operator hands some to its controllers as arguments or in the
// environment (virt-launcher, virt-exportserver, sidecar-shim): they start the pods that pull them.
func list(kv *v1.KubeVirt, registry, version string) ([]string, error) {
	operator := registry + "/virt-operator:" + version
	environment := &util.EnvVarManagerMock{}
	for name, value := range map[string]string{
		util.VirtOperatorImageEnvName: operator,
		util.KubeVirtVersionEnvName:   version,
	} {
		if err := environment.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	config := util.GetTargetConfigFromKVWithEnvVarManager(kv, environment)
	if kv.Spec.SynchronizationPort == "" {
		// KubeVirt stores the port that is not set as "", and logs an error that this is no number.
		delete(config.AdditionalProperties, util.AdditionalPropertiesSynchronizationPort)
	}
	strategy, err := install.GenerateCurrentInstallStrategy(config, kv.Spec.MonitorNamespace, kv.Namespace)
	if err != nil {
		return nil, err
	}
	images := map[string]bool{operator: true}
	for _, deployment := range deployments(kv, strategy) {
		collect(images, registry, deployment.Spec.Template.Spec)
	}
	for _, daemonSet := range strategy.DaemonSets() {
		collect(images, registry, daemonSet.Spec.Template.Spec)
	}
	sorted := make([]string, 0, len(images))
	for image := range images {
		sorted = append(sorted, image)
	}
	slices.Sort(sorted)
	return sorted, nil
}

// deployments leaves out the one that the operator generates and then does not apply: the synchronization
// controller, unless its gate is on (pkg/virt-operator/resource/apply/reconcile.go:616).
func deployments(kv *v1.KubeVirt, strategy *install.Strategy) []*appsv1.Deployment {
	all := slices.Clone(strategy.Deployments())
	if featuregate.IsEnabled(featuregate.DecentralizedLiveMigration, kv.Spec.Configuration.DeveloperConfiguration) {
		return all
	}
	unused := strategy.SynchronizationControllerDeployments()
	return slices.DeleteFunc(all, func(d *appsv1.Deployment) bool { return slices.Contains(unused, d) })
}

func collect(images map[string]bool, registry string, pod corev1.PodSpec) {
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		images[container.Image] = true
		words := slices.Concat(container.Command, container.Args)
		for _, variable := range container.Env {
			words = append(words, variable.Value)
		}
		for _, word := range words {
			if strings.HasPrefix(word, registry+"/") {
				images[word] = true
			}
		}
	}
}

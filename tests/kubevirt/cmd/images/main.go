// Command images reads what the chart renders and lists the images that it makes a cluster pull, for mirrors:
// those that KubeVirt's own operator would deploy for that KubeVirt resource, at the version go.mod pins.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/tests/kubevirt/internal/operator"
)

func main() {
	registry := flag.String("registry", operator.Registry, "registry and folder that hold the images of KubeVirt's release")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *registry); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, registry string) error {
	version, err := operator.PinnedVersion()
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
	config, err := operator.Config(kv, registry, version)
	if err != nil {
		return nil, err
	}
	strategy, err := operator.Strategy(kv, config)
	if err != nil {
		return nil, err
	}
	images := map[string]bool{operator.Image(registry, version): true}
	for _, deployment := range operator.Deployments(kv, strategy) {
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

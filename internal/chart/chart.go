// Package chart holds what every check has to know of charts/kubevirt, and renders it with the Helm binary. Nothing
// here judges the result.
package chart

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Release and Namespace are how the platform installs the chart; the custom resource has the release's name.
const (
	Release   = "kubevirt"
	Namespace = "cozy-kubevirt"
)

//go:embed kube-versions
var kubeVersions string

// KubeVersions are one Kubernetes below 1.35 and one from there on: the rendering differs between the two
// (ImageVolume). Every rendering names its version, since Helm's own default differs between Helm releases. The Makefile
// and the scripts read the same file.
var KubeVersions = strings.Fields(kubeVersions)

// SupportedKubeVersions are the minor releases that KubeVirt v1.9 supports: the three newest when it was cut
// (docs/kubernetes-compatibility.md:7), which are those that it is tested on (kubevirtci/cluster-up/cluster,
// k8s-1.34 to k8s-1.36).
var SupportedKubeVersions = []string{"1.34.0", "1.35.0", "1.36.0"}

// Sets returns the files of a chart's values sets, ci/*-values.yaml, by name. There may be none.
func Sets(dir string) (map[string]string, error) {
	const suffix = "-values.yaml"
	files, err := filepath.Glob(filepath.Join(dir, "ci", "*"+suffix))
	sets := map[string]string{}
	for _, file := range files {
		sets[strings.TrimSuffix(filepath.Base(file), suffix)] = file
	}
	return sets, err
}

// MustSets is Sets for a check: where there is none, nothing would be checked, and that is an error.
func MustSets(dir string) (map[string]string, error) {
	sets, err := Sets(dir)
	if err == nil && len(sets) == 0 {
		err = fmt.Errorf("%s/ci holds no *-values.yaml, so nothing would be checked", dir)
	}
	return sets, err
}

// Root is the repository's top folder, seen from the working folder: the first one upwards that holds the chart.
func Root() (string, error) {
	for dir := "."; ; dir = filepath.Join("..", dir) {
		if _, err := os.Stat(filepath.Join(dir, "charts", "kubevirt", "Chart.yaml")); err == nil {
			return dir, nil
		}
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		if absolute == filepath.Dir(absolute) {
			return "", errors.New("no folder from here upwards holds charts/kubevirt")
		}
	}
}

// Binary is the path of a program that make builds: the one that the variable names (HELM for helm, say), else the one in
// the repository's bin.
func Binary(variable, name string) (string, error) {
	path := os.Getenv(variable)
	if path == "" {
		root, err := Root()
		if err != nil {
			return "", err
		}
		path = filepath.Join(root, "bin", name)
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("%w: build it with `make tools`, or name another with %s=", err, variable)
	}
	return filepath.Abs(found)
}

// Rendering says what helm template renders.
type Rendering struct {
	Helm        string   // path of the binary; Binary("HELM", "helm") if empty
	Chart       string   // folder or archive
	Release     string   // Release if empty
	Namespace   string   // Namespace if empty
	KubeVersion string   // the first of KubeVersions if empty
	Values      []string // files, in their order
	APIVersions []string // what the cluster serves beside what Helm assumes, as group/version/Kind
	Arguments   []string // more of helm template's
}

// Template runs helm template. The error holds what Helm said.
func Template(ctx context.Context, r Rendering) (string, error) {
	if r.Helm == "" {
		binary, err := Binary("HELM", "helm")
		if err != nil {
			return "", err
		}
		r.Helm = binary
	}
	arguments := []string{
		"template", cmp.Or(r.Release, Release), r.Chart,
		"--namespace", cmp.Or(r.Namespace, Namespace), "--kube-version", cmp.Or(r.KubeVersion, KubeVersions[0]),
	}
	for _, file := range r.Values {
		// Helm takes a list in CSV, so that a comma or a quote in a path needs quotes.
		arguments = append(arguments, "--values", `"`+strings.ReplaceAll(file, `"`, `""`)+`"`)
	}
	for _, version := range r.APIVersions {
		arguments = append(arguments, "--api-versions", version)
	}
	return Run(ctx, r.Helm, append(arguments, r.Arguments...)...)
}

// Run runs a program and returns what it prints. The error holds what it said on stderr.
func Run(ctx context.Context, binary string, arguments ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, binary, arguments...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(binary), strings.Join(arguments, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

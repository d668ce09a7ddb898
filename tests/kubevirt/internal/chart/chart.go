// Package chart renders charts/kubevirt with the Helm binary and decodes what comes out, for every test in this
// module. Nothing here judges the result.
package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	v1 "kubevirt.io/api/core/v1"
)

// Namespace is where the platform installs the chart.
const Namespace = "cozy-kubevirt"

// KubeVersions are one Kubernetes below 1.35 and one from there on: the rendering differs between the two
// (ImageVolume), and without --kube-version it would depend on the Helm release that renders.
var KubeVersions = []string{"1.34.2", "1.35.0"}

// Options say what to render, beside the chart's defaults.
type Options struct {
	ValuesFiles []string
	KubeVersion string   // the first of KubeVersions if empty
	APIVersions []string // what the cluster serves, as group/version/Kind
}

// Release is one rendering.
type Release struct {
	Objects  []*unstructured.Unstructured // all of it, in order
	KubeVirt *v1.KubeVirt                 // decoded leniently: strictness is what P18 judges
}

// Object returns the only rendered object of a kind, or nil.
func (r *Release) Object(kind string) *unstructured.Unstructured {
	for _, o := range r.Objects {
		if o.GetKind() == kind {
			return o
		}
	}
	return nil
}

// Ingress returns the rendered Ingress, or nil.
func (r *Release) Ingress(t testing.TB) *networkingv1.Ingress {
	t.Helper()
	o := r.Object("Ingress")
	if o == nil {
		return nil
	}
	ingress := &networkingv1.Ingress{}
	Decode(t, o.Object, ingress)
	return ingress
}

// Render runs helm template. $HELM names the binary and $CHART the chart, each with the repository's own as default.
func Render(t testing.TB, o Options) *Release {
	t.Helper()
	if o.KubeVersion == "" {
		o.KubeVersion = KubeVersions[0]
	}
	args := []string{"template", "kubevirt", Dir(t), "--namespace", Namespace, "--kube-version", o.KubeVersion}
	for _, f := range o.ValuesFiles {
		args = append(args, "--values", f)
	}
	for _, v := range o.APIVersions {
		args = append(args, "--api-versions", v)
	}
	r := &Release{}
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(helm(t, args)), 4096)
	for {
		object := map[string]any{}
		err := documents.Decode(&object)
		if err == io.EOF {
			break
		}
		require.NoError(t, err, "helm %s prints YAML", strings.Join(args, " "))
		if len(object) > 0 {
			r.Objects = append(r.Objects, &unstructured.Unstructured{Object: object})
		}
	}
	cr := r.Object("KubeVirt")
	require.NotNil(t, cr, "helm %s renders a KubeVirt", strings.Join(args, " "))
	r.KubeVirt = &v1.KubeVirt{}
	Decode(t, cr.Object, r.KubeVirt)
	return r
}

var outputs sync.Map // by arguments: the same chart with the same values is the same bytes

func helm(t testing.TB, args []string) string {
	t.Helper()
	line := strings.Join(args, " ")
	output, _ := outputs.LoadOrStore(line, sync.OnceValues(func() (string, error) {
		helm := exec.Command(fromEnv("HELM", filepath.Join(root(t), "bin", "helm")), args...)
		var stdout, stderr bytes.Buffer
		helm.Stdout, helm.Stderr = &stdout, &stderr
		if err := helm.Run(); err != nil {
			return "", fmt.Errorf("%w\n%s", err, stderr.String())
		}
		return stdout.String(), nil
	}))
	printed, err := output.(func() (string, error))()
	require.NoError(t, err, "helm %s", line)
	return printed
}

// ValuesFiles lists the values sets that every check runs over, by name: the chart's ci sets, and the file that
// $CONTRACT_VALUES names (make contract VALUES=file).
func ValuesFiles(t testing.TB) map[string]string {
	t.Helper()
	const suffix = "-values.yaml"
	paths, err := filepath.Glob(filepath.Join(Dir(t), "ci", "*"+suffix))
	require.NoError(t, err)
	require.NotEmpty(t, paths, "the chart has values sets in ci/")
	sets := map[string]string{}
	for _, p := range paths {
		sets[strings.TrimSuffix(filepath.Base(p), suffix)] = p
	}
	if p := os.Getenv("CONTRACT_VALUES"); p != "" {
		sets[p] = p
	}
	return sets
}

// Dir is the chart's folder: the one that $CHART names, seen from the repository, or the repository's own.
func Dir(t testing.TB) string {
	dir := fromEnv("CHART", filepath.Join("charts", "kubevirt"))
	if filepath.IsAbs(dir) {
		return dir
	}
	return RepoFile(t, dir)
}

// RepoFile is the path of a file of the repository.
func RepoFile(t testing.TB, elem ...string) string {
	return filepath.Join(append([]string{root(t)}, elem...)...)
}

// Decode turns a decoded document into its Go type, unknown fields ignored.
func Decode(t testing.TB, object map[string]any, into any) {
	t.Helper()
	raw, err := json.Marshal(object)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, into))
}

// DecodeStrict is Decode, but an unknown field is an error.
func DecodeStrict(object map[string]any, into any) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func fromEnv(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// root walks up from the test's folder to the repository: the first parent that holds the chart.
func root(t testing.TB) string {
	t.Helper()
	for dir := "."; ; dir = filepath.Join("..", dir) {
		if _, err := os.Stat(filepath.Join(dir, "charts", "kubevirt", "Chart.yaml")); err == nil {
			return dir
		}
		if abs, err := filepath.Abs(dir); err != nil || abs == filepath.Dir(abs) {
			t.Fatal(fmt.Sprintf("no charts/kubevirt above the test's folder (%v)", err))
		}
	}
}

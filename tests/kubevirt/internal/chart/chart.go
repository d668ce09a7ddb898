// Package chart decodes what internal/chart renders into KubeVirt's own types, for every test in this module. Nothing here
// judges the result.
package chart

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/internal/chart"
)

// Namespace is where the platform installs the chart.
const Namespace = chart.Namespace

// KubeVersions are the Kubernetes versions that the chart is rendered for.
var KubeVersions = chart.KubeVersions

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
	rendering := chart.Rendering{Chart: Dir(t), KubeVersion: o.KubeVersion, Values: o.ValuesFiles, APIVersions: o.APIVersions}
	r := &Release{}
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(helm(t, rendering)), 4096)
	for {
		object := map[string]any{}
		err := documents.Decode(&object)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err, "helm prints YAML for %+v", rendering)
		if len(object) > 0 {
			r.Objects = append(r.Objects, &unstructured.Unstructured{Object: object})
		}
	}
	cr := r.Object("KubeVirt")
	require.NotNil(t, cr, "helm renders a KubeVirt for %+v", rendering)
	r.KubeVirt = &v1.KubeVirt{}
	Decode(t, cr.Object, r.KubeVirt)
	return r
}

var outputs sync.Map // by rendering: the same chart with the same values is the same bytes

func helm(t testing.TB, r chart.Rendering) string {
	t.Helper()
	output, _ := outputs.LoadOrStore(fmt.Sprintf("%+v", r), sync.OnceValues(func() (string, error) {
		return chart.Template(context.Background(), r)
	}))
	printed, err := output.(func() (string, error))()
	require.NoError(t, err)
	return printed
}

// ValuesFiles lists the values sets that every check runs over, by name: the chart's ci sets, and the file that
// $CONTRACT_VALUES names (make contract VALUES=file).
func ValuesFiles(t testing.TB) map[string]string {
	t.Helper()
	sets, err := chart.MustSets(Dir(t))
	require.NoError(t, err)
	if p := os.Getenv("CONTRACT_VALUES"); p != "" {
		sets[p] = p
	}
	return sets
}

// Dir is the chart's folder: the one that $CHART names, seen from the repository, or the repository's own.
func Dir(t testing.TB) string {
	dir := cmp.Or(os.Getenv("CHART"), filepath.Join("charts", "kubevirt"))
	if filepath.IsAbs(dir) {
		return dir
	}
	return RepoFile(t, dir)
}

// RepoFile is the path of a file of the repository.
func RepoFile(t testing.TB, elem ...string) string {
	t.Helper()
	root, err := chart.Root()
	require.NoError(t, err)
	return filepath.Join(append([]string{root}, elem...)...)
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

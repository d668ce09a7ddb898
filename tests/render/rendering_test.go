// What is rendered: byte for byte as in the goldens, of the right types, and the same every time.
package render

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
	kubevirtv1 "kubevirt.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"cozy-kubevirt/internal/chart"
)

func TestEveryValuesSetRendersItsGolden(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for set := range valuesSets(t) {
		for _, kubeVersion := range chart.KubeVersions {
			seen[goldenFile(set, kubeVersion)] = true
		}
	}
	goldens, err := filepath.Glob("testdata/golden/*.yaml")
	require.NoError(t, err)
	for _, golden := range goldens {
		assert.True(t, seen[golden], "%s belongs to no values set in %s/ci; remove it", golden, chartDir)
	}
	eachRendering(t, func(t *testing.T, set, kubeVersion, rendered string) {
		golden := goldenFile(set, kubeVersion)
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(rendered), 0o644))
			return
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err, "write it with: go test ./tests/render -update")
		assert.Equal(t, string(want), rendered, "if the change is meant: go test ./tests/render -update, and review the diff")
	})
}

func goldenFile(set, kubeVersion string) string {
	return filepath.Join("testdata", "golden", set+"-kube-"+kubeVersion+".yaml")
}

func TestEveryDocumentDecodesStrictlyIntoItsType(t *testing.T) {
	t.Parallel()
	types := map[string]func() any{
		"KubeVirt": func() any { return &kubevirtv1.KubeVirt{} },
		"Ingress":  func() any { return &networkingv1.Ingress{} },
		"TLSRoute": func() any { return &gatewayv1.TLSRoute{} },
	}
	eachRendering(t, func(t *testing.T, _, _, rendered string) {
		documents := split(t, rendered)
		require.NotEmpty(t, documents)
		kinds := map[string]int{}
		for _, document := range documents {
			kind := kindOf(t, document)
			require.Contains(t, types, kind, "a document of a kind that this package does not ship")
			kinds[kind]++
			assert.NoError(t, yaml.UnmarshalStrict(document, types[kind]()), "%s", document)
		}
		assert.Equal(t, 1, kinds["KubeVirt"], "the package renders one KubeVirt")
	})
}

// A change of the CR during update migrations can kill VMIs (kubevirt#18720), so an upgrade that changes no
// value must change no byte.
func TestTheSameValuesRenderTheSameBytes(t *testing.T) {
	t.Parallel()
	sets := valuesSets(t)
	eachRendering(t, func(t *testing.T, set, kubeVersion, rendered string) {
		assert.Equal(t, rendered, mustRender(t, chartDir, kubeVersion, sets[set]))
	})
}

func TestNoLineEndsInBlanksAndNoFieldIsNull(t *testing.T) {
	t.Parallel()
	blanks := regexp.MustCompile(`(?m)[ \t]+$`)
	eachRendering(t, func(t *testing.T, _, _, rendered string) {
		assert.NotRegexp(t, blanks, rendered)
		assert.NotContains(t, rendered, "\n\n", "an empty line in the middle")
		for _, document := range split(t, rendered) {
			var tree any
			require.NoError(t, yaml.Unmarshal(document, &tree))
			walk("", tree, func(path string, value any) {
				assert.NotNil(t, value, "%s is null", path)
			})
		}
	})
}

func TestRenderingDependsOnTheKubernetesVersionOnlyForImageVolume(t *testing.T) {
	t.Parallel()
	withoutImageVolume := func(rendered string) string {
		return strings.ReplaceAll(rendered, "      - ImageVolume\n", "")
	}
	for set, file := range valuesSets(t) {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			below, from := mustRender(t, chartDir, "1.30.0", file), mustRender(t, chartDir, "1.36.0", file)
			assert.NotEqual(t, below, from)
			assert.Equal(t, withoutImageVolume(below), from)
		})
	}
}

func TestAPrereleaseOfKubernetes135ServesImageVolumes(t *testing.T) {
	t.Parallel()
	set := valuesSets(t)["default"]
	assert.Contains(t, mustRender(t, chartDir, "1.34.9-gke.100", set), "- ImageVolume\n")
	assert.NotContains(t, mustRender(t, chartDir, "1.35.0-rc.1", set), "ImageVolume")
}

// walk calls visit with the dotted path and the value of everything below tree.
func walk(path string, tree any, visit func(path string, value any)) {
	visit(path, tree)
	switch node := tree.(type) {
	case map[string]any:
		for key, value := range node {
			walk(path+"."+key, value, visit)
		}
	case []any:
		for _, value := range node {
			walk(path+"[]", value, visit)
		}
	}
}

func split(t *testing.T, rendered string) [][]byte {
	t.Helper()
	reader := k8syaml.NewYAMLReader(bufio.NewReader(strings.NewReader(rendered)))
	var documents [][]byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents
		}
		require.NoError(t, err)
		documents = append(documents, bytes.Clone(document))
	}
}

func kindOf(t *testing.T, document []byte) string {
	t.Helper()
	var typed struct{ Kind string }
	require.NoError(t, yaml.Unmarshal(document, &typed))
	return typed.Kind
}

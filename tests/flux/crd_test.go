// Flux's CRDs, made from its Go types the way Flux makes them: its API modules carry the types alone.
package flux

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	generator "sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"

	"cozy-kubevirt/internal/crd"
)

// packages hold the Go types by API version.
var packages = map[string]string{
	"helm.toolkit.fluxcd.io/v2":   "github.com/fluxcd/helm-controller/api/v2",
	"source.toolkit.fluxcd.io/v1": "github.com/fluxcd/source-controller/api/v1",
}

// parsed reads the types once: that takes most of the time.
var parsed = sync.OnceValues(func() (*generator.Parser, error) {
	collector := &markers.Collector{Registry: &markers.Registry{}}
	if err := (generator.Generator{}).RegisterMarkers(collector.Registry); err != nil {
		return nil, err
	}
	parser := &generator.Parser{Collector: collector, Checker: &loader.TypeChecker{}}
	generator.AddKnownTypes(parser)
	for _, path := range packages {
		roots, err := loader.LoadRoots(path)
		if err != nil {
			return nil, err
		}
		for _, root := range roots {
			parser.NeedPackage(root)
		}
	}
	return parser, nil
})

// validate lists what the API server would refuse in an object.
func validate(t *testing.T, object map[string]any) []string {
	t.Helper()
	apiVersion, kind := object["apiVersion"].(string), object["kind"].(string)
	require.Contains(t, packages, apiVersion, "an API version that the tests know no types of")
	parser, err := parsed()
	require.NoError(t, err)
	version, err := schema.ParseGroupVersion(apiVersion)
	require.NoError(t, err)
	groupKind := schema.GroupKind{Group: version.Group, Kind: kind}
	parser.NeedCRDFor(groupKind, nil)
	definition := parser.CustomResourceDefinitions[groupKind]
	judge, err := crd.New(&definition, version.Version)
	require.NoError(t, err)
	refusals, err := judge.Refusals(t.Context(), object)
	require.NoError(t, err)
	return refusals
}

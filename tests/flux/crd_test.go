// Flux's CRDs, made from its Go types the way Flux makes them: its API modules carry the types alone.
package flux

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

// packages hold the Go types by API version.
var packages = map[string]string{
	"helm.toolkit.fluxcd.io/v2":   "github.com/fluxcd/helm-controller/api/v2",
	"source.toolkit.fluxcd.io/v1": "github.com/fluxcd/source-controller/api/v1",
}

// parsed reads the types once: that takes most of the time.
var parsed = sync.OnceValues(func() (*crd.Parser, error) {
	collector := &markers.Collector{Registry: &markers.Registry{}}
	if err := (crd.Generator{}).RegisterMarkers(collector.Registry); err != nil {
		return nil, err
	}
	parser := &crd.Parser{Collector: collector, Checker: &loader.TypeChecker{}}
	crd.AddKnownTypes(parser)
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

// schemaOf returns the schema that the API server would hold objects of that kind to.
func schemaOf(t *testing.T, apiVersion, kind string) *apiextensions.JSONSchemaProps {
	t.Helper()
	require.Contains(t, packages, apiVersion, "an API version that the tests know no types of")
	parser, err := parsed()
	require.NoError(t, err)
	version, err := apischema.ParseGroupVersion(apiVersion)
	require.NoError(t, err)
	groupKind := apischema.GroupKind{Group: version.Group, Kind: kind}
	parser.NeedCRDFor(groupKind, nil)
	for _, served := range parser.CustomResourceDefinitions[groupKind].Spec.Versions {
		if served.Name == version.Version {
			internal := &apiextensions.JSONSchemaProps{}
			require.NoError(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(served.Schema.OpenAPIV3Schema, internal, nil))
			return internal
		}
	}
	require.Fail(t, fmt.Sprintf("%s has no kind %s", apiVersion, kind))
	return nil
}

// validate judges an object as the API server does: types, enums, patterns, required fields, then the CEL rules.
func validate(t *testing.T, object map[string]any) field.ErrorList {
	t.Helper()
	schemaProps := schemaOf(t, object["apiVersion"].(string), object["kind"].(string))
	validator, _, err := validation.NewSchemaValidator(schemaProps)
	require.NoError(t, err)
	if faults := validation.ValidateCustomResource(nil, object, validator); len(faults) > 0 {
		return faults
	}
	structural, err := schema.NewStructural(schemaProps)
	require.NoError(t, err)
	faults, _ := cel.NewValidator(structural, true, celconfig.PerCallLimit).Validate(t.Context(), nil, structural, object, nil, celconfig.RuntimeCELCostBudget)
	return faults
}

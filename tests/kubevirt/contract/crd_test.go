// A CRD as the API server applies it to a create with strict field validation: unknown fields, defaults, the OpenAPI
// schema, list types, metadata and CEL. For KubeVirt's own CRD and for Gateway API's.
package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// crdSchema is the schema of one served version, in the two forms that the API server works with.
type crdSchema struct {
	props      *apiextensions.JSONSchemaProps
	structural *structuralschema.Structural
	openAPI    validation.SchemaValidator
	rules      *cel.Validator // nil if the CRD has none
}

func newCRDSchema(t testing.TB, crd *extv1.CustomResourceDefinition, version string) crdSchema {
	t.Helper()
	for _, v := range crd.Spec.Versions {
		if v.Name != version {
			continue
		}
		require.True(t, v.Served, "%s serves %s", crd.Name, version)
		s := crdSchema{props: &apiextensions.JSONSchemaProps{}}
		require.NoError(t, extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, s.props, nil))
		var err error
		s.structural, err = structuralschema.NewStructural(s.props)
		require.NoError(t, err)
		s.openAPI, _, err = validation.NewSchemaValidator(s.props)
		require.NoError(t, err)
		s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
		return s
	}
	t.Fatalf("%s has no version %s", crd.Name, version)
	return crdSchema{}
}

// refusals lists what the API server would refuse in an object; none means that it is taken as it is.
func (s crdSchema) refusals(t testing.TB, object map[string]any) []string {
	t.Helper()
	object = asJSON(t, object)
	var refusals []string

	_, _, unknown, err := objectmeta.GetObjectMetaWithOptions(object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	require.NoError(t, err)
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	unknown = append(unknown, pruning.PruneWithOptions(runtime.DeepCopyJSON(object), s.structural, true, options)...)
	for _, path := range unknown {
		refusals = append(refusals, fmt.Sprintf("unknown field %q, which is dropped in silence on the way in", path))
	}

	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	defaulting.Default(object, s.structural)

	errs := validation.ValidateCustomResource(nil, object, s.openAPI)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	errs = append(errs, objectmeta.Validate(nil, object, s.structural, true)...)
	if s.rules != nil {
		broken, _ := s.rules.Validate(context.Background(), nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	for _, err := range errs {
		refusals = append(refusals, err.Error())
	}
	return refusals
}

// asJSON gives numbers the types that the API server gives them: integers stay integers.
func asJSON(t testing.TB, object any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(object)
	require.NoError(t, err)
	result := map[string]any{}
	require.NoError(t, utiljson.Unmarshal(raw, &result))
	return result
}

// Package crd judges objects as the API server does when they are created with strict field validation: unknown fields,
// defaults, the OpenAPI schema, list types, metadata and CEL.
package crd

import (
	"context"
	"encoding/json"
	"fmt"

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
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Schema is the schema of one served version, in the forms that the API server works with.
type Schema struct {
	Props      *apiextensions.JSONSchemaProps
	structural *structuralschema.Structural
	openAPI    validation.SchemaValidator
	rules      *cel.Validator // nil if the CRD has none
}

// New reads the schema of a version that the CRD must serve.
func New(crd *extv1.CustomResourceDefinition, version string) (*Schema, error) {
	for _, v := range crd.Spec.Versions {
		if v.Name != version {
			continue
		}
		if !v.Served {
			return nil, fmt.Errorf("%s does not serve %s", crd.Name, version)
		}
		s := &Schema{Props: &apiextensions.JSONSchemaProps{}}
		err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, s.Props, nil)
		if err != nil {
			return nil, err
		}
		if s.structural, err = structuralschema.NewStructural(s.Props); err != nil {
			return nil, err
		}
		if s.openAPI, _, err = validation.NewSchemaValidator(s.Props); err != nil {
			return nil, err
		}
		s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
		return s, nil
	}
	return nil, fmt.Errorf("%s has no version %s", crd.Name, version)
}

// Refusals lists what the API server would refuse in an object; none means that it is taken as it is.
func (s *Schema) Refusals(ctx context.Context, object map[string]any) ([]string, error) {
	object, err := AsJSON(object)
	if err != nil {
		return nil, err
	}
	var refusals []string
	_, _, unknown, err := objectmeta.GetObjectMetaWithOptions(object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	unknown = append(unknown, pruning.PruneWithOptions(runtime.DeepCopyJSON(object), s.structural, true, options)...)
	for _, path := range unknown {
		refusals = append(refusals, fmt.Sprintf("unknown field %q, which is dropped in silence on the way in", path))
	}

	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	defaulting.Default(object, s.structural)

	errs := validation.ValidateCustomResource(nil, object, s.openAPI)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	errs = append(errs, metadata(ctx, object, s.structural)...)
	if s.rules != nil {
		broken, _ := s.rules.Validate(ctx, nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	for _, err := range errs {
		refusals = append(refusals, err.Error())
	}
	return refusals, nil
}

// metadata judges the object's own metadata and every embedded one. The function asks for a context from Kubernetes 1.37 on,
// and this package is built with that release and with KubeVirt's.
func metadata(ctx context.Context, object map[string]any, structural *structuralschema.Structural) field.ErrorList {
	switch validate := any(objectmeta.Validate).(type) {
	case func(*field.Path, any, *structuralschema.Structural, bool) field.ErrorList:
		return validate(nil, object, structural, true)
	case func(context.Context, *field.Path, any, *structuralschema.Structural, bool) field.ErrorList:
		return validate(ctx, nil, object, structural, true)
	}
	panic("objectmeta.Validate has another signature: add it here")
}

// AsJSON gives numbers the types that the API server gives them: integers stay integers.
func AsJSON(object any) (map[string]any, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	result := map[string]any{}
	return result, utiljson.Unmarshal(raw, &result)
}

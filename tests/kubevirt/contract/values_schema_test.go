// Reads the parts of values.schema.json that mirror KubeVirt's CRD, and says where the two differ.
package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
)

// valuesSchema is as much of draft-07 as the chart's schema uses in these sections.
type valuesSchema struct {
	Type              any                     `json:"type"`
	Properties        map[string]valuesSchema `json:"properties"`
	PatternProperties map[string]valuesSchema `json:"patternProperties"`
	Items             *valuesSchema           `json:"items"`
	Required          []string                `json:"required"`
	Ref               string                  `json:"$ref"`
	Definitions       map[string]valuesSchema `json:"definitions"`
}

func readValuesSchema(t testing.TB) valuesSchema {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(chart.Dir(t), "values.schema.json"))
	require.NoError(t, err)
	var schema valuesSchema
	require.NoError(t, json.Unmarshal(raw, &schema))
	return schema
}

func (s valuesSchema) resolve(at valuesSchema) valuesSchema {
	if name, isRef := strings.CutPrefix(at.Ref, "#/definitions/"); isRef {
		return s.Definitions[name]
	}
	return at
}

// types are the JSON types it takes; null means unset everywhere in the values, and is not the CRD's business.
func (s valuesSchema) types() []string {
	var types []string
	switch t := s.Type.(type) {
	case string:
		types = []string{t}
	case []any:
		for _, one := range t {
			if one != "null" {
				types = append(types, one.(string))
			}
		}
	}
	return types
}

// differences compares names, types and required fields, all the way down.
func differences(path string, values valuesSchema, crd apiextensions.JSONSchemaProps, root valuesSchema) []string {
	var found []string
	differ := func(format string, args ...any) { found = append(found, path+": "+fmt.Sprintf(format, args...)) }

	taken := []string{crd.Type}
	if crd.XIntOrString {
		taken = []string{"string", "integer"}
	}
	if types := values.types(); !slices.Equal(types, taken) {
		differ("the values take %v, the CRD %v", types, taken)
	}
	inBoth := []string{}
	for _, name := range slices.Sorted(maps.Keys(values.Properties)) {
		if _, known := crd.Properties[name]; !known && slices.Contains(newFields, path+"."+name) {
			continue
		} else if !known {
			differ("the values have %q, the CRD does not", name)
			continue
		}
		inBoth = append(inBoth, name)
	}
	for _, name := range slices.Sorted(maps.Keys(crd.Properties)) {
		if _, known := values.Properties[name]; !known {
			differ("the CRD has %q, the values do not", name)
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(values.Required)), slices.Sorted(slices.Values(crd.Required))) {
		differ("the values require %v, the CRD %v", values.Required, crd.Required)
	}
	for _, name := range inBoth {
		found = append(found, differences(path+"."+name, root.resolve(values.Properties[name]), crd.Properties[name], root)...)
	}
	switch {
	case crd.Items != nil && crd.Items.Schema != nil && values.Items == nil:
		differ("the values do not say what is in the list")
	case crd.Items != nil && crd.Items.Schema != nil:
		found = append(found, differences(path+"[]", root.resolve(*values.Items), *crd.Items.Schema, root)...)
	}
	if crd.AdditionalProperties != nil && crd.AdditionalProperties.Schema != nil {
		if len(values.PatternProperties) == 0 {
			differ("the values do not say what is in the map")
		}
		for _, value := range values.PatternProperties {
			found = append(found, differences(path+"{}", root.resolve(value), *crd.AdditionalProperties.Schema, root)...)
		}
	}
	return found
}

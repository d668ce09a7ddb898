// A CRD as the API server applies it: KubeVirt's own and Gateway API's, judged by internal/crd.
package contract

import (
	"testing"

	"github.com/stretchr/testify/require"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"cozy-kubevirt/internal/crd"
)

// crdSchema is the schema of one served version.
type crdSchema struct{ *crd.Schema }

func newCRDSchema(t testing.TB, definition *extv1.CustomResourceDefinition, version string) crdSchema {
	t.Helper()
	schema, err := crd.New(definition, version)
	require.NoError(t, err)
	return crdSchema{schema}
}

// refusals lists what the API server would refuse in an object; none means that it is taken as it is.
func (s crdSchema) refusals(t testing.TB, object map[string]any) []string {
	t.Helper()
	refusals, err := s.Refusals(t.Context(), object)
	require.NoError(t, err)
	return refusals
}

// asJSON gives numbers the types that the API server gives them: integers stay integers.
func asJSON(t testing.TB, object any) map[string]any {
	t.Helper()
	result, err := crd.AsJSON(object)
	require.NoError(t, err)
	return result
}

// P20: the routes to the export proxy lead to a Service that virt-operator really creates, and the Gateway API CRDs
// take the TLSRoute in every version that it is rendered for.
package contract

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/gateway-api/pkg/consts"
	"sigs.k8s.io/yaml"

	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
	"cozy-kubevirt/tests/kubevirt/internal/modules"
)

func TestP20_TheIngressLeadsToTheServiceThatKubeVirtCreates(t *testing.T) {
	ingress := renderRoute(t, "exportproxy-ingress").Ingress(t)
	require.NotNil(t, ingress)
	for _, rule := range ingress.Spec.Rules {
		for _, path := range rule.HTTP.Paths {
			requireService(t, ingress.Namespace, path.Backend.Service.Name, path.Backend.Service.Port.Number)
		}
	}
	require.NotEmpty(t, ingress.Spec.Rules)
}

func TestP20_TheTLSRouteLeadsToTheServiceThatKubeVirtCreates(t *testing.T) {
	route := renderRoute(t, "exportproxy-gateway").Object("TLSRoute")
	require.NotNil(t, route)
	var spec struct {
		Spec struct {
			Rules []struct {
				BackendRefs []struct {
					Name, Namespace string
					Port            int32
				}
			}
		}
	}
	chart.Decode(t, route.Object, &spec)
	backends := 0
	for _, rule := range spec.Spec.Rules {
		for _, ref := range rule.BackendRefs {
			assert.Empty(t, ref.Namespace, "P20 is broken: a route into another namespace needs a ReferenceGrant")
			requireService(t, route.GetNamespace(), ref.Name, ref.Port)
			backends++
		}
	}
	require.NotZero(t, backends)
}

func requireService(t *testing.T, namespace, name string, port int32) {
	t.Helper()
	service := components.NewExportProxyService(chart.Namespace)
	assert.Equal(t, service.Namespace, namespace, "P20 is broken: the route is not where the Service is")
	assert.Equal(t, service.Name, name, "P20 is broken: nobody can download an export; virt-operator creates no Service of this name")
	require.Len(t, service.Spec.Ports, 1)
	assert.Equal(t, service.Spec.Ports[0].Port, port, "P20 is broken: nobody can download an export; the Service has no such port")
}

// The older versions were served before v1 and still are in the experimental channel.
func TestP20_GatewayAPITakesTheTLSRouteInEveryVersion(t *testing.T) {
	const group = "gateway.networking.k8s.io/"
	for version, channels := range map[string][]string{
		"v1":       {"standard", "experimental"},
		"v1alpha3": {"experimental"},
		"v1alpha2": {"experimental"},
	} {
		route := renderRoute(t, "exportproxy-gateway", group+version+"/TLSRoute").Object("TLSRoute")
		require.Equal(t, group+version, route.GetAPIVersion(), "P20 is broken: the route is rendered for a version that the cluster does not serve")
		for _, channel := range channels {
			refusals := newCRDSchema(t, tlsRouteCRD(t, channel), version).refusals(t, route.Object)
			assert.Empty(t, refusals, "P20 is broken: Gateway API %s (%s) refuses the TLSRoute", consts.BundleVersion, channel)
		}
	}
}

func TestP20_TheTLSRouteIsV1WhereHelmCannotKnow(t *testing.T) {
	route := renderRoute(t, "exportproxy-gateway").Object("TLSRoute")
	assert.Equal(t, "gateway.networking.k8s.io/v1", route.GetAPIVersion())
}

func renderRoute(t *testing.T, set string, apiVersions ...string) *chart.Release {
	t.Helper()
	file, found := chart.ValuesFiles(t)[set]
	require.True(t, found, "values set %s", set)
	return chart.Render(t, chart.Options{ValuesFiles: []string{file}, APIVersions: apiVersions})
}

// tlsRouteCRD is the CRD from the Gateway API module that go.mod pins.
func tlsRouteCRD(t *testing.T, channel string) *extv1.CustomResourceDefinition {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(modules.Dir(t, "sigs.k8s.io/gateway-api"), "config", "crd", channel, "gateway.networking.k8s.io_tlsroutes.yaml"))
	require.NoError(t, err)
	crd := &extv1.CustomResourceDefinition{}
	require.NoError(t, yaml.Unmarshal(raw, crd))
	return crd
}

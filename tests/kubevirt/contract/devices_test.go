// What the chart lets through, KubeVirt reads: device records as public configurations have them, rendered from values
// and read back by KubeVirt's own config loader, with every record; and a VM that asks for any of them gets its launcher.
package contract

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
)

// fromValues renders the chart with these values.
func fromValues(t testing.TB, values string) *v1.KubeVirt {
	t.Helper()
	//nolint:usetesting // t.TempDir has the test's name in it, and Helm takes a comma for the end of a path
	dir, err := os.MkdirTemp("", "values")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(values), 0o644))
	return chart.Render(t, chart.Options{ValuesFiles: []string{file}}).KubeVirt
}

var legitimateDevices = map[string]string{
	"a PCI device of KubeVirt's own": `{pciHostDevices: [{pciVendorSelector: "10DE:2236", resourceName: nvidia.com/A10}]}`,
	"an external PCI device by any selector": `{pciHostDevices: [
		{pciVendorSelector: "8086:*", resourceName: intel.com/qat, externalResourceProvider: true},
		{pciVendorSelector: "15b3", resourceName: mellanox.com/cx5, externalResourceProvider: true}]}`,
	"an external PCI device beside KubeVirt's own": `{pciHostDevices: [
		{pciVendorSelector: "10DE:2236", resourceName: nvidia.com/A10},
		{pciVendorSelector: "10DE:2236", resourceName: nvidia.com/by-plugin, externalResourceProvider: true}]}`,
	"two external names for one PCI device": `{pciHostDevices: [
		{pciVendorSelector: "10DE:2236", resourceName: nvidia.com/a, externalResourceProvider: true},
		{pciVendorSelector: "10de:2236", resourceName: nvidia.com/b, externalResourceProvider: true}]}`,
	"equal PCI records": `{pciHostDevices: [
		{pciVendorSelector: "10DE:2236", resourceName: nvidia.com/A10},
		{pciVendorSelector: "10DE:2236", resourceName: nvidia.com/A10}]}`,
	"two PCI devices under one name": `{pciHostDevices: [
		{pciVendorSelector: "10DE:2236", resourceName: nvidia.com/gpu},
		{pciVendorSelector: "10DE:2237", resourceName: nvidia.com/gpu}]}`,
	"mediated devices, external and own": `{mediatedDevices: [
		{mdevNameSelector: GRID T4-1Q, resourceName: nvidia.com/T4-1Q},
		{mdevNameSelector: GRID T4-1Q, resourceName: nvidia.com/T4-1Q},
		{mdevNameSelector: GRID T4-1Q, resourceName: nvidia.com/by-plugin, externalResourceProvider: true},
		{mdevNameSelector: i915-GVTg_V5_4, resourceName: intel.com/gvt}]}`,
	"USB devices, with and without zeros": `{usb: [
		{resourceName: kubevirt.io/dongle, selectors: [{vendor: "0951", product: "1666"}, {vendor: "46d", product: "c52b"}]},
		{resourceName: kubevirt.io/one, selectors: [{vendor: "046d", product: "c52b"}]},
		{resourceName: kubevirt.io/by-plugin, externalResourceProvider: true}]}`,
}

func TestEveryDeviceThatTheChartTakesReachesKubeVirt(t *testing.T) {
	for name, devices := range legitimateDevices {
		t.Run(name, func(t *testing.T) {
			want := &v1.PermittedHostDevices{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(devices), want), devices)
			cr := fromValues(t, "extraFeatureGates: [HostDevices]\npermittedHostDevices: "+devices)
			assert.Equal(t, want, clusterConfig(t, cr).GetPermittedHostDevices())
			for _, resource := range resourceNames(want) {
				pod, err := renderLauncher(t, cr, vmiWithDevice(resource))
				if assert.NoError(t, err, "a VM that asks for %s gets no launcher", resource) {
					assert.EqualValues(t, 1, asksFor(pod, resource))
				}
			}
			count("device configurations", 1)
		})
	}
	_, err := renderLauncher(t, valuesSet(t, "gpu-passthrough"), vmiWithDevice("nvidia.com/T4"))
	assert.Error(t, err, "a device that the CR does not permit; or the check above would notice nothing")
}

func resourceNames(devices *v1.PermittedHostDevices) (names []string) {
	for _, d := range devices.PciHostDevices {
		names = append(names, d.ResourceName)
	}
	for _, d := range devices.MediatedDevices {
		names = append(names, d.ResourceName)
	}
	for _, d := range devices.USB {
		names = append(names, d.ResourceName)
	}
	return names
}

func vmiWithDevice(resource string) *v1.VirtualMachineInstance {
	vmi := newVMI(unset)
	vmi.Spec.Domain.Devices.HostDevices = []v1.HostDevice{{Name: "device", DeviceName: resource}}
	return vmi
}

func TestMediatedDeviceTypesAreReadInEitherSpelling(t *testing.T) {
	for name, expected := range map[string]struct {
		values       string
		a10, another []string
	}{
		"the spelling of today": {`{mediatedDeviceTypes: [nvidia-1, nvidia-1]}`, []string{"nvidia-1", "nvidia-1"}, []string{"nvidia-1", "nvidia-1"}},
		"the deprecated one":    {`{mediatedDevicesTypes: [nvidia-1]}`, []string{"nvidia-1"}, []string{"nvidia-1"}},
		"the deprecated one for some nodes": {`{mediatedDeviceTypes: [nvidia-1], nodeMediatedDeviceTypes: [{nodeSelector: {model: a10}, mediatedDevicesTypes: [nvidia-2]}]}`,
			[]string{"nvidia-2"}, []string{"nvidia-1"}},
		"an empty selector": {`{mediatedDeviceTypes: [nvidia-1], nodeMediatedDeviceTypes: [{nodeSelector: {}, mediatedDeviceTypes: [nvidia-2]}, {nodeSelector: {model: a10}, mediatedDeviceTypes: [nvidia-3]}]}`,
			[]string{"nvidia-2", "nvidia-3"}, []string{"nvidia-2"}},
		"both spellings, of which one says it all": {`{mediatedDeviceTypes: [nvidia-1, nvidia-2], mediatedDevicesTypes: [nvidia-2]}`,
			[]string{"nvidia-1", "nvidia-2"}, []string{"nvidia-1", "nvidia-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := clusterConfig(t, fromValues(t, "mediatedDevicesConfiguration: "+expected.values))
			for labels, want := range map[string][]string{"a10": expected.a10, "other": expected.another} {
				node := &k8sv1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"model": labels}}}
				got := slices.Sorted(slices.Values(config.GetDesiredMDEVTypes(node)))
				assert.Equal(t, want, got, "a node labelled model=%s", labels)
			}
		})
	}
}

// The greatest and the least that the values take are what KubeVirt works with; a 0 is no default.
func TestMigrationsRunAsTheValuesSay(t *testing.T) {
	config := clusterConfig(t, fromValues(t, `migrations: {parallelMigrationsPerCluster: 0, parallelOutboundMigrationsPerNode: 2147483647,
		bandwidthPerMigration: 64Mi, completionTimeoutPerGiB: 0, progressTimeout: 9007199254740991, allowPostCopy: true, network: ns/net}`)).GetMigrationConfiguration()
	assert.EqualValues(t, 0, *config.ParallelMigrationsPerCluster)
	assert.EqualValues(t, 2147483647, *config.ParallelOutboundMigrationsPerNode)
	assert.EqualValues(t, 64<<20, config.BandwidthPerMigration.Value())
	assert.EqualValues(t, 0, *config.CompletionTimeoutPerGiB)
	assert.EqualValues(t, 9007199254740991, *config.ProgressTimeout)
	assert.True(t, *config.AllowPostCopy)
	assert.Equal(t, "ns/net", *config.Network)
	assert.Equal(t, "replicated", clusterConfig(t, fromValues(t, "vmStateStorageClass: replicated")).GetVMStateStorageClass())
}

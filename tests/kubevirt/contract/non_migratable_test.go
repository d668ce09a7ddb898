// P16: a VM with a GPU or another host device cannot migrate, under the gates of this CR. virt-handler's own controller
// decides; it runs against a guest that is up, and its launcher does not answer, which is not what it is asked about.
package contract

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	v1 "kubevirt.io/api/core/v1"

	virtcache "kubevirt.io/kubevirt/pkg/virt-handler/cache"
	cmdclient "kubevirt.io/kubevirt/pkg/virt-handler/cmd-client"
	"kubevirt.io/kubevirt/pkg/virt-handler/isolation"
	launcherclients "kubevirt.io/kubevirt/pkg/virt-handler/launcher-clients"
	migrationproxy "kubevirt.io/kubevirt/pkg/virt-handler/migration-proxy"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/api"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
)

// pkg/virt-handler/vm.go:1247-1262 and 1304-1323.
func TestP16_AVMWithAGPUOrAHostDeviceCannotMigrate(t *testing.T) {
	vgpu := valuesSet(t, "vgpu") // permits the mediated device below
	withTheGate := vgpu.DeepCopy()
	gates := withTheGate.Spec.Configuration.DeveloperConfiguration
	gates.FeatureGates = append(gates.FeatureGates, "VGPULiveMigration")
	const mdev, pci = "nvidia.com/NVIDIA_A10-12Q", "nvidia.com/GA102GL_A10"

	for _, expected := range []struct {
		name       string
		cr         *v1.KubeVirt
		devices    v1.Devices
		canMigrate bool
	}{
		{"no device", vgpu, v1.Devices{}, true},
		{"a vGPU", vgpu, v1.Devices{GPUs: []v1.GPU{{Name: "gpu", DeviceName: mdev}}}, false},
		{"a whole GPU", valuesSet(t, "gpu-passthrough"), v1.Devices{GPUs: []v1.GPU{{Name: "gpu", DeviceName: pci}}}, false},
		{"a host device", valuesSet(t, "gpu-passthrough"), v1.Devices{HostDevices: []v1.HostDevice{{Name: "dev", DeviceName: pci}}}, false},
		{"a vGPU, the gate on", withTheGate, v1.Devices{GPUs: []v1.GPU{{Name: "gpu", DeviceName: mdev}}}, hasVGPUMigration},
		{"a whole GPU, the gate on", withTheGate, v1.Devices{GPUs: []v1.GPU{{Name: "gpu", DeviceName: pci}}}, false},
		{"two vGPUs, the gate on", withTheGate, v1.Devices{GPUs: []v1.GPU{{Name: "a", DeviceName: mdev}, {Name: "b", DeviceName: mdev}}}, false},
		{"a host device, the gate on", withTheGate, v1.Devices{HostDevices: []v1.HostDevice{{Name: "dev", DeviceName: mdev}}}, false},
	} {
		t.Run(expected.name, func(t *testing.T) {
			condition := liveMigratable(t, expected.cr, expected.devices)
			want := k8sv1.ConditionFalse
			if expected.canMigrate {
				want = k8sv1.ConditionTrue
			}
			assert.Equal(t, want, condition.Status,
				"P16 is broken: a drain treats such a VM otherwise than the documentation says (%s: %s)", condition.Reason, condition.Message)
			if !expected.canMigrate {
				assert.Equal(t, v1.VirtualMachineInstanceReasonHostDeviceNotMigratable, condition.Reason, "for that reason, and no other")
			}
			count("device cases", 1)
		})
	}
}

func valuesSet(t *testing.T, name string) *v1.KubeVirt {
	t.Helper()
	file, found := chart.ValuesFiles(t)[name]
	require.True(t, found, "values set %s", name)
	return chart.Render(t, chart.Options{ValuesFiles: []string{file}}).KubeVirt
}

// liveMigratable is the condition that virt-handler gives a running VMI with these devices.
func liveMigratable(t *testing.T, cr *v1.KubeVirt, devices v1.Devices) v1.VirtualMachineInstanceCondition {
	t.Helper()
	vmi := newVMI(unset)
	vmi.Spec.Domain.Devices = devices
	// Bridged to the pod network, KubeVirt's default, no VM can migrate; nor with the CPU of a host that nobody knows.
	vmi.Spec.Domain.CPU = &v1.CPU{Model: "Haswell"}
	vmi.Spec.Networks = []v1.Network{*v1.DefaultPodNetwork()}
	vmi.Spec.Domain.Devices.Interfaces = []v1.Interface{*v1.DefaultMasqueradeNetworkInterface()}
	vmi = create(t, clusterConfig(t, cr), vmi)
	vmi.Labels = map[string]string{v1.NodeNameLabel: here}
	vmi.Status.Phase, vmi.Status.NodeName = v1.Running, here

	c := newClient()
	_, err := c.VirtualMachineInstance(vmi.Namespace).Create(context.Background(), vmi, metav1.CreateOptions{})
	require.NoError(t, err)
	vmis, domains := newInformer(), newInformer()
	handler := newVirtHandler(t, handlerParts{
		client: c, config: clusterConfig(t, cr), vmis: vmis, domains: domains, node: here, dir: t.TempDir(),
		recorder: &record.FakeRecorder{},
	})
	domain := api.NewMinimalDomainWithUUID(vmi.Name, vmi.UID)
	domain.Namespace = vmi.Namespace
	domain.Status.Status = api.Running
	domains.add(t, domain)
	vmis.add(t, vmi)
	require.True(t, handler.Execute())

	after, err := c.VirtualMachineInstance(vmi.Namespace).Get(context.Background(), vmi.Name, metav1.GetOptions{})
	require.NoError(t, err)
	for _, condition := range after.Status.Conditions {
		if condition.Type == v1.VirtualMachineInstanceIsMigratable {
			return condition
		}
	}
	t.Fatalf("virt-handler says whether the VMI can migrate: %v", after.Status.Conditions)
	return v1.VirtualMachineInstanceCondition{}
}

// What virt-handler has on a node beside its informers; none of it takes part in the decision.
type (
	noLauncher struct {
		launcherclients.LauncherClientsManager
	}
	noIsolation  struct{ isolation.PodIsolationDetector }
	noMigrations struct{ migrationproxy.ProxyManager }
	noNetwork    struct{}
	noDownwards  struct{}
)

var errNoNode = fmt.Errorf("there is no node here")

func (noLauncher) GetVerifiedLauncherClient(*v1.VirtualMachineInstance) (cmdclient.LauncherClient, error) {
	return nil, errNoNode
}
func (noLauncher) GetLauncherClient(*v1.VirtualMachineInstance) (cmdclient.LauncherClient, error) {
	return nil, errNoNode
}
func (noLauncher) GetLauncherClientInfo(*v1.VirtualMachineInstance) *virtcache.LauncherClientInfo {
	return nil
}
func (noLauncher) IsLauncherClientUnresponsive(*v1.VirtualMachineInstance) (bool, bool, error) {
	return false, true, nil
}
func (noIsolation) Detect(*v1.VirtualMachineInstance) (isolation.IsolationResult, error) {
	return nil, errNoNode
}
func (noNetwork) Setup(*v1.VirtualMachineInstance, []v1.Network, int) error  { return nil }
func (noNetwork) UpdateStatus(*v1.VirtualMachineInstance, *api.Domain) error { return nil }
func (noDownwards) Run(chan struct{})                                        {}
func (noDownwards) StartServer(*v1.VirtualMachineInstance, int) error        { return nil }
func (noDownwards) StopServer(*v1.VirtualMachineInstance)                    {}

type noNetConf struct{ noNetwork }
type noNetStat struct{ noNetwork }

func (noNetConf) Teardown(*v1.VirtualMachineInstance) error { return nil }
func (noNetStat) Teardown(*v1.VirtualMachineInstance)       {}

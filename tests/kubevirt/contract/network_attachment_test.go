// A VM with an SR-IOV interface gets its device: the launcher that KubeVirt's own template service makes under the
// rendered CR asks for the resource that the network attachment names.
package contract

import (
	"context"
	"testing"

	networkv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	networkclient "kubevirt.io/client-go/networkattachmentdefinitionclient"
	networkfake "kubevirt.io/client-go/networkattachmentdefinitionclient/fake"

	"kubevirt.io/kubevirt/pkg/virt-controller/services"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
)

const sriovResource = "intel.com/sriov-net"

// withAttachments is a client that also knows network attachments.
type withAttachments struct {
	*client
	attachments networkclient.Interface
}

func (c withAttachments) NetworkClient() networkclient.Interface { return c.attachments }

// renderLauncher is the launcher pod that virt-controller would create for a VMI under a CR, or why it would not.
func renderLauncher(t testing.TB, cr *v1.KubeVirt, vmi *v1.VirtualMachineInstance) (*k8sv1.Pod, error) {
	t.Helper()
	c := withAttachments{newClient(), networkfake.NewSimpleClientset()}
	// Through the client: the tracker would guess another plural.
	_, err := c.attachments.K8sCniCncfIoV1().NetworkAttachmentDefinitions(vmi.Namespace).Create(context.Background(),
		&networkv1.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{
			Name: "fast", Namespace: vmi.Namespace,
			Annotations: map[string]string{"k8s.v1.cni.cncf.io/resourceName": sriovResource},
		}}, metav1.CreateOptions{})
	require.NoError(t, err)
	templates := services.NewTemplateService("launcher", 240, "share", "ephemeral", "containers", "hotplug", "",
		newInformer().GetStore(), c, clusterConfig(t, cr), 107, "exporter", newInformer().GetStore(), newInformer().GetStore())
	return templates.RenderLaunchManifest(vmi)
}

func vmiWithSRIOV() *v1.VirtualMachineInstance {
	vmi := newVMI(unset)
	vmi.Spec.Networks = []v1.Network{{Name: "fast", NetworkSource: v1.NetworkSource{Multus: &v1.MultusNetwork{NetworkName: "fast"}}}}
	vmi.Spec.Domain.Devices.Interfaces = []v1.Interface{{Name: "fast", InterfaceBindingMethod: v1.InterfaceBindingMethod{SRIOV: &v1.InterfaceSRIOV{}}}}
	return vmi
}

// asksFor is how many of a resource the launcher's containers ask for.
func asksFor(pod *k8sv1.Pod, resource string) int64 {
	var asked int64
	for _, container := range pod.Spec.Containers {
		request := container.Resources.Requests[k8sv1.ResourceName(resource)]
		asked += request.Value()
	}
	return asked
}

func TestAVMWithAnSRIOVInterfaceAsksForItsDevice(t *testing.T) {
	everySet(t, func(t *testing.T, _ string, r *chart.Release) {
		pod, err := renderLauncher(t, r.KubeVirt, vmiWithSRIOV())
		require.NoError(t, err)
		assert.EqualValues(t, 1, asksFor(pod, sriovResource),
			"a VM with an SR-IOV interface starts without its device: KubeVirt leaves it to an injector, and the platform has none")
	})
}

// Without the chart's decision: from v1.9 on KubeVirt does not look, and says nothing.
func TestAnInjectorIsLeftToItWhereTheValuesAskForIt(t *testing.T) {
	cr := rendered(t)
	gates := cr.Spec.Configuration.DeveloperConfiguration
	gates.DisabledFeatureGates = nil
	want := int64(1)
	if betaIsOnByItself {
		want = 0
	}
	pod, err := renderLauncher(t, cr, vmiWithSRIOV())
	require.NoError(t, err)
	assert.EqualValues(t, want, asksFor(pod, sriovResource))
}

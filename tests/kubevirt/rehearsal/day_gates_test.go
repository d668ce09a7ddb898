package rehearsal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"cozy-kubevirt/tests/kubevirt/internal/client"
	v1 "kubevirt.io/api/core/v1"
)

// This file asks a whole cluster which of KubeVirt's feature gates are in effect, by what KubeVirt does, not by what its CR
// says.

// effects are gates whose effect can be seen.
type effects struct {
	exports       bool // VMExport: a VirtualMachineExport is accepted
	hotplug       bool // HotplugVolumes: the subresource API adds a volume to a VMI, which the tenants' CSI driver relies on
	sriovDevice   bool // ExternalNetResourceInjection is off: KubeVirt asks for the device of a VM's SR-IOV network
	vmTemplates   bool // Template: the operator deploys virt-template
	instancetypes bool // no gate, but as easily brought: the operator's own instance types
}

// gateNamespace keeps what asking takes apart from the VMs that the day is about.
const gateNamespace = "gates"

const sriovDevice = "example.org/sriov"

// network is what Multus serves; nothing of it is read but a network's annotation.
const network = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: network-attachment-definitions.k8s.cni.cncf.io}
spec:
  group: k8s.cni.cncf.io
  scope: Namespaced
  names: {plural: network-attachment-definitions, singular: network-attachment-definition, kind: NetworkAttachmentDefinition}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: ` + gateNamespace + `}
`

const attachment = `apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: sriov
  namespace: ` + gateNamespace + `
  annotations: {k8s.v1.cni.cncf.io/resourceName: ` + sriovDevice + `}
spec: {config: '{}'}
`

// serveNetworks has the cluster serve networks of Multus, one of which is there.
func (d *day) serveNetworks() {
	require.NoError(d, d.cluster.Apply(d.Context(), network))
	d.eventually("networks are served", func() string {
		if err := d.cluster.Apply(d.Context(), attachment); err != nil {
			return err.Error()
		}
		return ""
	})
}

func (d *day) effects() effects {
	d.Helper()
	deployments, err := d.kube.AppsV1().Deployments(client.Namespace).List(d.Context(), metav1.ListOptions{})
	require.NoError(d, err)
	found := effects{exports: d.export() == nil, hotplug: d.hotplugInDryRun() == nil, sriovDevice: d.getsItsDevice()}
	for _, deployment := range deployments.Items {
		found.vmTemplates = found.vmTemplates || strings.HasPrefix(deployment.Name, "virt-template")
	}
	instancetypes, err := d.virt.VirtualMachineClusterInstancetype().List(d.Context(), metav1.ListOptions{})
	require.NoError(d, err)
	found.instancetypes = len(instancetypes.Items) > 0
	return found
}

// export asks, in a dry run, for a VM's export. Both releases serve v1beta1.
func (d *day) export() error {
	return d.cluster.DryRun(d.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "export.kubevirt.io/v1beta1", "kind": "VirtualMachineExport",
		"metadata": map[string]any{"name": "export", "namespace": d.namespace},
		"spec":     map[string]any{"source": map[string]any{"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "vm"}},
	}})
}

// hotplugInDryRun asks to add a volume to some VMI that runs.
func (d *day) hotplugInDryRun() error {
	for name := range d.vmis() {
		return d.virt.VirtualMachineInstance(d.namespace).AddVolume(d.Context(), name, &v1.AddVolumeOptions{
			Name: "more", DryRun: []string{metav1.DryRunAll},
			Disk: &v1.Disk{DiskDevice: v1.DiskDevice{Disk: &v1.DiskTarget{Bus: v1.DiskBusSCSI}}},
			VolumeSource: &v1.HotplugVolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{
				PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: "more"}, Hotpluggable: true,
			}},
		})
	}
	return errors.New("no VMI runs")
}

// getsItsDevice says whether the launcher of a VM with an SR-IOV network asks for the network's device. No node has one, so
// that the launcher stays pending, which is enough.
func (d *day) getsItsDevice() bool {
	d.Helper()
	memory := resource.MustParse("64Mi")
	vmi, err := d.virt.VirtualMachineInstance(gateNamespace).Create(d.Context(), &v1.VirtualMachineInstance{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "sriov-"},
		Spec: v1.VirtualMachineInstanceSpec{
			Domain: v1.DomainSpec{
				Memory:  &v1.Memory{Guest: &memory},
				Devices: v1.Devices{Interfaces: []v1.Interface{{Name: "sriov", InterfaceBindingMethod: v1.InterfaceBindingMethod{SRIOV: &v1.InterfaceSRIOV{}}}}},
			},
			Networks: []v1.Network{{Name: "sriov", NetworkSource: v1.NetworkSource{Multus: &v1.MultusNetwork{NetworkName: "sriov"}}}},
		},
	}, metav1.CreateOptions{})
	require.NoError(d, err)
	asks := false
	d.eventually("a VM with an SR-IOV network has a launcher", func() string {
		pods, err := d.kube.CoreV1().Pods(gateNamespace).List(d.Context(), metav1.ListOptions{LabelSelector: v1.CreatedByLabel + "=" + string(vmi.UID)})
		if err != nil || len(pods.Items) == 0 {
			now, _ := d.virt.VirtualMachineInstance(gateNamespace).Get(d.Context(), vmi.Name, metav1.GetOptions{})
			return fmt.Sprintf("%d pods, %v, %v", len(pods.Items), err, now.Status.Conditions)
		}
		for _, container := range pods.Items[0].Spec.Containers {
			_, asked := container.Resources.Limits[sriovDevice]
			asks = asks || asked
		}
		return ""
	})
	require.NoError(d, d.virt.VirtualMachineInstance(gateNamespace).Delete(d.Context(), vmi.Name, metav1.DeleteOptions{}))
	return asks
}

// inEffect waits until the effects are those: a component takes a change of the CR in a moment after it is deployed.
func (d *day) inEffect(when string, wanted effects) {
	d.Helper()
	d.eventually("what is in effect "+when, func() string {
		if found := d.effects(); found != wanted {
			return fmt.Sprintf("%+v, want %+v", found, wanted)
		}
		return ""
	})
}

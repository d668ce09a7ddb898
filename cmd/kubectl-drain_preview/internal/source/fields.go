package source

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
)

// This file names the fields that a preview needs of the kinds that a large cluster has many of: most of a dump is of
// other fields, which are passed over and never kept.

// asKubernetes reads JSON as kubectl does: the last of two equal keys counts, and bytes that are no UTF-8 are replaced.
var asKubernetes = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func whole[T any](text []byte) (*T, error) {
	decoded := new(T)
	return decoded, json.Unmarshal(text, decoded, asKubernetes)
}

// identity is what a preview needs of an object's metadata.
type identity struct {
	Name              string                          `json:"name"`
	Namespace         string                          `json:"namespace"`
	UID               types.UID                       `json:"uid"`
	ResourceVersion   string                          `json:"resourceVersion"`
	Generation        int64                           `json:"generation"`
	Labels            map[string]string               `json:"labels"`
	Annotations       annotations                     `json:"annotations"`
	OwnerReferences   shared[[]metav1.OwnerReference] `json:"ownerReferences"`
	CreationTimestamp metav1.Time                     `json:"creationTimestamp"`
	DeletionTimestamp *metav1.Time                    `json:"deletionTimestamp"`
}

func (i identity) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: i.Name, Namespace: i.Namespace, UID: i.UID, ResourceVersion: i.ResourceVersion, Generation: i.Generation,
		Labels: i.Labels, Annotations: i.Annotations, OwnerReferences: i.OwnerReferences.value,
		CreationTimestamp: i.CreationTimestamp, DeletionTimestamp: i.DeletionTimestamp,
	}
}

// annotations are KubeVirt's, and the one by which a kubelet marks its own pods; others can be as long as the object.
type annotations map[string]string

func (a *annotations) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	if in.PeekKind() != '{' {
		return in.SkipValue()
	}
	if _, err := in.ReadToken(); err != nil {
		return err
	}
	for in.PeekKind() != '}' {
		key, err := in.ReadToken()
		if err != nil {
			return err
		}
		name := key.String()
		if !strings.Contains(name, "kubevirt.io/") && name != corev1.MirrorPodAnnotationKey {
			if err := in.SkipValue(); err != nil {
				return err
			}
			continue
		}
		value, err := in.ReadToken()
		if err != nil {
			return err
		}
		if *a == nil {
			*a = annotations{}
		}
		(*a)[name] = value.String()
	}
	_, err := in.ReadToken()
	return err
}

func podOf(text []byte) (*corev1.Pod, error) {
	var read struct {
		Metadata identity `json:"metadata"`
		Spec     struct {
			NodeName                  string                                    `json:"nodeName"`
			NodeSelector              shared[map[string]string]                 `json:"nodeSelector"`
			Affinity                  shared[*corev1.Affinity]                  `json:"affinity"`
			Tolerations               shared[[]corev1.Toleration]               `json:"tolerations"`
			TopologySpreadConstraints shared[[]corev1.TopologySpreadConstraint] `json:"topologySpreadConstraints"`
			Containers                []container                               `json:"containers"`
			InitContainers            []container                               `json:"initContainers"`
			Overhead                  shared[corev1.ResourceList]               `json:"overhead"`
			Resources                 *corev1.ResourceRequirements              `json:"resources"`
			Priority                  *int32                                    `json:"priority"`
			PriorityClassName         string                                    `json:"priorityClassName"`
			PreemptionPolicy          *corev1.PreemptionPolicy                  `json:"preemptionPolicy"`
			SchedulerName             string                                    `json:"schedulerName"`
			ResourceClaims            []corev1.PodResourceClaim                 `json:"resourceClaims"`
			Volumes                   []podVolume                               `json:"volumes"`
		} `json:"spec"`
		Status struct {
			Phase      corev1.PodPhase     `json:"phase"`
			Conditions shared[[]condition] `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(text, &read, asKubernetes); err != nil {
		return nil, err
	}
	spec := &read.Spec
	pod := &corev1.Pod{
		ObjectMeta: read.Metadata.meta(),
		Spec: corev1.PodSpec{
			NodeName: spec.NodeName, NodeSelector: spec.NodeSelector.value, Affinity: spec.Affinity.value, Tolerations: spec.Tolerations.value,
			TopologySpreadConstraints: spec.TopologySpreadConstraints.value, Overhead: spec.Overhead.value, Resources: spec.Resources,
			Priority: spec.Priority, PriorityClassName: spec.PriorityClassName, PreemptionPolicy: spec.PreemptionPolicy,
			SchedulerName: spec.SchedulerName, ResourceClaims: spec.ResourceClaims,
			Containers: containers(spec.Containers), InitContainers: containers(spec.InitContainers),
		},
		Status: corev1.PodStatus{Phase: read.Status.Phase},
	}
	if pod.UID == "" { // of a dump that somebody wrote: the scheduler tells pods apart by it
		pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
	}
	for _, volume := range spec.Volumes {
		if volume.matters() {
			pod.Spec.Volumes = append(pod.Spec.Volumes, volume.kept())
		}
	}
	for _, c := range read.Status.Conditions.value {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
		})
	}
	return pod, nil
}

type condition struct {
	Type    string                 `json:"type"`
	Status  corev1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

// container is what a scheduler looks at.
type container struct {
	Name          string                         `json:"name"`
	RestartPolicy *corev1.ContainerRestartPolicy `json:"restartPolicy"`
	Ports         []corev1.ContainerPort         `json:"ports"`
	Resources     struct {
		Requests shared[corev1.ResourceList] `json:"requests"`
	} `json:"resources"`
}

func containers(read []container) []corev1.Container {
	var all []corev1.Container
	for _, c := range read {
		kept := corev1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy, Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests.value}}
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				kept.Ports = append(kept.Ports, port)
			}
		}
		all = append(all, kept)
	}
	return all
}

// podVolume is a volume that can tie a pod to a node.
type podVolume struct {
	Name                  string                                    `json:"name"`
	PersistentVolumeClaim *corev1.PersistentVolumeClaimVolumeSource `json:"persistentVolumeClaim"`
	Ephemeral             *struct{}                                 `json:"ephemeral"`
	CSI                   *corev1.CSIVolumeSource                   `json:"csi"`
	GCEPersistentDisk     *corev1.GCEPersistentDiskVolumeSource     `json:"gcePersistentDisk"`
	AWSElasticBlockStore  *corev1.AWSElasticBlockStoreVolumeSource  `json:"awsElasticBlockStore"`
	ISCSI                 *corev1.ISCSIVolumeSource                 `json:"iscsi"`
	RBD                   *corev1.RBDVolumeSource                   `json:"rbd"`
}

func (v podVolume) matters() bool {
	return v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.CSI != nil || v.GCEPersistentDisk != nil ||
		v.AWSElasticBlockStore != nil || v.ISCSI != nil || v.RBD != nil
}

func (v podVolume) kept() corev1.Volume {
	kept := corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: v.PersistentVolumeClaim, CSI: v.CSI, GCEPersistentDisk: v.GCEPersistentDisk,
		AWSElasticBlockStore: v.AWSElasticBlockStore, ISCSI: v.ISCSI, RBD: v.RBD,
	}}
	if v.Ephemeral != nil {
		kept.Ephemeral = &corev1.EphemeralVolumeSource{}
	}
	return kept
}

func vmOf(text []byte) (*v1.VirtualMachine, error) {
	var read struct {
		Metadata identity `json:"metadata"`
		Spec     struct {
			Running               *bool                         `json:"running"`
			RunStrategy           *v1.VirtualMachineRunStrategy `json:"runStrategy"`
			Instancetype          *v1.InstancetypeMatcher       `json:"instancetype"`
			Preference            *v1.PreferenceMatcher         `json:"preference"`
			UpdateVolumesStrategy *v1.UpdateVolumesStrategy     `json:"updateVolumesStrategy"`
			Template              *struct {
				Metadata struct {
					Labels map[string]string `json:"labels"`
				} `json:"metadata"`
				Spec vmiSpec `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
		Status struct {
			RunStrategy         v1.VirtualMachineRunStrategy          `json:"runStrategy"`
			StateChangeRequests []v1.VirtualMachineStateChangeRequest `json:"stateChangeRequests"`
			InstancetypeRef     *v1.InstancetypeStatusRef             `json:"instancetypeRef"`
			VolumeUpdateState   *v1.VolumeUpdateState                 `json:"volumeUpdateState"`
			Conditions          []condition                           `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(text, &read, asKubernetes); err != nil {
		return nil, err
	}
	vm := &v1.VirtualMachine{
		ObjectMeta: read.Metadata.meta(),
		Spec: v1.VirtualMachineSpec{
			Running: read.Spec.Running, RunStrategy: read.Spec.RunStrategy, Instancetype: read.Spec.Instancetype,
			Preference: read.Spec.Preference, UpdateVolumesStrategy: read.Spec.UpdateVolumesStrategy,
		},
		Status: v1.VirtualMachineStatus{
			RunStrategy: read.Status.RunStrategy, StateChangeRequests: read.Status.StateChangeRequests,
			InstancetypeRef: read.Status.InstancetypeRef, VolumeUpdateState: read.Status.VolumeUpdateState,
		},
	}
	if template := read.Spec.Template; template != nil {
		vm.Spec.Template = &v1.VirtualMachineInstanceTemplateSpec{Spec: template.Spec.whole()}
		vm.Spec.Template.ObjectMeta.Labels = template.Metadata.Labels
	}
	for _, c := range read.Status.Conditions {
		vm.Status.Conditions = append(vm.Status.Conditions, v1.VirtualMachineCondition{
			Type: v1.VirtualMachineConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
		})
	}
	return vm, nil
}

// vmiSpec is what decides where a VMI may run, and what becomes of it.
type vmiSpec struct {
	Architecture              string                            `json:"architecture"`
	EvictionStrategy          *v1.EvictionStrategy              `json:"evictionStrategy"`
	NodeSelector              shared[map[string]string]         `json:"nodeSelector"`
	Affinity                  shared[*corev1.Affinity]          `json:"affinity"`
	Tolerations               shared[[]corev1.Toleration]       `json:"tolerations"`
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints"`
	PriorityClassName         string                            `json:"priorityClassName"`
	SchedulerName             string                            `json:"schedulerName"`
	Domain                    struct {
		CPU            shared[*v1.CPU]                 `json:"cpu"`
		Memory         shared[*v1.Memory]              `json:"memory"`
		Resources      shared[v1.ResourceRequirements] `json:"resources"`
		Machine        shared[*v1.Machine]             `json:"machine"`
		Features       shared[*v1.Features]            `json:"features"`
		LaunchSecurity *v1.LaunchSecurity              `json:"launchSecurity"`
		IOThreads      *v1.DiskIOThreads               `json:"ioThreads"`
		Firmware       *struct {
			Bootloader *v1.Bootloader `json:"bootloader"`
		} `json:"firmware"`
		Devices struct {
			TPM         *v1.TPMDevice   `json:"tpm"`
			GPUs        []v1.GPU        `json:"gpus"`
			HostDevices []v1.HostDevice `json:"hostDevices"`
		} `json:"devices"`
	} `json:"domain"`
	Volumes        []vmVolume         `json:"volumes"`
	UtilityVolumes []v1.UtilityVolume `json:"utilityVolumes"`
}

// vmVolume is a volume with a claim.
type vmVolume struct {
	Name                  string                                `json:"name"`
	PersistentVolumeClaim *v1.PersistentVolumeClaimVolumeSource `json:"persistentVolumeClaim"`
	DataVolume            *v1.DataVolumeSource                  `json:"dataVolume"`
	Ephemeral             *v1.EphemeralVolumeSource             `json:"ephemeral"`
}

func (s *vmiSpec) whole() v1.VirtualMachineInstanceSpec {
	spec := v1.VirtualMachineInstanceSpec{
		Architecture: s.Architecture, EvictionStrategy: s.EvictionStrategy, NodeSelector: s.NodeSelector.value, Affinity: s.Affinity.value,
		Tolerations: s.Tolerations.value, TopologySpreadConstraints: s.TopologySpreadConstraints,
		PriorityClassName: s.PriorityClassName, SchedulerName: s.SchedulerName, UtilityVolumes: s.UtilityVolumes,
	}
	domain := &spec.Domain
	domain.CPU, domain.Memory, domain.Resources = s.Domain.CPU.value, s.Domain.Memory.value, s.Domain.Resources.value
	domain.Machine, domain.Features = s.Domain.Machine.value, s.Domain.Features.value
	domain.LaunchSecurity, domain.IOThreads = s.Domain.LaunchSecurity, s.Domain.IOThreads
	domain.Devices.TPM, domain.Devices.GPUs, domain.Devices.HostDevices = s.Domain.Devices.TPM, s.Domain.Devices.GPUs, s.Domain.Devices.HostDevices
	if s.Domain.Firmware != nil && s.Domain.Firmware.Bootloader != nil {
		domain.Firmware = &v1.Firmware{Bootloader: s.Domain.Firmware.Bootloader}
	}
	for _, v := range s.Volumes {
		if v.PersistentVolumeClaim != nil || v.DataVolume != nil || v.Ephemeral != nil {
			spec.Volumes = append(spec.Volumes, v1.Volume{Name: v.Name, VolumeSource: v1.VolumeSource{
				PersistentVolumeClaim: v.PersistentVolumeClaim, DataVolume: v.DataVolume, Ephemeral: v.Ephemeral,
			}})
		}
	}
	return spec
}

func vmiOf(text []byte) (*v1.VirtualMachineInstance, error) {
	var read struct {
		Metadata identity `json:"metadata"`
		Spec     vmiSpec  `json:"spec"`
		Status   struct {
			Phase                v1.VirtualMachineInstancePhase           `json:"phase"`
			NodeName             string                                   `json:"nodeName"`
			EvacuationNodeName   string                                   `json:"evacuationNodeName"`
			MigrationState       *v1.VirtualMachineInstanceMigrationState `json:"migrationState"`
			MigratedVolumes      []v1.StorageMigratedVolumeInfo           `json:"migratedVolumes"`
			Machine              *v1.Machine                              `json:"machine"`
			Memory               *v1.MemoryStatus                         `json:"memory"`
			CurrentCPUTopology   *v1.CPUTopology                          `json:"currentCPUTopology"`
			TopologyHints        *v1.TopologyHints                        `json:"topologyHints"`
			ChangedBlockTracking *v1.ChangedBlockTrackingStatus           `json:"changedBlockTracking"`
			Conditions           []condition                              `json:"conditions"`
			Interfaces           []struct {
				IP string `json:"ipAddress"`
			} `json:"interfaces"`
		} `json:"status"`
	}
	if err := json.Unmarshal(text, &read, asKubernetes); err != nil {
		return nil, err
	}
	status := &read.Status
	vmi := &v1.VirtualMachineInstance{
		ObjectMeta: read.Metadata.meta(),
		Spec:       read.Spec.whole(),
		Status: v1.VirtualMachineInstanceStatus{
			Phase: status.Phase, NodeName: status.NodeName, EvacuationNodeName: status.EvacuationNodeName,
			MigrationState: status.MigrationState, MigratedVolumes: status.MigratedVolumes, Machine: status.Machine,
			Memory: status.Memory, CurrentCPUTopology: status.CurrentCPUTopology, TopologyHints: status.TopologyHints,
			ChangedBlockTracking: status.ChangedBlockTracking,
		},
	}
	for _, c := range status.Conditions {
		vmi.Status.Conditions = append(vmi.Status.Conditions, v1.VirtualMachineInstanceCondition{
			Type: v1.VirtualMachineInstanceConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
		})
	}
	for _, i := range status.Interfaces {
		vmi.Status.Interfaces = append(vmi.Status.Interfaces, v1.VirtualMachineInstanceNetworkInterface{IP: i.IP})
	}
	return vmi, nil
}

func nodeOf(text []byte) (*corev1.Node, error) {
	var read struct {
		Metadata identity `json:"metadata"`
		Spec     struct {
			Taints        []corev1.Taint `json:"taints"`
			Unschedulable bool           `json:"unschedulable"`
			ProviderID    string         `json:"providerID"`
		} `json:"spec"`
		Status struct {
			Allocatable corev1.ResourceList    `json:"allocatable"`
			Capacity    corev1.ResourceList    `json:"capacity"`
			Conditions  []corev1.NodeCondition `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(text, &read, asKubernetes); err != nil {
		return nil, err
	}
	return &corev1.Node{
		ObjectMeta: read.Metadata.meta(),
		Spec:       corev1.NodeSpec{Taints: read.Spec.Taints, Unschedulable: read.Spec.Unschedulable, ProviderID: read.Spec.ProviderID},
		Status:     corev1.NodeStatus{Allocatable: read.Status.Allocatable, Capacity: read.Status.Capacity, Conditions: read.Status.Conditions},
	}, nil
}

func claimOf(text []byte) (*corev1.PersistentVolumeClaim, error) {
	var read struct {
		Metadata identity                         `json:"metadata"`
		Spec     corev1.PersistentVolumeClaimSpec `json:"spec"`
		Status   struct {
			Phase       corev1.PersistentVolumeClaimPhase   `json:"phase"`
			AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes"`
		} `json:"status"`
	}
	if err := json.Unmarshal(text, &read, asKubernetes); err != nil {
		return nil, err
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: read.Metadata.meta(), Spec: read.Spec,
		Status: corev1.PersistentVolumeClaimStatus{Phase: read.Status.Phase, AccessModes: read.Status.AccessModes}}
	if claim.Spec.VolumeName != "" { // what the scheduler takes for "bound" (the controller's annotation is not kept)
		claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	}
	return claim, nil
}

func volumeOf(text []byte) (*corev1.PersistentVolume, error) {
	var read struct {
		Metadata identity `json:"metadata"`
		Spec     struct {
			corev1.PersistentVolumeSource `json:",inline"`
			AccessModes                   []corev1.PersistentVolumeAccessMode `json:"accessModes"`
			ClaimRef                      *corev1.ObjectReference             `json:"claimRef"`
			NodeAffinity                  *corev1.VolumeNodeAffinity          `json:"nodeAffinity"`
			StorageClassName              string                              `json:"storageClassName"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(text, &read, asKubernetes); err != nil {
		return nil, err
	}
	spec := &read.Spec
	if spec.CSI != nil {
		spec.CSI.VolumeAttributes = nil
	}
	return &corev1.PersistentVolume{ObjectMeta: read.Metadata.meta(), Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: spec.PersistentVolumeSource, AccessModes: spec.AccessModes, ClaimRef: spec.ClaimRef,
		NodeAffinity: spec.NodeAffinity, StorageClassName: spec.StorageClassName,
	}}, nil
}

// sawTimeOf notes the latest time that an object names, as far as times go that somebody renews.
func (o *Objects) sawTimeOf(seen object) {
	o.sawTime(seen.GetCreationTimestamp().Time)
	node, isNode := seen.(*corev1.Node)
	if !isNode {
		return
	}
	for _, c := range node.Status.Conditions {
		o.sawTime(c.LastHeartbeatTime.Time)
	}
	if heartbeat, err := time.Parse(time.RFC3339, node.Annotations[v1.VirtHandlerHeartbeat]); err == nil {
		o.sawTime(heartbeat)
	}
}

func (o *Objects) sawTime(t time.Time) {
	if t.After(o.Now) {
		o.Now = t
	}
}

// Package virthandler is what virt-handler, virt-launcher and the guest report of a VMI, for whatever plays a node. Whether a
// VMI can migrate it reads from its devices, its network and its claims, as virt-handler does; how a guest ends the scenario
// says by an annotation.
package virthandler

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/controller"
	"kubevirt.io/kubevirt/pkg/network/vmispec"
	storagetypes "kubevirt.io/kubevirt/pkg/storage/types"
)

const (
	// NotMigratable on a VMI is the reason why it cannot migrate, where nothing that it has is one.
	NotMigratable = "rehearsal/not-migratable"
	// GuestCrashes on a VMI makes it fail, not succeed, when its launcher is taken down.
	GuestCrashes = "rehearsal/guest-crashes"
	// GPU is the device that the rehearsal's nodes offer.
	GPU = "nvidia.com/GA102GL_A10"
)

// Teardown is how long a launcher outlives its guest. It is not only for show: an outdated VMI that still seems to run
// when its launcher is gone makes the workload updater panic (pkg/virt-controller/watch/workload-updater/
// workload-updater.go:606-617 uses a pod that CurrentVMIPod did not find).
const Teardown = time.Second

// Started reports a domain that has been started.
func Started(vmi *v1.VirtualMachineInstance) {
	enter(vmi, v1.Running)
	vmi.Status.MigrationMethod = v1.LiveMigration
	vmi.Status.SelinuxContext = "none" // a node without SELinux; without any word of it KubeVirt migrates nothing
	condition := v1.VirtualMachineInstanceCondition{Type: v1.VirtualMachineInstanceIsMigratable, Status: corev1.ConditionTrue}
	if reason, message := cannotMigrate(vmi); reason != "" {
		condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, reason, message
	}
	controller.NewVirtualMachineInstanceConditionManager().UpdateCondition(vmi, &condition)
}

// cannotMigrate is why a VMI cannot migrate, if it cannot: the scenario says so, or virt-handler would, of its devices
// (pkg/virt-handler/vm.go:1310-1319), its network (1250-1253) and its claims that are not shared (1867-1883).
func cannotMigrate(vmi *v1.VirtualMachineInstance) (reason, message string) {
	if reason, ok := vmi.Annotations[NotMigratable]; ok {
		return reason, "said by the rehearsal's scenario"
	}
	devices := vmi.Spec.Domain.Devices
	if len(devices.GPUs)+len(devices.HostDevices) > 0 {
		return v1.VirtualMachineInstanceReasonHostDeviceNotMigratable, "VMI uses a PCI host device"
	}
	if err := vmispec.VerifyVMIMigratable(vmi, nil); err != nil {
		return v1.VirtualMachineInstanceReasonInterfaceNotMigratable, err.Error()
	}
	for _, volume := range vmi.Status.VolumeStatus {
		if claim := volume.PersistentVolumeClaimInfo; claim != nil && !storagetypes.HasSharedAccessMode(claim.AccessModes) {
			return v1.VirtualMachineInstanceReasonDisksNotMigratable, fmt.Sprintf("PVC %s is not shared", claim.ClaimName)
		}
	}
	return "", ""
}

// Migrating says whether a VMI has been handed to a migration's target that has not taken it yet.
func Migrating(vmi *v1.VirtualMachineInstance) bool {
	migration := vmi.Status.MigrationState
	return vmi.Status.Phase == v1.Running && vmi.DeletionTimestamp == nil &&
		migration != nil && migration.TargetNode != "" && !migration.Completed && !migration.Failed
}

// Migrated is what the two virt-handlers report when a domain has moved (pkg/virt-handler/migration-target.go:284-316,
// 1090-1130 for the CPU sockets).
func Migrated(vmi *v1.VirtualMachineInstance, now metav1.Time) {
	state := vmi.Status.MigrationState
	state.TargetNodeDomainDetected = true
	state.TargetNodeDomainReadyTimestamp = &now
	state.EndTimestamp = &now
	state.Completed = true
	vmi.Status.NodeName = state.TargetNode
	vmi.Labels[v1.NodeNameLabel] = state.TargetNode
	vmi.Status.EvacuationNodeName = ""
	vmi.Status.LauncherContainerImageVersion = ""
	delete(vmi.Labels, v1.OutdatedLauncherImageLabel)
	delete(vmi.Annotations, v1.EvictionSourceAnnotation)
	conditions := controller.NewVirtualMachineInstanceConditionManager()
	conditions.RemoveCondition(vmi, v1.VirtualMachineInstanceMigrationRequired)
	if conditions.HasCondition(vmi, v1.VirtualMachineInstanceVCPUChange) {
		conditions.RemoveCondition(vmi, v1.VirtualMachineInstanceVCPUChange)
		cpu := vmi.Spec.Domain.CPU
		vmi.Status.CurrentCPUTopology = &v1.CPUTopology{Sockets: cpu.Sockets, Cores: cpu.Cores, Threads: cpu.Threads}
	}
}

// Ended reports a guest whose launcher is taken down.
func Ended(vmi *v1.VirtualMachineInstance) {
	if _, crashes := vmi.Annotations[GuestCrashes]; crashes {
		enter(vmi, v1.Failed)
		return
	}
	enter(vmi, v1.Succeeded)
}

// enter dates the phase as virt-handler does (pkg/virt-handler/vm.go:1133). Without the date of Running KubeVirt takes a
// guest that ends for one that never started, and holds its next start back for 10 s and more (pkg/virt-controller/
// watch/vm/vm.go:1507-1519, 1575).
func enter(vmi *v1.VirtualMachineInstance, phase v1.VirtualMachineInstancePhase) {
	before := vmi.Status.DeepCopy()
	vmi.Status.Phase = phase
	controller.SetVMIPhaseTransitionTimestamp(before, &vmi.Status)
}

// VMIOf is the VMI that a launcher runs, if it still is among those of a store.
func VMIOf(launcher *corev1.Pod, vmis cache.Store) *v1.VirtualMachineInstance {
	if launcher.Labels[v1.AppLabel] != "virt-launcher" {
		return nil
	}
	object, exists, _ := vmis.GetByKey(launcher.Namespace + "/" + launcher.Annotations[v1.DomainAnnotation])
	if !exists {
		return nil
	}
	vmi := object.(*v1.VirtualMachineInstance)
	if string(vmi.UID) != launcher.Labels[v1.CreatedByLabel] {
		return nil
	}
	return vmi
}

// HasLeft says whether the VMI has left this launcher by a migration.
func HasLeft(vmi *v1.VirtualMachineInstance, launcher *corev1.Pod) bool {
	migration := vmi.Status.MigrationState
	return migration != nil && migration.Completed && !migration.Failed && migration.SourcePod == launcher.Name
}

// Which VMs a field of spec.configuration reaches. KubeVirt has no table of it: every row is read from its source, at the
// line that reads the field, and is not run. A test holds each line against the source and the rows against the type.
package main

import (
	"strings"

	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"
)

// reach is when a change of a field comes to a VM.
type reach string

const (
	running  reach = "running VMs, at once"
	created  reach = "only VMIs created from now on; a running VM after a restart"
	launched reach = "only launchers started from now on; a running VM after a restart or a migration"
	platform reach = "KubeVirt's own parts, no VM"
)

// row is what is known of a field: what it decides, and the line of KubeVirt's source that reads it.
type row struct {
	reach        reach
	what, source string
	reads        string // stands in that line
}

// rows is by path under spec.configuration; the longest path counts.
var rows = map[string]row{
	"additionalGuestMemoryOverheadRatio":                     {launched, "the launcher's memory request", "pkg/virt-controller/services/template.go:1685", "AdditionalGuestM"},
	"apiConfiguration":                                       {platform, "virt-api's rate limit", "pkg/virt-api/api.go:1291", "APIConfiguration"},
	"architectureConfiguration":                              {created, "machine type, firmware and default architecture", "pkg/defaults/defaults.go:215", "GetMachineType"},
	"autoCPULimitNamespaceLabelSelector":                     {launched, "the launcher's CPU limit", "pkg/virt-controller/services/template.go:1595", "AutoCPULimitNamespaceLabelSelector"},
	"changedBlockTrackingLabelSelectors":                     {running, "which VMs have changed block tracking; it asks some for a restart", "pkg/storage/cbt/cbt.go:83", "ChangedBlockTrackingLabelSelectors"},
	"commonInstancetypesDeployment":                          {platform, "whether the operator deploys its instance types", "pkg/virt-operator/resource/apply/reconcile.go:547", "commonInstancetypesDeploymentEnabled"},
	"confidentialCompute":                                    {created, "the socket for attestation", "pkg/virt-api/webhooks/mutating-webhook/mutators/vmi-mutator.go:77", "GetQGSSocketPath"},
	"controllerConfiguration":                                {platform, "virt-controller's rate limit", "pkg/virt-controller/watch/application.go:559", "ControllerConfiguration"},
	"cpuModel":                                               {created, "the CPU model of a VMI that names none", "pkg/defaults/defaults.go:318", "GetCPUModel"},
	"cpuRequest":                                             {created, "the CPU request of a VMI that names none", "pkg/defaults/defaults.go:272", "GetCPURequest"},
	"defaultRuntimeClass":                                    {launched, "the launcher's runtime class", "pkg/virt-controller/services/template.go:751", "GetDefaultRuntimeClass"},
	"developerConfiguration":                                 {launched, "several; the rows below it say more", "pkg/virt-controller/services/template.go:1648", "GetCPUAllocationRatio"},
	"developerConfiguration.clusterProfiler":                 {platform, "the profiler", "pkg/virt-api/rest/profiler.go:214", "ClusterProfilerEnabled"},
	"developerConfiguration.cpuAllocationRatio":              {launched, "the launcher's CPU request", "pkg/virt-controller/services/template.go:1648", "GetCPUAllocationRatio"},
	"developerConfiguration.diskVerification":                {launched, "memory for checking a disk", "pkg/virt-controller/services/template.go:471", "GetDiskVerification"},
	"developerConfiguration.featureGates":                    {running, "see the gates", "pkg/virt-config/feature-gates.go:31", "IsEnabled"},
	"developerConfiguration.disabledFeatureGates":            {running, "see the gates", "pkg/virt-config/feature-gates.go:31", "IsEnabled"},
	"developerConfiguration.logVerbosity":                    {platform, "logs of KubeVirt's parts; a launcher's from its start", "pkg/virt-controller/watch/application.go:567", "Verbosity"},
	"developerConfiguration.memoryOvercommit":                {launched, "the launcher's memory request", "pkg/virt-controller/services/template.go:1646", "GetMemoryOvercommit"},
	"developerConfiguration.minimumClusterTSCFrequency":      {created, "the TSC frequency that a VMI is scheduled for", "pkg/virt-controller/watch/topology/hinter.go:50", "GetMinimumClusterTSCFrequency"},
	"developerConfiguration.minimumReservePVCBytes":          {created, "space left free on a disk", "pkg/virt-handler/controller.go:285", "GetMinimumReservePVCBytes"},
	"developerConfiguration.nodeSelectors":                   {launched, "the launcher's node selector", "pkg/virt-controller/services/template.go:864", "GetNodeSelectors"},
	"developerConfiguration.pvcTolerateLessSpaceUpToPercent": {created, "how much smaller a disk may be", "pkg/virt-handler/controller.go:284", "GetLessPVCSpaceToleration"},
	"developerConfiguration.useEmulation":                    {launched, "software emulation", "pkg/virt-controller/services/template.go:501", "AllowEmulation"},
	"emulatedMachines":                                       {created, "the machine types that are accepted", "pkg/virt-api/webhooks/validating-webhook/admitters/vmi-create-admitter.go:1000", "GetEmulatedMachines"},
	"evictionStrategy":                                       {created, "what an eviction does; a VMI carries the strategy of its creation", "pkg/defaults/defaults.go:210", "EvictionStrategy"},
	"handlerConfiguration":                                   {platform, "virt-handler's rate limit", "cmd/virt-handler/virt-handler.go:617", "HandlerConfiguration"},
	"hypervisors":                                            {launched, "the launcher's hypervisor", "pkg/virt-controller/services/template.go:472", "GetHypervisor"},
	"imagePullPolicy":                                        {launched, "the pull policy of launchers", "pkg/virt-controller/services/template.go:963", "GetImagePullPolicy"},
	"instancetype":                                           {created, "how a VM refers to its instance type", "pkg/instancetype/controller/vm/controller.go:124", "GetInstancetypeReferencePolicy"},
	"ksmConfiguration":                                       {running, "memory merging on the nodes", "pkg/virt-handler/ksm/ksm.go:163", "GetKSMConfiguration"},
	"liveUpdateConfiguration":                                {created, "how far a VM can grow while it runs", "pkg/defaults/defaults.go:106", "GetMaxHotplugRatio"},
	"machineType":                                            {created, "the machine type of a VMI that names none", "pkg/defaults/defaults.go:215", "GetMachineType"},
	"mediatedDevicesConfiguration":                           {running, "the mediated devices that nodes offer", "pkg/virt-handler/device-manager/device_controller.go:366", "GetDesiredMDEVTypes"},
	"memBalloonStatsPeriod":                                  {launched, "how often memory statistics are taken", "pkg/virt-handler/vm.go:2125", "GetMemBalloonStatsPeriod"},
	"migrations":                                             {running, "migrations that start from now on: how many, how fast, over which network", "pkg/virt-controller/watch/migration/migration.go:1369", "GetMigrationConfiguration"},
	"minCPUModel":                                            {platform, "nothing: the field is deprecated, and the node labeller has its own", "pkg/virt-handler/node-labeller/util/util.go:23", "MinCPUModel"},
	"network":                                                {created, "the default interface and the bindings", "pkg/network/vmispec/defaults.go:43", "GetDefaultNetworkInterface"},
	"obsoleteCPUModels":                                      {launched, "labels of the nodes, so where a launcher may go", "pkg/virt-handler/node-labeller/node_labeller.go:244", "GetObsoleteCPUModels"},
	"ovmfPath":                                               {launched, "where the launcher finds its firmware", "pkg/virt-controller/services/template.go:441", "GetOVMFPath"},
	"permittedHostDevices":                                   {created, "the devices that nodes offer and launchers may ask for", "pkg/virt-handler/device-manager/device_controller.go:251", "GetPermittedHostDevices"},
	"persistentReservationConfiguration":                     {platform, "a helper beside virt-handler", "pkg/virt-operator/resource/generate/components/daemonsets.go:387", "PersistentReservationEnabled"},
	"roleAggregationStrategy":                                {platform, "KubeVirt's cluster roles", "pkg/virt-operator/util/config.go:221", "RoleAggregationStrategy"},
	"seccompConfiguration":                                   {launched, "the launcher's seccomp profile", "pkg/virt-controller/services/template.go:701", "SeccompConfiguration"},
	"selinuxLauncherType":                                    {launched, "the launcher's SELinux type", "pkg/virt-controller/services/template.go:748", "GetSELinuxLauncherType"},
	"smbios":                                                 {created, "what a guest reads of its hardware", "pkg/virt-handler/vm.go:2124", "GetSMBIOS"},
	"supportContainerResources":                              {launched, "resources of the containers beside the launcher's", "pkg/virt-controller/services/renderresources.go:618", "GetSupportContainerRequest"},
	"supportedGuestAgentVersions":                            {running, "whether a guest agent counts as supported", "pkg/virt-handler/vm.go:822", "GetSupportedAgentVersions"},
	"tlsConfiguration":                                       {platform, "TLS of KubeVirt's own servers", "pkg/util/tls/tls.go:272", "getTLSConfiguration"},
	"virtTemplateDeployment":                                 {platform, "whether the operator deploys virt-template", "pkg/virt-operator/resource/apply/reconcile.go:632", "virtTemplateDeploymentEnabled"},
	"virtualMachineInstancesPerNode":                         {platform, "virt-handler's argument, so virt-handler restarts", "pkg/virt-operator/resource/apply/apps.go:443", "VirtualMachineInstancesPerNode"},
	"virtualMachineOptions":                                  {launched, "free page reporting and the serial console's log", "pkg/virt-controller/services/serialconsolelog.go:63", "IsSerialConsoleLogDisabled"},
	"vmRolloutStrategy":                                      {running, "whether an edit of a VM reaches it while it runs", "pkg/virt-controller/watch/vm/vm.go:3018", "IsVMRolloutStrategyLiveUpdate"},
	"vmStateStorageClass":                                    {created, "the storage class of a VM's state", "pkg/storage/backend-storage/backend-storage.go:413", "GetVMStateStorageClass"},
	"webhookConfiguration":                                   {platform, "the webhooks' rate limit", "pkg/virt-api/api.go:1295", "WebhookConfiguration"},
}

// field is a change of the effective configuration.
type field struct {
	change
	Reach  reach  `json:"reach"`
	What   string `json:"what"`
	Source string `json:"source"`
}

// rowOf returns the row of the longest known path.
func rowOf(path string) (row, bool) {
	path, _, _ = strings.Cut(path, "[")
	for {
		if r, known := rows[path]; known {
			return r, true
		}
		i := strings.LastIndex(path, ".")
		if i < 0 {
			return row{}, false
		}
		path = path[:i]
	}
}

// changedFields compares what KubeVirt works with, defaults filled in.
func changedFields(before, after *virtconfig.ClusterConfig) ([]field, error) {
	changes, err := differences(before.GetConfig(), after.GetConfig())
	if err != nil {
		return nil, err
	}
	var fields []field
	for _, c := range changes {
		r, known := rowOf(c.Path)
		if !known {
			r = row{reach: "not known", what: "no row for it", source: "none"}
		}
		fields = append(fields, field{c, r.reach, r.what, r.source})
	}
	return fields, nil
}

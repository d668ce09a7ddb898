// Package launcher is the pods that KubeVirt would create: a migration's target, and the launcher of a VM's next VMI. Both
// start from the VMI's launcher, which has all that KubeVirt and the cluster's own webhooks gave it, and differ from it by
// what KubeVirt adds (pkg/virt-controller/watch/migration/migration.go:938-1045,
// pkg/virt-controller/services/template.go:745-860). tests/kubevirt/contract compares them with those that KubeVirt's own
// code makes.
package launcher

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
)

// Leaver is a pod that a drain makes somebody create, on another node.
type Leaver struct {
	Pod *corev1.Pod
	// AtMost is the same pod if it needs as much as it may; nil if Pod is exact.
	AtMost *corev1.Pod
	// Unknown says why the pod is not known.
	Unknown string
	// Old is the pod that leaves.
	Old *corev1.Pod
	// Waits says that the drain waits if there is no place for it.
	Waits bool
}

// Rules is what the KubeVirt CR says of the pods.
type Rules struct {
	NodeSelectors map[string]string
	CPUModel      string // of VMs that name none
}

// NewRules reads a KubeVirt CR.
func NewRules(cr *v1.KubeVirt) Rules {
	r := Rules{CPUModel: cr.Spec.Configuration.CPUModel}
	if developer := cr.Spec.Configuration.DeveloperConfiguration; developer != nil {
		r.NodeSelectors = developer.NodeSelectors
	}
	return r
}

// MigrationTarget is the pod to which a VMI would migrate. Its node is where it runs now.
func (r Rules) MigrationTarget(vmi *v1.VirtualMachineInstance, launcher *corev1.Pod, node *corev1.Node) Leaver {
	if launcher == nil {
		return Leaver{Unknown: "it has no launcher to go by"}
	}
	l := Leaver{Old: launcher, Waits: true, Pod: fresh(launcher)}
	if uid := string(vmi.UID); uid != "" {
		l.Pod.Labels[v1.CreatedByLabel] = uid
		addOwnTerm(&l.Pod.Spec, uid)
	}
	selector := l.Pod.Spec.NodeSelector
	r.fromSpec(selector, &vmi.Spec)
	if vmi.Status.Machine != nil && vmi.Status.Machine.Type != "" {
		setMachine(selector, vmi.Status.Machine.Type)
	}
	fromVMI(&l.Pod.Spec, &vmi.Spec)
	addClaims(l.Pod, vmi.Spec.Volumes)
	if node == nil {
		l.Pod, l.Unknown = nil, "its node, whose CPU the target has to have, is not known"
		return l
	}
	if cpu := vmi.Spec.Domain.CPU; cpu != nil && cpu.Model == v1.CPUModeHostModel {
		addHostModel(selector, launcher.Spec.NodeSelector, node)
	}
	if !hasPrefix(selector, v1.CPUModelVendorLabel) {
		for label := range node.Labels {
			if strings.HasPrefix(label, v1.CPUModelVendorLabel) {
				selector[label] = "true"
			}
		}
	}
	for _, condition := range vmi.Status.Conditions {
		if (condition.Type == v1.VirtualMachineInstanceVCPUChange || condition.Type == v1.VirtualMachineInstanceMemoryChange) &&
			condition.Status == corev1.ConditionTrue {
			l.Unknown = "its CPU or memory was changed, and how much the migration's target needs is not known"
		}
	}
	return l
}

// NextLauncher is the pod of the VM's next VMI. Without a VM it is as the one that leaves.
func (r Rules) NextLauncher(vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance, launcher *corev1.Pod) Leaver {
	if launcher == nil {
		return Leaver{Unknown: "it has no launcher to go by"}
	}
	l := Leaver{Old: launcher, Pod: fresh(launcher)}
	next := r.nextSpec(vm, vmi)
	selector := l.Pod.Spec.NodeSelector
	for key := range selector {
		if launcher.Labels[v1.MigrationJobLabel] != "" && fromMigration(key) {
			delete(selector, key)
		}
	}
	if machine := vmi.Status.Machine; machine != nil && machine.Type != "" {
		setMachine(selector, "")
	}
	now := map[string]string{}
	r.fromSpec(now, &vmi.Spec)
	fromHardware(now, &vmi.Spec)
	for key := range now {
		delete(selector, key)
	}
	r.fromSpec(selector, next)
	fromHardware(selector, next)

	dropFrom(&l.Pod.Spec, &vmi.Spec)
	l.Pod.Spec.Affinity = nextAffinity(launcher, &vmi.Spec, next)
	fromVMI(&l.Pod.Spec, next)
	dropClaims(l.Pod, vmi.Spec.Volumes)
	addClaims(l.Pod, next.Volumes)
	if name := nextInstancetype(vm, vmi); name != "" {
		l.Pod, l.Unknown = nil, fmt.Sprintf("its next instance type, %s, is not read", name)
		return l
	}
	l.resize(&vmi.Spec, next)
	return l
}

// nextSpec is the spec of a VM's next VMI, as far as a scheduler looks at it, with what virt-api's webhook fills in
// (pkg/defaults/defaults.go). What an instance type or a preference gave the VMI that runs, they give the next.
func (r Rules) nextSpec(vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance) *v1.VirtualMachineInstanceSpec {
	if vm == nil || vm.Spec.Template == nil {
		return &vmi.Spec
	}
	next, now := vm.Spec.Template.Spec.DeepCopy(), &vmi.Spec
	given := vm.Spec.Instancetype != nil || vm.Spec.Preference != nil
	if given && next.NodeSelector == nil {
		next.NodeSelector = now.NodeSelector
	}
	if given && next.SchedulerName == "" {
		next.SchedulerName = now.SchedulerName
	}
	if next.Architecture == "" {
		next.Architecture = now.Architecture
	}
	if next.Domain.Machine == nil || next.Domain.Machine.Type == "" {
		next.Domain.Machine = now.Domain.Machine
	}
	if vm.Spec.Instancetype != nil { // which leaves none of these to the VM
		next.Domain.CPU, next.Domain.Memory, next.Domain.Resources = now.Domain.CPU, now.Domain.Memory, now.Domain.Resources
		return next
	}
	if next.Domain.CPU == nil {
		next.Domain.CPU = &v1.CPU{}
	}
	cpu := next.Domain.CPU
	switch {
	case cpu.Model != "":
	case vm.Spec.Preference != nil && now.Domain.CPU != nil:
		cpu.Model = now.Domain.CPU.Model
	case r.CPUModel != "":
		cpu.Model = r.CPUModel
	case next.Architecture == "arm64":
		cpu.Model = v1.CPUModeHostPassthrough
	default:
		cpu.Model = v1.CPUModeHostModel
	}
	if features := next.Domain.Features; features != nil && features.Hyperv != nil && features.Hyperv.EVMCS != nil { // pkg/defaults/hyperv.go
		cpu.Features = append(cpu.Features, v1.CPUFeature{Name: "vmx", Policy: "require"})
	}
	return next
}

// fromMigration says whether a migration gave its target a selector.
func fromMigration(key string) bool {
	return strings.HasPrefix(key, v1.SupportedHostModelMigrationCPU) || strings.HasPrefix(key, v1.CPUFeatureLabel) ||
		strings.HasPrefix(key, v1.CPUModelVendorLabel)
}

// fromHardware is what a launcher selects for its VMI's CPU and machine (nodeselectorrenderer.go:52-73, template.go:786-796).
func fromHardware(selector map[string]string, spec *v1.VirtualMachineInstanceSpec) {
	if machine := spec.Domain.Machine; machine != nil && machine.Type != "" {
		setMachine(selector, machine.Type)
	}
	cpu := spec.Domain.CPU
	if cpu == nil || cpu.Model == "" {
		return
	}
	if cpu.Model != v1.CPUModeHostModel && cpu.Model != v1.CPUModeHostPassthrough {
		selector[v1.CPUModelLabel+cpu.Model] = "true"
	}
	for _, feature := range cpu.Features {
		if feature.Policy == "" || feature.Policy == "require" {
			selector[v1.CPUFeatureLabel+feature.Name] = "true"
		}
	}
}

// nextAffinity is a launcher's without what came from its VMI's owner, and with what KubeVirt adds to the next
// (services/template.go:195-260).
func nextAffinity(launcher *corev1.Pod, now, next *v1.VirtualMachineInstanceSpec) *corev1.Affinity {
	affinity := &corev1.Affinity{}
	if rest, _ := WithoutOwnTerm(launcher); now.Affinity == nil && rest.Spec.Affinity != nil {
		affinity = rest.Spec.Affinity.DeepCopy()
		dropKubeVirtsTerms(affinity)
	}
	none := func(label string) {
		addNodeTerm(affinity, corev1.NodeSelectorRequirement{Key: label, Operator: corev1.NodeSelectorOpDoesNotExist})
	}
	cpu := next.Domain.CPU
	if cpu == nil || cpu.Model == "" || cpu.Model == v1.CPUModeHostModel {
		none(v1.NodeHostModelIsObsoleteLabel)
	}
	if cpu != nil {
		for _, feature := range cpu.Features {
			if feature.Policy == "forbid" {
				none(v1.CPUFeatureLabel + feature.Name)
			}
		}
	}
	return affinity
}

// fresh is a launcher as it was before a scheduler saw it.
func fresh(launcher *corev1.Pod) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: launcher.Namespace, Name: launcher.Name, Labels: maps.Clone(launcher.Labels), Annotations: launcher.Annotations,
		OwnerReferences: launcher.OwnerReferences,
	}, Spec: launcher.Spec}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Spec.NodeName = ""
	pod.Spec.NodeSelector = maps.Clone(launcher.Spec.NodeSelector)
	if pod.Spec.NodeSelector == nil {
		pod.Spec.NodeSelector = map[string]string{}
	}
	pod.Spec.Volumes = slices.Clone(launcher.Spec.Volumes)
	return pod
}

// fromSpec is what every launcher selects (pkg/virt-controller/services/nodeselectorrenderer.go:35-73).
func (r Rules) fromSpec(selector map[string]string, spec *v1.VirtualMachineInstanceSpec) {
	selector[v1.NodeSchedulable] = "true"
	if spec.Architecture != "" {
		selector[corev1.LabelArchStable] = strings.ToLower(spec.Architecture)
	}
	maps.Copy(selector, r.NodeSelectors)
	maps.Copy(selector, spec.NodeSelector)
	if cpu := spec.Domain.CPU; cpu != nil && cpu.DedicatedCPUPlacement {
		selector[v1.CPUManager] = "true"
	}
}

// fromVMI takes over what a VMI's owner may have changed since its launcher was made.
func fromVMI(pod *corev1.PodSpec, spec *v1.VirtualMachineInstanceSpec) {
	for _, toleration := range spec.Tolerations {
		if !slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool { return t.MatchToleration(&toleration) }) {
			pod.Tolerations = append(slices.Clone(pod.Tolerations), toleration)
		}
	}
	if len(spec.TopologySpreadConstraints) > 0 {
		pod.TopologySpreadConstraints = spec.TopologySpreadConstraints
	}
	if spec.SchedulerName != "" {
		pod.SchedulerName = spec.SchedulerName
	}
	if spec.Affinity == nil {
		return
	}
	kept := pod.Affinity
	pod.Affinity = spec.Affinity.DeepCopy()
	for _, term := range kubeVirtsTerms(kept) {
		addNodeTerm(pod.Affinity, term)
	}
	if kept != nil && kept.PodAntiAffinity != nil {
		for _, term := range kept.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if uid := ownTerm(term); uid != "" {
				addOwnTerm(pod, uid)
			}
		}
	}
}

// dropFrom takes away what came from a VMI and may not be in the next.
func dropFrom(pod *corev1.PodSpec, spec *v1.VirtualMachineInstanceSpec) {
	pod.Tolerations = slices.DeleteFunc(slices.Clone(pod.Tolerations), func(t corev1.Toleration) bool {
		return slices.ContainsFunc(spec.Tolerations, func(own corev1.Toleration) bool { return own.MatchToleration(&t) })
	})
	if len(spec.TopologySpreadConstraints) > 0 {
		pod.TopologySpreadConstraints = nil
	}
	if spec.SchedulerName != "" {
		pod.SchedulerName = ""
	}
}

// kubeVirtsTerms are the requirements that KubeVirt adds to a launcher's node affinity (services/template.go:228-260).
func kubeVirtsTerms(affinity *corev1.Affinity) (terms []corev1.NodeSelectorRequirement) {
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, requirement := range term.MatchExpressions {
			if isKubeVirts(requirement) &&
				!slices.ContainsFunc(terms, func(known corev1.NodeSelectorRequirement) bool { return known.Key == requirement.Key }) {
				terms = append(terms, requirement)
			}
		}
	}
	return terms
}

func isKubeVirts(requirement corev1.NodeSelectorRequirement) bool {
	return requirement.Operator == corev1.NodeSelectorOpDoesNotExist && strings.Contains(requirement.Key, "kubevirt.io/")
}

// dropKubeVirtsTerms takes them away. A term without a requirement would match no node.
func dropKubeVirtsTerms(affinity *corev1.Affinity) {
	if affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return
	}
	required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	for i := range required.NodeSelectorTerms {
		required.NodeSelectorTerms[i].MatchExpressions = slices.DeleteFunc(required.NodeSelectorTerms[i].MatchExpressions, isKubeVirts)
	}
	required.NodeSelectorTerms = slices.DeleteFunc(required.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return len(term.MatchExpressions)+len(term.MatchFields) == 0
	})
	if len(required.NodeSelectorTerms) == 0 {
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
		if len(affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
			affinity.NodeAffinity = nil
		}
	}
}

// addNodeTerm adds a requirement to every term, as KubeVirt does.
func addNodeTerm(affinity *corev1.Affinity, requirement corev1.NodeSelectorRequirement) {
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required
	}
	for i := range required.NodeSelectorTerms {
		required.NodeSelectorTerms[i].MatchExpressions = append(required.NodeSelectorTerms[i].MatchExpressions, requirement)
	}
}

// addOwnTerm keeps a migration's target from nodes with pods of the same VMI (migration.go:889-910).
func addOwnTerm(pod *corev1.PodSpec, uid string) {
	dropOwnTerm(pod)
	affinity := pod.Affinity.DeepCopy()
	if affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if affinity.PodAntiAffinity == nil {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(
		affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1.CreatedByLabel: uid}}, TopologyKey: corev1.LabelHostname,
		})
	pod.Affinity = affinity
}

func dropOwnTerm(pod *corev1.PodSpec) {
	rest, _ := WithoutOwnTerm(&corev1.Pod{Spec: *pod})
	pod.Affinity = rest.Spec.Affinity
}

// WithoutOwnTerm takes the anti-affinity to a VMI's own pods out (pkg/virt-controller/watch/migration/migration.go:889-910),
// and says of which VMI.
func WithoutOwnTerm(pod *corev1.Pod) (rest *corev1.Pod, uid string) {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.PodAntiAffinity == nil {
		return pod, ""
	}
	var others []corev1.PodAffinityTerm
	for _, term := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if found := ownTerm(term); found != "" {
			uid = found
		} else {
			others = append(others, term)
		}
	}
	if uid == "" {
		return pod, ""
	}
	rest = &corev1.Pod{}
	*rest = *pod
	rest.Spec.Affinity = &corev1.Affinity{NodeAffinity: affinity.NodeAffinity, PodAffinity: affinity.PodAffinity}
	if len(others) > 0 {
		rest.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: others}
	}
	return rest, uid
}

func ownTerm(term corev1.PodAffinityTerm) string {
	if term.TopologyKey != corev1.LabelHostname || term.LabelSelector == nil || len(term.LabelSelector.MatchLabels) != 1 ||
		len(term.LabelSelector.MatchExpressions)+len(term.Namespaces) > 0 || term.NamespaceSelector != nil {
		return ""
	}
	return term.LabelSelector.MatchLabels[v1.CreatedByLabel]
}

func setMachine(selector map[string]string, machine string) {
	for key := range selector {
		if strings.HasPrefix(key, v1.SupportedMachineTypeLabel) {
			delete(selector, key)
		}
	}
	if machine != "" {
		selector[v1.SupportedMachineTypeLabel+machine] = "true"
	}
}

// addHostModel selects the CPU of the node that a VMI was started on (migration.go:2528-2578). Of a node whose label with
// the model is missing it selects nothing, features neither: there KubeVirt drops the error that it meant to return, as
// migration.go:972-980 declares it twice.
func addHostModel(selector, source map[string]string, node *corev1.Node) {
	before := false
	for key, value := range source {
		if strings.Contains(key, v1.CPUFeatureLabel) || strings.Contains(key, v1.SupportedHostModelMigrationCPU) {
			selector[key], before = value, true
		}
	}
	if before || !hasPrefix(node.Labels, v1.HostModelCPULabel) {
		return
	}
	for key, value := range node.Labels {
		if model, is := strings.CutPrefix(key, v1.HostModelCPULabel); is {
			selector[v1.SupportedHostModelMigrationCPU+model] = value
		}
		if feature, is := strings.CutPrefix(key, v1.HostModelRequiredFeaturesLabel); is {
			selector[v1.CPUFeatureLabel+feature] = value
		}
	}
}

func hasPrefix(selector map[string]string, prefix string) bool {
	for key := range selector {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// claimOf is the claim that a volume uses, or "". A DataVolume's claim has its name.
func claimOf(volume v1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.DataVolume != nil:
		return volume.DataVolume.Name
	case volume.Ephemeral != nil && volume.Ephemeral.PersistentVolumeClaim != nil:
		return volume.Ephemeral.PersistentVolumeClaim.ClaimName
	}
	return ""
}

// addClaims adds the claims of volumes that the launcher does not have itself: a hotplugged volume has a pod of its own,
// which has to run beside it.
func addClaims(pod *corev1.Pod, volumes []v1.Volume) {
	for _, volume := range volumes {
		claim := claimOf(volume)
		if claim == "" || slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return usesClaim(v, claim) }) {
			continue
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
}

func dropClaims(pod *corev1.Pod, volumes []v1.Volume) {
	for _, volume := range volumes {
		if claim := claimOf(volume); claim != "" {
			pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return usesClaim(v, claim) })
		}
	}
}

func usesClaim(v corev1.Volume, claim string) bool {
	return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
}

// nextInstancetype is the instance type of the VM's next VMI, where it is not the one that runs.
func nextInstancetype(vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance) string {
	if vm == nil || vm.Spec.Instancetype == nil || vm.Spec.Instancetype.Name == "" {
		return ""
	}
	name := vm.Spec.Instancetype.Name
	for _, annotation := range []string{v1.InstancetypeAnnotation, v1.ClusterInstancetypeAnnotation} {
		if now := vmi.Annotations[annotation]; now != "" && now != name {
			return name
		}
	}
	return ""
}

// resize asks for as much more or less as the next VMI has. What KubeVirt adds for itself grows with it, by no more than a
// two-hundred-fiftieth of the memory and 16Mi a CPU (pkg/virt-controller/services/renderresources.go). How much of a CPU is
// asked for follows the CR's cpuAllocationRatio, unless the CPUs are dedicated.
func (l *Leaver) resize(now, next *v1.VirtualMachineInstanceSpec) {
	memory, cpus := memoryOf(next)-memoryOf(now), cpusOf(next)-cpusOf(now)
	asked, asks := now.Domain.Resources.Requests[corev1.ResourceCPU], next.Domain.Resources.Requests[corev1.ResourceCPU]
	if memoryOf(next) == 0 || memoryOf(now) == 0 || memory == 0 && cpus == 0 && asked.Cmp(asks) == 0 {
		return
	}
	compute := slices.IndexFunc(l.Pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == "compute" })
	if compute < 0 || pagesOf(now) != pagesOf(next) {
		l.Pod, l.Unknown = nil, "its next launcher is of another size, which is not known"
		return
	}
	spare := max(memory, -memory)/250 + 16<<20*max(cpus, -cpus) + 16<<20
	least, most := corev1.ResourceList{}, corev1.ResourceList{}
	grow := func(name corev1.ResourceName, from, to int64) {
		has := l.Pod.Spec.Containers[compute].Resources.Requests[name]
		least[name], most[name] = *resource.NewQuantity(max(0, has.Value()+from), resource.BinarySI), *resource.NewQuantity(max(0, has.Value()+to), resource.BinarySI)
	}
	if pages := pagesOf(next); pages != "" {
		grow(corev1.ResourceName(corev1.ResourceHugePagesPrefix+pages), memory, memory)
		memory = 0
	}
	grow(corev1.ResourceMemory, memory-spare, memory+spare)
	has := l.Pod.Spec.Containers[compute].Resources.Requests.Cpu().MilliValue()
	switch {
	case !asks.IsZero():
		least[corev1.ResourceCPU], most[corev1.ResourceCPU] = asks, asks
	case !asked.IsZero():
		most[corev1.ResourceCPU] = *resource.NewMilliQuantity(1000*cpusOf(next), resource.DecimalSI)
	default:
		least[corev1.ResourceCPU] = *resource.NewMilliQuantity(max(0, has+1000*min(cpus, 0)), resource.DecimalSI)
		most[corev1.ResourceCPU] = *resource.NewMilliQuantity(has+1000*max(cpus, 0), resource.DecimalSI)
	}
	larger := *l.Pod
	larger.Spec.Containers = asking(larger.Spec.Containers, compute, most)
	l.Pod.Spec.Containers = asking(l.Pod.Spec.Containers, compute, least)
	l.AtMost = &larger
}

// asking are the containers, of which one asks for something else.
func asking(containers []corev1.Container, at int, requests corev1.ResourceList) []corev1.Container {
	containers = slices.Clone(containers)
	kept := maps.Clone(containers[at].Resources.Requests)
	if kept == nil {
		kept = corev1.ResourceList{}
	}
	maps.Copy(kept, requests)
	containers[at].Resources.Requests = kept
	return containers
}

// pagesOf is the size of a VMI's huge pages, or "".
func pagesOf(spec *v1.VirtualMachineInstanceSpec) string {
	if spec.Domain.Memory == nil || spec.Domain.Memory.Hugepages == nil {
		return ""
	}
	return spec.Domain.Memory.Hugepages.PageSize
}

func memoryOf(spec *v1.VirtualMachineInstanceSpec) int64 {
	if request, asked := spec.Domain.Resources.Requests[corev1.ResourceMemory]; asked {
		return request.Value()
	}
	if spec.Domain.Memory != nil && spec.Domain.Memory.Guest != nil {
		return spec.Domain.Memory.Guest.Value()
	}
	return 0
}

func cpusOf(spec *v1.VirtualMachineInstanceSpec) int64 {
	cpu := spec.Domain.CPU
	if cpu == nil {
		return 1
	}
	return int64(max(cpu.Cores, 1)) * int64(max(cpu.Sockets, 1)) * int64(max(cpu.Threads, 1))
}

package rehearsal

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
	v1 "kubevirt.io/api/core/v1"
)

// This file is VMs that could migrate, and that no other node takes: one for each rule of the scheduler. The preview names the
// rule; Kubernetes' own scheduler then leaves the migration's target pending, and the drain waits.

const (
	everyRule = 20 // migrations at once: one for each rule
	scarce    = "avx512-fp16"
	csiDriver = "disks.example.org"
)

// rule is why no other node takes a VM.
type rule struct {
	change func(d *day, name string, vmi *v1.VirtualMachineInstanceTemplateSpec)
	why    string // a part of what the preview says
}

// rules are those of the scheduler's plugins that a launcher can meet, and the selectors that KubeVirt gives it.
var rules = map[string]rule{
	"selector": {func(_ *day, _ string, vmi *v1.VirtualMachineInstanceTemplateSpec) {
		vmi.Spec.NodeSelector = map[string]string{"rehearsal": "here"}
	}, "lack rehearsal=here"},
	"cpu-model": {func(_ *day, _ string, vmi *v1.VirtualMachineInstanceTemplateSpec) {
		vmi.Spec.Domain.CPU.Model = "Cascadelake-Server"
	},
		"lack " + v1.CPUModelLabel + "Cascadelake-Server"},
	"cpu-feature": {func(_ *day, _ string, vmi *v1.VirtualMachineInstanceTemplateSpec) {
		vmi.Spec.Domain.CPU.Features = []v1.CPUFeature{{Name: scarce, Policy: "require"}}
	}, "lack " + v1.CPUFeatureLabel + scarce},
	"host-model": {func(_ *day, _ string, vmi *v1.VirtualMachineInstanceTemplateSpec) {
		vmi.Spec.Domain.CPU.Model = v1.CPUModeHostModel
	},
		"lack " + v1.CPUFeatureLabel + scarce},
	"taint": {func(_ *day, _ string, vmi *v1.VirtualMachineInstanceTemplateSpec) { vmi.Spec.Tolerations = nil },
		"have the taint rehearsal"},
	"memory": {func(_ *day, _ string, vmi *v1.VirtualMachineInstanceTemplateSpec) {
		vmi.Spec.Domain.Memory.Guest = quantity("200Gi")
	}, "memory it needs"},
	"anti-affinity": {func(_ *day, _ string, vmi *v1.VirtualMachineInstanceTemplateSpec) {
		vmi.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: labelled("avoid")}},
		}}
	}, "pod affinity"},
	"spread": {func(_ *day, _ string, vmi *v1.VirtualMachineInstanceTemplateSpec) {
		vmi.ObjectMeta.Labels = labelled("spread").MatchLabels
		vmi.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: labelled("spread"),
		}}
	}, "topology spread"},
	"volume-node": {func(d *day, name string, vmi *v1.VirtualMachineInstanceTemplateSpec) {
		d.sharedDisk(name, vmi, func(volume *corev1.PersistentVolume) {
			volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "rehearsal", Operator: corev1.NodeSelectorOpIn, Values: []string{"here"}}},
			}}}}
		})
	}, "cannot reach volume"},
	"volume-zone": {func(d *day, name string, vmi *v1.VirtualMachineInstanceTemplateSpec) {
		d.sharedDisk(name, vmi, func(volume *corev1.PersistentVolume) {
			volume.Labels = map[string]string{corev1.LabelTopologyZone: "zone-a"}
		})
	}, "another zone"},
	"attach-limit": {func(d *day, name string, vmi *v1.VirtualMachineInstanceTemplateSpec) {
		d.sharedDisk(name, vmi, func(volume *corev1.PersistentVolume) {
			volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: csiDriver, VolumeHandle: name}}
		})
	}, "as many volumes"},
}

// labelled selects what is put on the other nodes for a rule.
func labelled(rule string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{rule: "rehearsal"}}
}

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

func TestNoOtherNodeTakesAVM(t *testing.T) {
	d := startDayAt(t, kubeVirtVersion())
	require.NoError(t, editCR(t.Context(), d.cluster, fmt.Sprintf(`{"spec": {"configuration": {"migrations": {
		"parallelMigrationsPerCluster": %[1]d, "parallelOutboundMigrationsPerNode": %[1]d}}}}`, everyRule)))

	node, others := dayNodes[0], dayNodes[1:]
	d.label(node, map[string]string{
		"rehearsal": "here", corev1.LabelTopologyZone: "zone-a", v1.CPUModelLabel + "Cascadelake-Server": "true",
		v1.CPUFeatureLabel + scarce: "true", v1.HostModelRequiredFeaturesLabel + scarce: "true",
	})
	for _, other := range others {
		d.cordon(other, true)
		d.label(other, map[string]string{corev1.LabelTopologyZone: "zone-b"})
	}
	var all sync.WaitGroup
	var machines []machine
	for name, rule := range rules {
		machines = append(machines, machine{name: name})
		all.Go(func() { d.createUnder(name, rule) })
	}
	goes := migratable("goes-anywhere")
	all.Go(func() {
		d.createUnder(goes.name, rule{change: func(*day, string, *v1.VirtualMachineInstanceTemplateSpec) {}})
	})
	all.Wait()
	d.running(append(machines, goes)...)
	for _, other := range others {
		d.crowd(other)
		d.cordon(other, false)
	}
	before := d.vmis()

	previewed := d.preview(node)
	for _, vm := range previewed.VMs {
		if vm.Name != goes.name {
			assert.Equal(t, verdict.Blocks, vm.Drain.Outcome, "%s: %s", vm.Name, vm.Drain.Why)
			assert.Contains(t, vm.Drain.Why, rules[vm.Name].why, vm.Name)
		}
	}
	require.Len(t, previewed.VMs, len(rules)+1)
	drain := d.drain(node, holdTimeout)
	assert.Regexp(t, drainWaits, drain.err)
	fates := map[string]fate{goes.name: migrated}
	for name := range rules {
		fates[name] = stays
		d.eventually("the scheduler finds no node for "+name, func() string { return d.noTarget(name) })
	}
	d.become(before, fates)
	d.verdict = fmt.Sprintf("%d VMs that no other node takes, each by another rule of the scheduler: the preview names the rule, "+
		"their migrations wait for a node, and so does the drain", len(rules))
}

// createUnder makes a VM that its rule keeps to its node, and that every other rule lets go.
func (d *day) createUnder(name string, rule rule) {
	always, no := v1.RunStrategyAlways, false
	template := &v1.VirtualMachineInstanceTemplateSpec{Spec: v1.VirtualMachineInstanceSpec{
		Domain: v1.DomainSpec{
			CPU:     &v1.CPU{Sockets: 1, Cores: 1, Threads: 1, Model: "Haswell"},
			Memory:  &v1.Memory{Guest: quantity("64Mi")},
			Devices: v1.Devices{AutoattachPodInterface: &no},
		},
		Tolerations: []corev1.Toleration{{Key: "rehearsal", Operator: corev1.TolerationOpExists}},
	}}
	rule.change(d, name, template)
	_, err := d.virt.VirtualMachine(d.namespace).Create(d.Context(), &v1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.VirtualMachineSpec{RunStrategy: &always, Template: template},
	}, metav1.CreateOptions{})
	assert.NoError(d, err, name)
}

// sharedDisk gives a VM a disk that both launchers of a migration may use.
func (d *day) sharedDisk(name string, vmi *v1.VirtualMachineInstanceTemplateSpec, change func(*corev1.PersistentVolume)) {
	disk, volume := d.claim(machine{name: name, shared: true, volume: change}, false)
	vmi.Spec.Domain.Devices.Disks, vmi.Spec.Volumes = []v1.Disk{disk}, []v1.Volume{volume}
}

// crowd puts everything on a node that keeps the VMs away which a rule is about.
func (d *day) crowd(node string) {
	ctx := d.Context()
	_, err := d.kube.StorageV1().CSINodes().Create(ctx, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: csiDriver, NodeID: node, Allocatable: &storagev1.VolumeNodeResources{Count: new(int32)}}}},
	}, metav1.CreateOptions{})
	require.NoError(d, err)
	for i := range 2 { // one more than the skew of a topology spread
		_, err = d.kube.CoreV1().Pods(d.namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("crowd-%s-%d", node, i), Labels: map[string]string{"avoid": "rehearsal", "spread": "rehearsal"}},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
				Name: "pause", Image: "pause", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: *quantity("50Gi")}},
			}}},
		}, metav1.CreateOptions{})
		require.NoError(d, err)
	}
	patch := `{"spec": {"taints": [{"key": "rehearsal", "effect": "NoSchedule"}]}}`
	_, err = d.kube.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(d, err)
}

func (d *day) label(node string, labels map[string]string) {
	var parts []string
	for key, value := range labels {
		parts = append(parts, fmt.Sprintf("%q: %q", key, value))
	}
	slices.Sort(parts)
	patch := fmt.Sprintf(`{"metadata": {"labels": {%s}}}`, strings.Join(parts, ", "))
	_, err := d.kube.CoreV1().Nodes().Patch(d.Context(), node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(d, err)
}

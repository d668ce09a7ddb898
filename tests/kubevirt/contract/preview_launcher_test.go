// The pods that kubectl drain-preview asks Kubernetes' scheduler about, compared with those that KubeVirt makes: a
// migration's target by the migration controller, the next VMI's launcher by the template service.
package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	resourcehelper "k8s.io/component-helpers/resource"
	v1 "kubevirt.io/api/core/v1"

	"kubevirt.io/kubevirt/pkg/controller"
	netannotations "kubevirt.io/kubevirt/pkg/network/pod/annotations"
	storageannotations "kubevirt.io/kubevirt/pkg/storage/pod/annotations"
	"kubevirt.io/kubevirt/pkg/virt-controller/services"
	"kubevirt.io/kubevirt/pkg/virt-controller/watch/migration"

	"cozy-kubevirt/cmd/kubectl-drain_preview/launcher"
	"cozy-kubevirt/tests/kubevirt/internal/chart"
)

// placed is a VMI that runs on a node, under a CR, and KubeVirt's code that makes launchers.
type placed struct {
	t         *testing.T
	cr        *v1.KubeVirt
	vmi       *v1.VirtualMachineInstance
	node      *k8sv1.Node
	templates *services.TemplateService
	client    *client
	claims    *informer
}

func newPlaced(t *testing.T) *placed {
	p := &placed{t: t, cr: rendered(t).DeepCopy(), vmi: newVMI(ifPossible), client: newClient(), claims: newInformer()}
	guest := resource.MustParse("2Gi")
	p.vmi.Spec.Architecture = "amd64"
	p.vmi.Spec.Domain.CPU = &v1.CPU{Cores: 2}
	p.vmi.Spec.Domain.Memory = &v1.Memory{Guest: &guest}
	p.node = &k8sv1.Node{ObjectMeta: metav1.ObjectMeta{Name: here, Labels: map[string]string{
		k8sv1.LabelHostname: here, v1.NodeSchedulable: "true", v1.CPUModelVendorLabel + "Intel": "true", v1.HostModelCPULabel + "Skylake": "true",
		v1.SupportedHostModelMigrationCPU + "Skylake": "true", v1.HostModelRequiredFeaturesLabel + "ibrs": "true", v1.CPUFeatureLabel + "ibrs": "true",
	}}}
	return p
}

// starts creates the VMI and its launcher, as they are once they run on the node.
func (p *placed) starts() *k8sv1.Pod {
	config := clusterConfig(p.t, p.cr)
	net := netannotations.NewGenerator(config)
	namespaces := newInformer()
	namespaces.add(p.t, &k8sv1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: chart.Namespace}})
	p.templates = services.NewTemplateService("launcher", 240, "/var/run/kubevirt", "/var/run/kubevirt-ephemeral-disks", "/var/run/kubevirt/container-disks",
		"/var/run/kubevirt/hotplug-disks", "", p.claims.GetStore(), p.client, config, 107, "exporter", newInformer().GetStore(), namespaces.GetStore(),
		services.WithAnnotationsGenerators(net, storageannotations.Generator{}), services.WithNetTargetAnnotationsGenerator(net))
	p.vmi = create(p.t, config, p.vmi)
	launcher := p.render(p.vmi)
	p.vmi.Status.Phase, p.vmi.Status.NodeName = v1.Running, here
	p.vmi.Status.SelinuxContext = "none"
	return p.run(launcher, here)
}

func (p *placed) render(vmi *v1.VirtualMachineInstance) *k8sv1.Pod {
	pod, err := p.templates.RenderLaunchManifest(vmi)
	require.NoError(p.t, err)
	return pod
}

func (p *placed) run(pod *k8sv1.Pod, node string) *k8sv1.Pod {
	pod.Name, pod.Namespace, pod.UID = "virt-launcher-on-"+node, chart.Namespace, types.UID("uid-of-the-launcher-on-"+node)
	pod.Spec.NodeName, pod.Status.Phase = node, k8sv1.PodRunning
	pod.Status.ContainerStatuses = []k8sv1.ContainerStatus{{Name: "compute", Ready: true}}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(p.vmi, v1.VirtualMachineInstanceGroupVersionKind)}
	p.vmi.Status.ActivePods = map[types.UID]string{pod.UID: node}
	return pod
}

// migrates is the target that KubeVirt's migration controller creates.
func (p *placed) migrates(source *k8sv1.Pod) *k8sv1.Pod {
	p.client = newClient()
	vmis, pods, nodes := newInformer(controller.GetVMIInformerIndexers()), newInformer(), newInformer()
	migrations := newInformer(controller.GetVirtualMachineInstanceMigrationInformerIndexers())
	c, err := migration.NewController(p.templates, vmis, pods, migrations, nodes, p.claims, newInformer(), newInformer(), newInformer(),
		newInformer(), newInformer(), &record.FakeRecorder{}, p.client, clusterConfig(p.t, p.cr), netannotations.NewGenerator(clusterConfig(p.t, p.cr)))
	require.NoError(p.t, err)
	defer c.Queue.ShutDown()
	m := &v1.VirtualMachineInstanceMigration{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: chart.Namespace, Name: "migration", UID: types.UID("uid-of-the-migration-of-" + source.UID), Finalizers: []string{v1.VirtualMachineInstanceMigrationFinalizer},
			Labels: map[string]string{v1.MigrationSelectorLabel: vmiName},
			Annotations: map[string]string{
				v1.ControllerAPILatestVersionObservedAnnotation: v1.ApiLatestVersion, v1.ControllerAPIStorageVersionObservedAnnotation: v1.ApiStorageVersion,
			},
		},
		Spec:   v1.VirtualMachineInstanceMigrationSpec{VMIName: vmiName},
		Status: v1.VirtualMachineInstanceMigrationStatus{Phase: v1.MigrationPending},
	}
	vmis.add(p.t, p.vmi)
	require.NoError(p.t, p.client.virt.Tracker().Add(p.vmi.DeepCopy())) // it writes the user that the launcher runs as
	nodes.add(p.t, p.node)
	pods.add(p.t, source)
	all := p.client.VirtualMachineInstanceMigration(chart.Namespace)
	_, err = all.Create(p.t.Context(), m, metav1.CreateOptions{})
	require.NoError(p.t, err)
	var made *k8sv1.PodList
	for range 3 { // it writes the migration's status first
		written, err := all.Get(p.t.Context(), m.Name, metav1.GetOptions{})
		require.NoError(p.t, err)
		migrations.add(p.t, written)
		c.Queue.Add(chart.Namespace + "/" + m.Name)
		require.True(p.t, c.Execute())
		made, err = p.client.k8s.CoreV1().Pods(chart.Namespace).List(p.t.Context(), metav1.ListOptions{})
		require.NoError(p.t, err)
		if len(made.Items) > 0 {
			break
		}
	}
	require.Len(p.t, made.Items, 1, "KubeVirt makes a target")
	return &made.Items[0]
}

// shapes are the ways in which VMs, their nodes and their CR differ as far as a scheduler looks at them.
var shapes = map[string]func(*placed){
	"nothing special":        func(*placed) {},
	"a CPU model":            func(p *placed) { p.vmi.Spec.Domain.CPU.Model = "Haswell" },
	"the CPU passed through": func(p *placed) { p.vmi.Spec.Domain.CPU.Model = v1.CPUModeHostPassthrough },
	"required CPU features": func(p *placed) {
		p.vmi.Spec.Domain.CPU.Features = []v1.CPUFeature{{Name: "pcid"}, {Name: "vmx", Policy: "require"}, {Name: "mpx", Policy: "disable"}}
	},
	"dedicated CPUs": func(p *placed) { p.vmi.Spec.Domain.CPU.DedicatedCPUPlacement = true },
	"an isolated emulator thread": func(p *placed) {
		p.vmi.Spec.Domain.CPU.DedicatedCPUPlacement, p.vmi.Spec.Domain.CPU.IsolateEmulatorThread = true, true
	},
	"huge pages": func(p *placed) { p.vmi.Spec.Domain.Memory.Hugepages = &v1.Hugepages{PageSize: "2Mi"} },
	"Hyper-V": func(p *placed) {
		yes := true
		p.vmi.Spec.Domain.Features = &v1.Features{Hyperv: &v1.FeatureHyperv{SyNIC: &v1.FeatureState{Enabled: &yes}, EVMCS: &v1.FeatureState{}}}
	},
	"a machine type":  func(p *placed) { p.vmi.Spec.Domain.Machine = &v1.Machine{Type: "pc-q35-rhel9.4.0"} },
	"a node selector": func(p *placed) { p.vmi.Spec.NodeSelector = map[string]string{"disk": "fast"} },
	"the CR's node selectors": func(p *placed) {
		p.cr.Spec.Configuration.DeveloperConfiguration.NodeSelectors = map[string]string{"vms": "yes"}
	},
	"tolerations": func(p *placed) {
		p.vmi.Spec.Tolerations = []k8sv1.Toleration{{Key: "gpu", Operator: k8sv1.TolerationOpExists}}
	},
	"node affinity": func(p *placed) {
		p.vmi.Spec.Affinity = &k8sv1.Affinity{NodeAffinity: &k8sv1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &k8sv1.NodeSelector{
			NodeSelectorTerms: []k8sv1.NodeSelectorTerm{
				{MatchExpressions: []k8sv1.NodeSelectorRequirement{{Key: "zone", Operator: k8sv1.NodeSelectorOpIn, Values: []string{"a"}}}},
				{MatchExpressions: []k8sv1.NodeSelectorRequirement{{Key: "zone", Operator: k8sv1.NodeSelectorOpIn, Values: []string{"b"}}}},
			},
		}}}
	},
	"pod anti-affinity": func(p *placed) {
		p.vmi.Spec.Affinity = &k8sv1.Affinity{PodAntiAffinity: &k8sv1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []k8sv1.PodAffinityTerm{
			{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, TopologyKey: k8sv1.LabelTopologyZone},
		}}}
	},
	"topology spread": func(p *placed) {
		p.vmi.Spec.TopologySpreadConstraints = []k8sv1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: k8sv1.LabelHostname, WhenUnsatisfiable: k8sv1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{},
		}}
	},
	"another scheduler": func(p *placed) { p.vmi.Spec.SchedulerName = "own" },
	"a claim":           func(p *placed) { p.claim("data", k8sv1.ReadWriteMany) },
	"resources of its own": func(p *placed) {
		p.vmi.Spec.Domain.Resources.Requests = k8sv1.ResourceList{k8sv1.ResourceCPU: resource.MustParse("1500m"), k8sv1.ResourceMemory: resource.MustParse("3Gi")}
	},
	"a node of no vendor":         func(p *placed) { delete(p.node.Labels, v1.CPUModelVendorLabel+"Intel") },
	"a node without a host model": func(p *placed) { delete(p.node.Labels, v1.HostModelCPULabel+"Skylake") },
	"another architecture":        func(p *placed) { p.vmi.Spec.Architecture = "arm64" },
}

func (p *placed) claim(name string, mode k8sv1.PersistentVolumeAccessMode) {
	block := k8sv1.PersistentVolumeFilesystem
	p.claims.add(p.t, &k8sv1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: chart.Namespace, Name: name},
		Spec:       k8sv1.PersistentVolumeClaimSpec{AccessModes: []k8sv1.PersistentVolumeAccessMode{mode}, VolumeMode: &block, VolumeName: "pv-" + name},
	})
	p.vmi.Spec.Domain.Devices.Disks = append(p.vmi.Spec.Domain.Devices.Disks, v1.Disk{Name: name, DiskDevice: v1.DiskDevice{Disk: &v1.DiskTarget{Bus: v1.DiskBusVirtio}}})
	p.vmi.Spec.Volumes = append(p.vmi.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{
		PersistentVolumeClaimVolumeSource: k8sv1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}})
}

func TestPreviewAsksAboutTheTargetThatTheMigrationControllerMakes(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			p := newPlaced(t)
			shape(p)
			source := p.starts()
			target := p.migrates(source)
			asSeen(t, target, launcher.NewRules(p.cr).MigrationTarget(p.vmi, source, p.node))

			// And on, from where it is then.
			p.vmi.Status.NodeName, p.node.Name = there, there
			second := p.run(target.DeepCopy(), there)
			asSeen(t, p.migrates(second), launcher.NewRules(p.cr).MigrationTarget(p.vmi, second, p.node))
		})
	}
}

// changes are what an owner may have changed in a VM since its VMI was started.
var changes = map[string]func(*v1.VirtualMachineInstanceSpec){
	"nothing":          func(*v1.VirtualMachineInstanceSpec) {},
	"a node selector":  func(s *v1.VirtualMachineInstanceSpec) { s.NodeSelector = map[string]string{"disk": "slow"} },
	"no node selector": func(s *v1.VirtualMachineInstanceSpec) { s.NodeSelector = nil },
	"other tolerations": func(s *v1.VirtualMachineInstanceSpec) {
		s.Tolerations = []k8sv1.Toleration{{Key: "old", Operator: k8sv1.TolerationOpExists}}
	},
	"no tolerations":     func(s *v1.VirtualMachineInstanceSpec) { s.Tolerations = nil },
	"no affinity":        func(s *v1.VirtualMachineInstanceSpec) { s.Affinity = nil },
	"no topology spread": func(s *v1.VirtualMachineInstanceSpec) { s.TopologySpreadConstraints = nil },
	"a CPU model":        func(s *v1.VirtualMachineInstanceSpec) { s.Domain.CPU.Model = "Broadwell" },
	"a machine type":     func(s *v1.VirtualMachineInstanceSpec) { s.Domain.Machine = &v1.Machine{Type: "pc-q35-rhel9.6.0"} },
	"more memory": func(s *v1.VirtualMachineInstanceSpec) {
		guest := resource.MustParse("8Gi")
		s.Domain.Memory.Guest = &guest
	},
	"less memory": func(s *v1.VirtualMachineInstanceSpec) {
		guest := resource.MustParse("1Gi")
		s.Domain.Memory.Guest = &guest
	},
	"more CPUs":  func(s *v1.VirtualMachineInstanceSpec) { s.Domain.CPU.Cores = 8 },
	"fewer CPUs": func(s *v1.VirtualMachineInstanceSpec) { s.Domain.CPU.Cores = 1 },
	"no disk":    func(s *v1.VirtualMachineInstanceSpec) { s.Volumes, s.Domain.Devices.Disks = nil, nil },
}

func TestPreviewAsksAboutTheLauncherThatTheNextVMIGets(t *testing.T) {
	for name, shape := range shapes {
		for changed, change := range changes {
			t.Run(name+", then "+changed, func(t *testing.T) {
				p := newPlaced(t)
				shape(p)
				vm := newVM(v1.RunStrategyAlways)
				vm.Spec.Template.Spec = *p.vmi.Spec.DeepCopy()
				source := p.starts()
				change(&vm.Spec.Template.Spec)
				next := newVMI(ifPossible)
				next.Spec = *vm.Spec.Template.Spec.DeepCopy()
				made := p.render(create(t, clusterConfig(t, p.cr), next))
				asSeen(t, made, launcher.NewRules(p.cr).NextLauncher(vm, p.vmi, source))

				if changed == "nothing" { // also of one that has migrated
					target := p.migrates(source)
					p.vmi.Status.NodeName = there
					asSeen(t, made, launcher.NewRules(p.cr).NextLauncher(vm, p.vmi, p.run(target, there)))
				}
			})
		}
	}
}

// asSeen compares a pod that KubeVirt makes with the one that the preview asks about, as far as a scheduler looks.
func asSeen(t *testing.T, made *k8sv1.Pod, asked launcher.Leaver) {
	t.Helper()
	require.NotNil(t, asked.Pod, asked.Unknown)
	count("previewed launchers", 1)
	for what, of := range map[string]func(*k8sv1.Pod) any{
		"node selector":   func(p *k8sv1.Pod) any { return p.Spec.NodeSelector },
		"affinity":        func(p *k8sv1.Pod) any { return affinityOf(p) },
		"tolerations":     func(p *k8sv1.Pod) any { return fmt.Sprint(p.Spec.Tolerations) },
		"topology spread": func(p *k8sv1.Pod) any { return fmt.Sprint(p.Spec.TopologySpreadConstraints) },
		"scheduler":       func(p *k8sv1.Pod) any { return p.Spec.SchedulerName },
		"volumes":         func(p *k8sv1.Pod) any { return claimsOf(p) },
	} {
		assert.Equal(t, of(made), of(asked.Pod), what)
	}
	least := resourcehelper.PodRequests(asked.Pod, resourcehelper.PodResourcesOptions{})
	most := least
	if asked.AtMost != nil {
		most = resourcehelper.PodRequests(asked.AtMost, resourcehelper.PodResourcesOptions{})
	}
	for name, needs := range resourcehelper.PodRequests(made, resourcehelper.PodResourcesOptions{}) {
		low, high := least[name], most[name]
		assert.False(t, needs.Cmp(low) < 0 || needs.Cmp(high) > 0, "%s: the preview asks for %s to %s, KubeVirt for %s", name, &low, &high, &needs)
	}
}

// affinityOf is a pod's; an empty one is none.
func affinityOf(pod *k8sv1.Pod) *k8sv1.Affinity {
	if pod.Spec.Affinity == nil || *pod.Spec.Affinity == (k8sv1.Affinity{}) {
		return nil
	}
	return pod.Spec.Affinity
}

func claimsOf(pod *k8sv1.Pod) string {
	var names []string
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			names = append(names, volume.PersistentVolumeClaim.ClaimName)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

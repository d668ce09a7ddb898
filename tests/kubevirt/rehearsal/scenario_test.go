package rehearsal

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubectl/pkg/drain"

	"cozy-kubevirt/tests/kubevirt/internal/controlplane"
	"cozy-kubevirt/tests/kubevirt/internal/virthandler"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/client-go/kubecli"
)

// This file is what the scenarios are written in: a namespace with nodes and VMs of its own, drains and upgrades, and
// what became of the VMs.

const (
	oldLauncher = "quay.io/kubevirt/virt-launcher:v1.8.4"
	newLauncher = "quay.io/kubevirt/virt-launcher:v1.9.0"

	patience = 90 * time.Second // for what must happen; much longer than it takes, for machines that have other work
	// holdTimeout is for drains that must not end. kubectl asks again every 5 s, so such a drain has asked once.
	holdTimeout = 4 * time.Second
	// batchInterval stands for the CR's batchEvictionInterval, which TestUpgrade asserts on the CR itself.
	batchInterval = 4 * time.Second
)

type scenario struct {
	*testing.T
	kube           kubernetes.Interface // its cluster's
	virt           kubecli.KubevirtClient
	kubeconfig     string
	whole          *controlplane.Cluster // if its cluster is one with KubeVirt's own operator
	namespace      string
	started        time.Time
	patience       time.Duration
	timeline       *timeline
	verdict        string
	watched        cache.SharedIndexInformer // its VMIs
	virtController func()                    // stops it
	underOldPolicy func()                    // ends its turn
}

// rehearse sets a scenario up under the shipped policy, beside the others that run.
func rehearse(t *testing.T) *scenario {
	asOther(t)
	install(t, shipped)
	return newScenario(t)
}

// rehearseFromOldPolicy sets a scenario up under the old policy.
func rehearseFromOldPolicy(t *testing.T) *scenario {
	over := asOldPolicy(t)
	install(t, old)
	s := newScenario(t)
	s.underOldPolicy = over
	return s
}

// switchPolicy upgrades the platform to the chart as it ships, unless another scenario does, once no scenario needs the
// old policy any more. From there on the scenario runs beside the others.
func (s *scenario) switchPolicy() {
	s.underOldPolicy()
	underOldPolicy.Wait()
	s.timeline.during("helm upgrade", func() { install(s.T, shipped) })
}

func newScenario(t *testing.T) *scenario {
	name := strings.ToLower(strings.TrimPrefix(t.Name(), "Test"))
	s := &scenario{T: t, kube: cluster.Kube, virt: cluster.Virt, kubeconfig: cluster.Kubeconfig, namespace: name[:min(len(name), 50)],
		started: time.Now(), patience: patience, timeline: &timeline{}}
	_, err := s.kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.watch(cluster.VMIs(s.namespace))
	t.Cleanup(s.conclude)
	s.startVirtController(oldLauncher, nil)
	t.Cleanup(func() { s.virtController() })
	t.Cleanup(cluster.StartNodes(s.namespace))
	return s
}

// watch keeps the scenario's VMIs at hand and records them for the report. A scenario asks for them many times a second,
// and the API server has other work.
func (s *scenario) watch(vmis cache.SharedIndexInformer) {
	s.watched = vmis
	see := func(object any) { s.timeline.see(object.(*v1.VirtualMachineInstance)) }
	_, err := s.watched.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, now any) { see(now) }})
	require.NoError(s, err)
	stop := make(chan struct{})
	s.Cleanup(func() { close(stop) })
	go s.watched.Run(stop)
	require.True(s, cache.WaitForCacheSync(stop, s.watched.HasSynced))
}

func (s *scenario) startVirtController(launcher string, change func(*v1.KubeVirt)) {
	require.NoError(s, cluster.CopyKubeVirt(context.Background(), s.namespace, func(kubeVirt *v1.KubeVirt) {
		kubeVirt.Spec.WorkloadUpdateStrategy.BatchEvictionInterval = &metav1.Duration{Duration: batchInterval}
		if change != nil {
			change(kubeVirt)
		}
	}))
	stop, err := cluster.StartVirtController(s.namespace, launcher)
	require.NoError(s, err)
	s.virtController = stop
}

// upgrade replaces this scenario's virt-controller by one with the new launcher image; its workload updater starts. What
// then happens must be what a preview said before.
func (s *scenario) upgrade(change func(*v1.KubeVirt)) {
	s.Helper()
	before, previewed := s.vmis(), s.preview()
	s.virtController()
	s.startVirtController(newLauncher, change)
	s.timeline.mark("upgrade")
	s.upgradeWasAsPreviewed(previewed, before)
}

func (s *scenario) node(name string) string {
	name = s.namespace + "-" + name
	require.NoError(s, cluster.CreateNode(s.Context(), name, s.namespace))
	return name
}

// machine is a VM to be: what of it matters here.
type machine struct {
	name     string
	strategy v1.EvictionStrategy // its own, if any
	runs     v1.VirtualMachineRunStrategy
	stuck    string // why it cannot migrate, if it cannot
	gpu      bool
	crashes  bool
	bound    string // node that its disk is bound to, if it is
	shared   bool   // its disk is ReadWriteMany
	volume   func(*corev1.PersistentVolume)
}

// mode is how its disk may be used.
func (m machine) mode() []corev1.PersistentVolumeAccessMode {
	if m.shared {
		return []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}
	return []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
}

func migratable(name string) machine { return machine{name: name} }

// onLocalDisk is a machine on a ReadWriteOnce disk.
func onLocalDisk(name string) machine {
	return machine{name: name, stuck: v1.VirtualMachineInstanceReasonDisksNotMigratable}
}

func withGPU(name string) machine {
	return machine{name: name, stuck: v1.VirtualMachineInstanceReasonHostDeviceNotMigratable, gpu: true}
}

func (m machine) with(strategy v1.EvictionStrategy) machine { m.strategy = strategy; return m }
func (m machine) run(strategy v1.VirtualMachineRunStrategy) machine {
	m.runs = strategy
	return m
}
func (m machine) crashing() machine          { m.crashes = true; return m }
func (m machine) onNode(node string) machine { m.bound = node; return m }

func (s *scenario) create(machines ...machine) {
	var all sync.WaitGroup
	for _, m := range machines {
		all.Go(func() { s.createOne(m) })
	}
	all.Wait()
	if s.Failed() {
		s.FailNow()
	}
	s.running(machines...)
}

func (s *scenario) createOne(m machine) {
	ctx := s.Context()
	if m.runs == "" {
		m.runs = v1.RunStrategyAlways
	}
	no, memory := false, resource.MustParse("64Mi")
	spec := v1.VirtualMachineInstanceSpec{
		Domain: v1.DomainSpec{
			CPU:     &v1.CPU{Sockets: 1, Cores: 1, Threads: 1},
			Memory:  &v1.Memory{Guest: &memory},
			Devices: v1.Devices{AutoattachPodInterface: &no}, // the network plays no part
		},
	}
	annotations := map[string]string{}
	if m.strategy != "" {
		spec.EvictionStrategy = &m.strategy
	}
	if m.gpu {
		spec.Domain.Devices.GPUs = []v1.GPU{{Name: "gpu", DeviceName: virthandler.GPU}}
	} else if m.stuck != "" {
		disk, volume := s.claim(m, false)
		spec.Domain.Devices.Disks, spec.Volumes = []v1.Disk{disk}, []v1.Volume{volume}
	}
	if m.stuck != "" && s.whole == nil { // a whole cluster's node sees by itself
		annotations[virthandler.NotMigratable] = m.stuck
	}
	if m.crashes {
		annotations[virthandler.GuestCrashes] = ""
	}
	_, err := s.virt.VirtualMachine(s.namespace).Create(ctx, &v1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Name: m.name, Namespace: s.namespace},
		Spec: v1.VirtualMachineSpec{
			RunStrategy: &m.runs,
			Template: &v1.VirtualMachineInstanceTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
				Spec:       spec,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Errorf("VM %s: %v", m.name, err)
		return
	}
	if m.runs == v1.RunStrategyManual {
		s.requestStart(m.name)
	}
}

// claim makes a machine's claim, bound to a volume, and the disk and volume that use it.
func (s *scenario) claim(m machine, hotplugged bool) (v1.Disk, v1.Volume) {
	name, mode := m.name, corev1.PersistentVolumeFilesystem
	s.persistentVolume(m)
	claim, err := s.kube.CoreV1().PersistentVolumeClaims(s.namespace).Create(s.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      m.mode(),
			StorageClassName: new(string), // no class provides it
			VolumeMode:       &mode,
			VolumeName:       s.namespace + "-" + name,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	if err == nil && s.whole == nil {
		claim.Status.Phase = corev1.ClaimBound
		_, err = s.kube.CoreV1().PersistentVolumeClaims(s.namespace).UpdateStatus(s.Context(), claim, metav1.UpdateOptions{})
	}
	if err != nil {
		s.Errorf("PVC %s: %v", name, err)
	}
	if s.whole != nil {
		s.bound(name)
	}
	disk := v1.Disk{Name: name, DiskDevice: v1.DiskDevice{Disk: &v1.DiskTarget{Bus: v1.DiskBusSCSI}}}
	return disk, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{
			PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			Hotpluggable:                      hotplugged,
		},
	}}
}

// persistentVolume makes the volume of a machine's claim.
func (s *scenario) persistentVolume(m machine) {
	spec := corev1.PersistentVolumeSpec{
		AccessModes:                   m.mode(),
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "storage", Path: "/" + m.name}},
	}
	if m.bound != "" {
		spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/mnt/" + m.name}}
		spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{m.bound}}},
		}}}}
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + m.name}, Spec: spec}
	if m.volume != nil {
		m.volume(volume)
	}
	if _, err := s.kube.CoreV1().PersistentVolumes().Create(s.Context(), volume, metav1.CreateOptions{}); err != nil {
		s.Errorf("PV %s: %v", m.name, err)
	}
}

// bound waits until a claim is bound, as a disk is before its VM is made. A scheduler that is asked about a pod at the very
// moment when its claim becomes bound may take it for unbound, and asks itself again only minutes later.
func (s *scenario) bound(claim string) {
	err := wait.PollUntilContextTimeout(s.Context(), 100*time.Millisecond, s.patience, true, func(ctx context.Context) (bool, error) {
		now, err := s.kube.CoreV1().PersistentVolumeClaims(s.namespace).Get(ctx, claim, metav1.GetOptions{})
		return err == nil && now.Status.Phase == corev1.ClaimBound, nil
	})
	if err != nil {
		s.Errorf("PVC %s is not bound: %v", claim, err)
	}
}

// requestStart is virtctl start.
func (s *scenario) requestStart(vm string) {
	if s.whole != nil {
		if err := s.virt.VirtualMachine(s.namespace).Start(s.Context(), vm, &v1.StartOptions{}); err != nil {
			s.Errorf("start of VM %s: %v", vm, err)
		}
		return
	}
	patch := []byte(`[{"op": "add", "path": "/status", "value": {"stateChangeRequests": [{"action": "Start"}]}}]`)
	_, err := cluster.VirtAPI.VirtualMachine(s.namespace).PatchStatus(s.Context(), vm, types.JSONPatchType, patch, metav1.PatchOptions{})
	if err != nil {
		s.Errorf("start of VM %s: %v", vm, err)
	}
}

// running waits until the machines run, all but the halted ones.
func (s *scenario) running(machines ...machine) {
	var names []string
	for _, m := range machines {
		if m.runs != v1.RunStrategyHalted {
			names = append(names, m.name)
		}
	}
	s.eventually("the VMs run", func() string {
		now := s.vmis()
		for _, name := range names {
			vmi, ok := now[name]
			if !ok || vmi.Status.Phase != v1.Running || vmi.Status.LauncherContainerImageVersion == "" {
				return fmt.Sprintf("%s: %s", name, describe(vmi))
			}
		}
		return ""
	})
}

// eventually waits until the condition has nothing to complain of.
func (s *scenario) eventually(what string, complaint func() string) {
	s.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(s.Context(), 100*time.Millisecond, s.patience, true, func(context.Context) (bool, error) {
		last = complaint()
		return last == "", nil
	})
	require.NoError(s, err, "%s: %s", what, last)
}

// always fails as soon as the condition complains, within the time given.
func (s *scenario) always(what string, period time.Duration, complaint func() string) {
	s.Helper()
	err := wait.PollUntilContextTimeout(s.Context(), 100*time.Millisecond, period, true, func(context.Context) (bool, error) {
		if last := complaint(); last != "" {
			return false, fmt.Errorf("%s: %s", what, last)
		}
		return false, nil
	})
	require.True(s, wait.Interrupted(err), "%v", err)
}

type vmis map[string]v1.VirtualMachineInstance

func (s *scenario) vmis() vmis {
	found := vmis{}
	for _, object := range s.watched.GetStore().List() {
		vmi := object.(*v1.VirtualMachineInstance).DeepCopy() // the store's own is not to be changed
		found[vmi.Name] = *vmi
	}
	return found
}

func describe(vmi v1.VirtualMachineInstance) string {
	if vmi.UID == "" {
		return "no VMI"
	}
	return fmt.Sprintf("%s on %s (uid %s, launcher %s, evacuated from %q)", vmi.Status.Phase, vmi.Status.NodeName, vmi.UID,
		vmi.Status.LauncherContainerImageVersion, vmi.Status.EvacuationNodeName)
}

// fate is what became of a VM.
type fate string

const (
	stays     fate = "stays"     // the same VMI in the same place
	migrated  fate = "migrated"  // the same VMI elsewhere, or on another launcher
	restarted fate = "restarted" // another VMI
	off       fate = "off"       // no VMI that runs
	waits     fate = "waits"     // a VMI that no node takes, by the scheduler's word
	unsettled fate = "unsettled"
)

func (before vmis) fate(after vmis, name string) fate {
	was, is := before[name], after[name]
	switch {
	case is.UID == "" || is.IsFinal():
		return off
	case unschedulable(is):
		return waits
	case is.Status.Phase != v1.Running || is.Status.LauncherContainerImageVersion == "" || is.DeletionTimestamp != nil:
		return unsettled
	case is.UID != was.UID:
		return restarted
	case is.Status.NodeName != was.Status.NodeName ||
		is.Status.LauncherContainerImageVersion != was.Status.LauncherContainerImageVersion:
		return migrated
	}
	return stays
}

// unschedulable says whether the scheduler has found no node for a VMI's launcher.
func unschedulable(vmi v1.VirtualMachineInstance) bool {
	return vmi.Status.Phase == v1.Scheduling && slices.ContainsFunc(vmi.Status.Conditions, func(c v1.VirtualMachineInstanceCondition) bool {
		return string(c.Type) == string(corev1.PodScheduled) && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// become waits until every VM has met its fate, and no two launchers of one VMI are left.
func (s *scenario) become(before vmis, fates map[string]fate) {
	s.Helper()
	require.NotEmpty(s, fates)
	s.eventually("every VM meets its fate", func() string { return s.differs(before, fates) })
}

func (s *scenario) differs(before vmis, fates map[string]fate) string {
	after := s.vmis()
	var different []string
	for name, want := range fates {
		if got := before.fate(after, name); got != want {
			different = append(different, fmt.Sprintf("%s should have %s, but %s: %s", name, want, got, describe(after[name])))
		}
	}
	slices.Sort(different)
	return strings.Join(different, "\n")
}

type drained struct {
	err    error
	took   time.Duration
	output string
}

// drain drains a node, and what happens must be what a preview said before.
func (s *scenario) drain(node string, timeout time.Duration) drained {
	s.Helper()
	before, previewed := s.vmis(), s.preview(node)
	drain := s.kubectlDrain(node, timeout)
	s.drainWasAsPreviewed(previewed, before, drain)
	return drain
}

// drainWaits is what kubectl says of a drain that has not ended in time, in words that depend on which VMs are there: it asks
// on for one that can migrate, and waits for the launcher of one that cannot to go.
const drainWaits = "global timeout reached|context deadline exceeded"

// kubectlDrain cordons and drains a node as kubectl does, within a timeout.
func (s *scenario) kubectlDrain(node string, timeout time.Duration) drained {
	output := &lockedBuffer{}
	helper := &drain.Helper{
		Ctx: s.Context(), Client: s.kube, GracePeriodSeconds: -1, Timeout: timeout,
		IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, Out: output, ErrOut: output,
	}
	begun := time.Now()
	var err error
	s.timeline.during("drain "+strings.TrimPrefix(node, s.namespace+"-"), func() {
		s.cordon(node, true)
		err = drain.RunNodeDrain(helper, node)
	})
	return drained{err: err, took: time.Since(begun), output: output.String()}
}

func (s *scenario) cordon(node string, unschedulable bool) {
	patch := fmt.Sprintf(`{"spec": {"unschedulable": %t}}`, unschedulable)
	_, err := s.kube.CoreV1().Nodes().Patch(s.Context(), node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(s, err)
}

// launcher is the pod that a VMI runs in.
func (s *scenario) launcher(vmi v1.VirtualMachineInstance) corev1.Pod {
	pods, err := s.kube.CoreV1().Pods(s.namespace).List(s.Context(), metav1.ListOptions{
		LabelSelector: v1.CreatedByLabel + "=" + string(vmi.UID),
	})
	require.NoError(s, err)
	for _, pod := range pods.Items {
		if pod.Spec.NodeName == vmi.Status.NodeName && pod.Status.Phase == corev1.PodRunning {
			return pod
		}
	}
	s.Fatalf("VMI %s has no launcher", vmi.Name)
	return corev1.Pod{}
}

// restart deletes the VMI, which is what virtctl restart comes to.
func (s *scenario) restart(vm string) {
	before := s.vmis()
	require.NoError(s, s.virt.VirtualMachineInstance(s.namespace).Delete(s.Context(), vm, metav1.DeleteOptions{}))
	s.become(before, map[string]fate{vm: restarted})
}

// conclude prints the verdict, and on failure what is there to see.
func (s *scenario) conclude() {
	took := time.Since(s.started)
	if s.Failed() {
		s.Log(s.dump())
	}
	record(s, took)
}

func (s *scenario) dump() string {
	ctx := context.Background()
	text := &strings.Builder{}
	fmt.Fprintf(text, "what namespace %s looks like:\n", s.namespace)
	if list, err := s.virt.VirtualMachineInstance(s.namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for _, vmi := range list.Items {
			strategy := "-"
			if vmi.Spec.EvictionStrategy != nil {
				strategy = string(*vmi.Spec.EvictionStrategy)
			}
			fmt.Fprintf(text, "  vmi %s: %s, %s\n", vmi.Name, strategy, describe(vmi))
		}
	}
	if list, err := s.kube.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for _, pod := range list.Items {
			fmt.Fprintf(text, "  pod %s: %s on %q, deleted %v\n", pod.Name, pod.Status.Phase, pod.Spec.NodeName, pod.DeletionTimestamp)
		}
	}
	if list, err := s.virt.VirtualMachineInstanceMigration(s.namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for _, migration := range list.Items {
			fmt.Fprintf(text, "  migration %s of %s: %s\n", migration.Name, migration.Spec.VMIName, migration.Status.Phase)
		}
	}
	if list, err := s.kube.CoreV1().Events(s.namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for _, event := range list.Items {
			fmt.Fprintf(text, "  event %s %s/%s: %s: %s\n", event.LastTimestamp.Format(time.TimeOnly), event.InvolvedObject.Kind,
				event.InvolvedObject.Name, event.Reason, event.Message)
		}
	}
	return text.String()
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

package rehearsal

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
	"cozy-kubevirt/tests/kubevirt/internal/chart"
	"cozy-kubevirt/tests/kubevirt/internal/client"
	"cozy-kubevirt/tests/kubevirt/internal/controlplane"
	"cozy-kubevirt/tests/kubevirt/internal/virthandler"
	v1 "kubevirt.io/api/core/v1"
)

// This file is the day on which a platform is switched to this package: KubeVirt v1.8.4 with the CR of before, VMs of
// every kind on four nodes; the operator is moved to v1.9.0, then Helm upgrades to the chart; then come the restarts that
// the runbook asks for, a drain of each node in turn, and the chart's rollback. Nothing of KubeVirt or Kubernetes is ours
// here but the nodes (internal/controlplane).

// dayBatch stands for the CR's batchEvictionInterval of a minute, by a hand edit that outlives the upgrade.
const dayBatch = 5 * time.Second

var dayNodes = []string{"node-a", "node-b", "node-c", "node-d"}

// prepared are clusters without VMs, by the version of KubeVirt: whoever asks first has the cluster itself, and all others start
// from a snapshot of it. At the version before, it is the platform on the morning of the switch.
var prepared = map[string]*template{versionBefore(): {}, kubeVirtVersion(): {}}

type template struct {
	sync.Mutex
	snapshot string
}

func startAt(ctx context.Context, version string) (*controlplane.Cluster, error) {
	of := prepared[version]
	of.Lock()
	defer of.Unlock()
	c, err := controlplane.Start(controlplane.Options{Binaries: bin(""), Snapshot: of.snapshot})
	if err != nil || of.snapshot != "" {
		return c, err
	}
	if err = prepare(ctx, c, version); err == nil {
		of.snapshot, err = c.Snapshot()
	}
	if err != nil {
		c.Stop()
	}
	return c, err
}

func prepare(ctx context.Context, c *controlplane.Cluster, version string) error {
	if err := bringUp(ctx, c, version); err != nil {
		return err
	}
	if err := shortenBatches(ctx, c); err != nil {
		return err
	}
	return c.Deployed(ctx, version)
}

// bringUp adds the nodes, each with a GPU that its device plugin offers, and has KubeVirt installed at a version.
func bringUp(ctx context.Context, c *controlplane.Cluster, version string) error {
	for _, name := range dayNodes {
		if err := c.CreateNode(ctx, controlplane.Node{Name: name, Devices: corev1.ResourceList{virthandler.GPU: resource.MustParse("1")}}); err != nil {
			return err
		}
	}
	if err := c.InstallOperator(ctx, version); err != nil {
		return err
	}
	return installCR(ctx, c, version)
}

// installCR installs the chart, or at the version before what the platform had.
func installCR(ctx context.Context, c *controlplane.Cluster, version string) error {
	folder, values := filepath.Join(root, "charts", "kubevirt"), "gpu-passthrough-values.yaml"
	if version == versionBefore() {
		folder, values = filepath.Join("testdata", "before"), "platform-values.yaml"
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	return c.HelmUpgrade(ctx, helm(), folder, "--values", filepath.Join(root, "charts", "kubevirt", "ci", values))
}

// shortenBatches edits the CR by hand.
func shortenBatches(ctx context.Context, c *controlplane.Cluster) error {
	return editCR(ctx, c, fmt.Sprintf(`{"spec": {"workloadUpdateStrategy": {"batchEvictionInterval": %q}}}`, dayBatch))
}

func editCR(ctx context.Context, c *controlplane.Cluster, edit string) error {
	_, err := c.Kubectl(ctx, "patch", "kubevirt", client.Release, "--namespace", client.Namespace, "--type", "merge", "--patch", edit)
	return err
}

// day is a scenario on a cluster of its own.
type day struct {
	*scenario
	cluster *controlplane.Cluster
	rows    []string // the timeline for the docs
}

// startDay has a cluster of its own, at the version before.
func startDay(t *testing.T) *day { return startDayAt(t, versionBefore()) }

func startDayAt(t *testing.T, version string) *day {
	asDay(t)
	begun := time.Now()
	c, err := startAt(t.Context(), version)
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	sawKubernetes(c.Version)
	s := &scenario{T: t, kube: c.Kube, virt: c.Virt, kubeconfig: c.Kubeconfig, whole: c, namespace: "tenant",
		started: begun, patience: 10 * time.Minute, timeline: &timeline{}}
	d := &day{scenario: s, cluster: c}
	t.Cleanup(func() {
		if t.Failed() {
			kept := filepath.Join(out(), "logs-"+t.Name())
			_ = os.RemoveAll(kept)
			t.Log("the logs of all processes are in ", kept, os.CopyFS(kept, os.DirFS(c.Logs())))
		}
		s.conclude()
	})
	require.NoError(t, c.Deployed(t.Context(), version))
	_, err = c.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.watch(c.VMIs(s.namespace))
	return d
}

// kind is some VMs of one kind, and what the operator's switch does to each while the CR still says LiveMigrate.
type kind struct {
	make   func(name string) machine
	name   string
	number int
	onSwitch,
	onRestart fate // the runbook's restart, afterwards
}

var dayKinds = []kind{
	{migratable, "web", 6, migrated, stays},
	{onLocalDisk, "db", 5, stays, restarted},
	{func(name string) machine { return onLocalDisk(name).onNode("node-a") }, "local-a", 1, stays, restarted},
	{func(name string) machine { return onLocalDisk(name).onNode("node-b") }, "local-b", 1, stays, restarted},
	{withGPU, "gpu", 2, stays, restarted},
	{func(name string) machine { return onLocalDisk(name).run(v1.RunStrategyRerunOnFailure) }, "rerun", 1, stays, restarted},
	{func(name string) machine { return onLocalDisk(name).run(v1.RunStrategyRerunOnFailure).crashing() }, "rerun-crashing", 1, stays, restarted},
	{func(name string) machine { return onLocalDisk(name).run(v1.RunStrategyManual) }, "manual", 1, stays, restarted},
	{func(name string) machine { return onLocalDisk(name).run(v1.RunStrategyOnce) }, "once", 1, stays, restarted},
	{func(name string) machine { return onLocalDisk(name).run(v1.RunStrategyHalted) }, "halted", 1, off, off},
	{func(name string) machine { return migratable(name).with(v1.EvictionStrategyExternal) }, "worker", 2, migrated, stays},
	{func(name string) machine { return onLocalDisk(name).with(v1.EvictionStrategyExternal) }, "worker-local", 1, stays, restarted},
	{func(name string) machine { return onLocalDisk(name).with(v1.EvictionStrategyLiveMigrate) }, "holds", 1, stays, stays},
	{func(name string) machine { return migratable(name).with(v1.EvictionStrategyLiveMigrate) }, "holds-migratable", 1, migrated, stays},
	{func(name string) machine { return onLocalDisk(name).with(v1.EvictionStrategyNone) }, "lets-go", 1, restarted, stays},
	{func(name string) machine { return migratable(name).with(v1.EvictionStrategyNone) }, "lets-go-migratable", 1, migrated, stays},
	{func(name string) machine { return onLocalDisk(name).with(v1.EvictionStrategyLiveMigrateIfPossible) }, "opt-in", 2, restarted, stays},
	{func(name string) machine { return migratable(name).with(v1.EvictionStrategyLiveMigrateIfPossible) }, "opt-in-migratable", 1, migrated, stays},
}

// createAll makes the VMs, and says what each kind's outcomes are.
func (d *day) createAll() (onSwitch, onRestart map[string]fate) {
	onSwitch, onRestart = map[string]fate{}, map[string]fate{}
	var machines []machine
	for _, kind := range dayKinds {
		for i := range kind.number {
			m := kind.make(fmt.Sprintf("%s-%d", kind.name, i+1))
			machines, onSwitch[m.name], onRestart[m.name] = append(machines, m), kind.onSwitch, kind.onRestart
		}
	}
	d.create(machines...)
	require.Len(d, onSwitch, 30)
	return onSwitch, onRestart
}

func TestDayOfTheSwitch(t *testing.T) {
	d := startDay(t)
	onSwitch, onRestart := d.createAll()
	before := d.vmis()
	d.rows = append(d.rows, fmt.Sprintf("| morning | KubeVirt %s, the platform's CR of before, %d VMs on %d nodes, one of them halted | %d run | – |",
		versionBefore(), len(onSwitch), len(dayNodes), len(before)))
	d.serveNetworks()
	d.inEffect("in the morning", effects{exports: true, hotplug: true, sriovDevice: true})

	d.switchOperator(before, onSwitch, "worker-local-1")
	d.inEffect("under the new operator", effects{exports: true, hotplug: true, vmTemplates: true})
	before = d.vmis()

	d.step("helm upgrade to this chart", func() {
		now, err := d.cluster.KubeVirt(t.Context())
		require.NoError(t, err)
		next := chart.Render(t, chart.Options{ValuesFiles: []string{chart.ValuesFiles(t)["platform"]}}).KubeVirt
		next.Spec.WorkloadUpdateStrategy.BatchEvictionInterval = now.Spec.WorkloadUpdateStrategy.BatchEvictionInterval // edited by hand
		d.comesAsForetold(d.impact(now, next), func() {
			require.NoError(t, d.cluster.HelmUpgrade(t.Context(), helm(), chart.Dir(t), "--values", chart.ValuesFiles(t)["platform"]))
		})
		d.nothingRestarts(before, onSwitch)
	})
	d.inEffect("under the chart's CR", effects{exports: true, hotplug: true, sriovDevice: true})
	d.operatorMade()

	d.step("the restarts that the runbook asks for", func() {
		for name, wanted := range onRestart {
			if wanted == restarted {
				d.restartAsTheRunbookSays(name)
			}
		}
		d.become(before, onRestart)
	})
	for name, vmi := range d.vmis() {
		if onRestart[name] == restarted && name != "worker-local-1" {
			assert.Equal(t, v1.EvictionStrategyLiveMigrateIfPossible, *vmi.Spec.EvictionStrategy, "what %s carries after its restart", name)
		}
	}

	d.step("evictions of VMs with a GPU, with one free and then none", d.oneFreePlace)
	d.step("drain with no room on any other node, and then some", func() {
		d.noRoomAnywhere()
		d.startWhatADrainLeftOff(onSwitch)
	})

	for _, node := range dayNodes {
		d.step("drain of "+node, func() {
			timeout := d.patience
			if d.preview(node).Drains != verdict.Ends {
				timeout = holdTimeout
			}
			d.drain(node, timeout)
		})
		d.step(node+" takes VMs again", func() {
			d.cordon(node, false)
			d.startWhatADrainLeftOff(onSwitch)
		})
	}

	before = d.vmis()
	d.step("rollback of the chart", func() {
		_, err := d.cluster.Helm(t.Context(), helm(), "rollback", client.Release, "1")
		require.NoError(t, err)
		require.NoError(t, d.cluster.Deployed(t.Context(), kubeVirtVersion()))
		d.nothingRestarts(before, onSwitch)
	})
	kubeVirt, err := d.cluster.KubeVirt(t.Context())
	require.NoError(t, err)
	require.Equal(t, v1.EvictionStrategyLiveMigrate, *kubeVirt.Spec.Configuration.EvictionStrategy, "after the rollback")
	d.nothingTwiceNow()
	d.write()
	d.verdict = fmt.Sprintf("the day of the switch, by KubeVirt's own operator: %d VMs of every kind, and what the preview says comes true at each step", len(onSwitch))
}

func TestDayInTheWrongOrder(t *testing.T) {
	d := startDay(t)
	d.create(migratable("web"), onLocalDisk("db"))
	before := d.vmis()
	fates := map[string]fate{"web": stays, "db": stays}
	require.NoError(t, d.export(), "exports work before")

	d.step("helm upgrade before the operator's", func() {
		err := d.cluster.HelmUpgrade(t.Context(), helm(), chart.Dir(t), "--values", chart.ValuesFiles(t)["platform"])
		require.ErrorContains(t, err, versionBefore(), "Helm refuses, and names the version that is too old")
		d.always("nothing changes", 2*time.Second, func() string { return d.differs(before, fates) })
	})
	require.NoError(t, d.export(), "exports work after the refusal")

	manifest := run(t, helm(), "template", client.Release, chart.Dir(t), "--namespace", client.Namespace,
		"--kube-version", chart.KubeVersions[0], "--values", chart.ValuesFiles(t)["platform"])
	d.step("the chart applied all the same", func() {
		require.NoError(t, d.cluster.Apply(t.Context(), manifest))
		require.NoError(t, shortenBatches(t.Context(), d.cluster))
		require.NoError(t, d.cluster.Deployed(t.Context(), versionBefore()))
		d.eventually("exports are switched off", func() string {
			if d.export() == nil {
				return "an export is accepted"
			}
			return d.endpoints("virt-exportproxy", false)
		})
		d.become(before, fates)
	})

	var machines []machine
	for i := range 25 {
		m := onLocalDisk(fmt.Sprintf("late-%02d", i+1))
		machines, fates[m.name] = append(machines, m), restarted
	}
	worker := onLocalDisk("worker").with(v1.EvictionStrategyExternal)
	d.create(append(machines, worker)...)
	before, fates["web"], fates[worker.name] = d.vmis(), migrated, stays
	begun := time.Now()
	d.switchOperator(before, fates, worker.name)
	for i, size := range d.evictedInBatches(begun) {
		assert.LessOrEqual(t, size, 10, "evictions in batch %d", i+1)
	}
	d.eventually("exports are back", func() string {
		if err := d.export(); err != nil {
			return err.Error()
		}
		return d.endpoints("virt-exportproxy", true)
	})
	d.nothingTwiceNow()
	d.verdict = "in the wrong order Helm refuses; the CR applied all the same switches exports off until the operator follows, and loses nothing"
}

// switchOperator moves the operator to the new release, and waits until the updater has done with every VM what a preview said
// before, and has marked the tenant worker that cannot migrate.
func (d *day) switchOperator(before vmis, fates map[string]fate, worker string) {
	d.Helper()
	d.step("operator to "+kubeVirtVersion(), func() {
		previewed := d.preview()
		require.NoError(d, d.cluster.InstallOperator(d.Context(), kubeVirtVersion()))
		require.NoError(d, d.cluster.Deployed(d.Context(), kubeVirtVersion()))
		d.become(before, fates)
		d.upgradeWasAsPreviewed(previewed, before)
		d.eventually("the updater's eviction marks the worker that cannot migrate", func() string { return d.unmarked(worker) })
	})
}

// nothingRestarts watches that every VM of the day, those that were off or waited too, is for two batches what it was before.
func (d *day) nothingRestarts(before vmis, all map[string]fate) {
	d.Helper()
	same := map[string]fate{}
	for name := range all {
		same[name] = before.fate(before, name)
	}
	d.always("nothing restarts", 2*dayBatch, func() string { return d.differs(before, same) })
}

// operatorMade looks at what virt-operator made of the chart's CR.
func (d *day) operatorMade() {
	ctx := d.Context()
	handler, err := d.kube.AppsV1().DaemonSets(client.Namespace).Get(ctx, "virt-handler", metav1.GetOptions{})
	require.NoError(d, err)
	container := handler.Spec.Template.Spec.Containers[0]
	assert.Equal(d, "virt-handler", container.Name)
	assert.Len(d, handler.Spec.Template.Spec.Containers, 1, "the patch adds no container")
	for what, wanted := range map[*resource.Quantity]string{
		container.Resources.Requests.Cpu(): "100m", container.Resources.Requests.Memory(): "325Mi", container.Resources.Limits.Memory(): "2Gi",
	} {
		assert.True(d, what.Equal(resource.MustParse(wanted)), "virt-handler has %s, want %s", what, wanted)
	}
	ingress, err := d.kube.NetworkingV1().Ingresses(client.Namespace).Get(ctx, "vm-exportproxy", metav1.GetOptions{})
	require.NoError(d, err)
	service := ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name
	assert.Empty(d, d.endpoints(service, true), "the export proxy's route leads to Service %s with ready endpoints", service)
	budgets, err := d.kube.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	require.NoError(d, err)
	for _, budget := range budgets.Items {
		assert.Equal(d, client.Namespace, budget.Namespace, "no budget touches a VM: %s", budget.Name)
	}
}

// evictedInBatches counts the updater's evictions since then that were let through or marked a VMI, in the order of the
// batches: one begins when an interval has passed since the last one began.
func (d *day) evictedInBatches(since time.Time) []int {
	evictions, err := d.cluster.Evictions(d.namespace)
	require.NoError(d, err)
	var sizes []int
	var begun time.Time
	for _, eviction := range evictions {
		if eviction.At.Before(since) {
			continue
		}
		if len(sizes) == 0 || eviction.At.Sub(begun) > dayBatch*3/4 {
			sizes, begun = append(sizes, 0), eviction.At
		}
		sizes[len(sizes)-1]++
	}
	require.NotEmpty(d, sizes, "evictions since %s", since)
	return sizes
}

// restartAsTheRunbookSays is virtctl restart; it refuses a VM with runStrategy Once, whose VMI is deleted instead, and so
// is a tenant worker's, by its provider.
func (d *day) restartAsTheRunbookSays(vm string) {
	if strings.HasPrefix(vm, "once-") || strings.HasPrefix(vm, "worker-") {
		require.NoError(d, d.virt.VirtualMachineInstance(d.namespace).Delete(d.Context(), vm, metav1.DeleteOptions{}))
		return
	}
	require.NoError(d, d.virt.VirtualMachine(d.namespace).Restart(d.Context(), vm, &v1.RestartOptions{}), vm)
}

// startWhatADrainLeftOff waits until what restarts by itself is back, and starts what does not.
func (d *day) startWhatADrainLeftOff(all map[string]fate) {
	for vm := range all {
		switch {
		case strings.HasPrefix(vm, "halted-"), strings.HasPrefix(vm, "once-"): // nothing starts them again
			continue
		case strings.HasPrefix(vm, "rerun-1"), strings.HasPrefix(vm, "manual-"):
			if now, ok := d.vmis()[vm]; !ok || now.IsFinal() {
				d.requestStart(vm)
			}
		}
		d.running(machine{name: vm})
	}
}

// step does something and writes down what came of it.
func (d *day) step(what string, act func()) {
	d.Helper()
	before, begun := d.vmis(), time.Now()
	d.timeline.during(what, act)
	d.row(what, fmt.Sprintf("%.0f s", time.Since(begun).Seconds()), before, d.vmis(), begun)
	fmt.Printf("     %5.1fs  %s %s\n", time.Since(d.started).Seconds(), strings.TrimPrefix(d.Name(), "Test"), d.rows[len(d.rows)-1])
}

func (d *day) row(what, took string, before, after vmis, begun time.Time) {
	became, longest, who := map[fate][]string{}, time.Duration(0), ""
	for name, was := range before {
		fate := before.fate(after, name)
		if (fate == migrated || fate == restarted) && was.Status.Phase != v1.Running {
			fate = "started" // it waited, or was off
		}
		became[fate] = append(became[fate], name)
		if down := d.timeline.down(name, begun, time.Now()); down > longest {
			longest, who = down, name
		}
	}
	for name := range after {
		if _, was := before[name]; !was {
			became["started"] = append(became["started"], name)
		}
	}
	var parts []string
	for _, fate := range []fate{migrated, restarted, "started", waits, off, unsettled, stays} {
		if names := became[fate]; len(names) > 0 {
			text := fmt.Sprintf("%d %s", len(names), fate)
			if fate != stays {
				text += " (" + byKind(names) + ")"
			}
			parts = append(parts, text)
		}
	}
	down := "–"
	if who != "" {
		down = fmt.Sprintf("%.1f s (%s)", longest.Seconds(), who)
	}
	d.rows = append(d.rows, fmt.Sprintf("| %s | %s | %s | %s |", what, took, strings.Join(parts, "; "), down))
}

// byKind says how many VMs of each kind there are among the names: web-1, web-2 and db-1 are "db, web ×2".
func byKind(names []string) string {
	counts := map[string]int{}
	for _, name := range names {
		counts[strings.TrimRight(name, "-0123456789")]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		if counts[kind] > 1 {
			kind = fmt.Sprintf("%s ×%d", kind, counts[kind])
		}
		parts = append(parts, kind)
	}
	return strings.Join(parts, ", ")
}

// write leaves the timeline for the docs.
func (d *day) write() {
	text := "| step | it took | the VMs | longest that one was down |\n| --- | --- | --- | --- |\n" + strings.Join(d.rows, "\n") + "\n"
	require.NoError(d, os.WriteFile(filepath.Join(out(), "day.md"), []byte(text), 0o644))
}

// nothingTwiceNow checks that no VM has two launchers that run. One that a migration has prepared, and that the VM has not
// reached, has no guest.
func (d *day) nothingTwiceNow() {
	pods, err := d.kube.CoreV1().Pods(d.namespace).List(d.Context(), metav1.ListOptions{LabelSelector: v1.AppLabel + "=virt-launcher"})
	require.NoError(d, err)
	migrations, err := d.virt.VirtualMachineInstanceMigration(d.namespace).List(d.Context(), metav1.ListOptions{})
	require.NoError(d, err)
	prepared := map[string]bool{}
	for _, migration := range migrations.Items {
		prepared[string(migration.UID)] = !migration.IsFinal()
	}
	launchers := map[string]int{}
	for _, pod := range pods.Items {
		if pod.Status.Phase == corev1.PodRunning && !prepared[pod.Labels[v1.MigrationJobLabel]] {
			launchers[pod.Annotations[v1.DomainAnnotation]]++
		}
	}
	for vm, count := range launchers {
		assert.Equal(d, 1, count, "launchers of %s that run", vm)
	}
}

// What kubectl drain-preview says of VMs that migrate, compared with KubeVirt's migration controller: whether the migration
// that a drain or an upgrade leads to gets as far as a target that is ready, and what holds it up if not.
package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	v1 "kubevirt.io/api/core/v1"

	"kubevirt.io/kubevirt/pkg/controller"
	netannotations "kubevirt.io/kubevirt/pkg/network/pod/annotations"
	"kubevirt.io/kubevirt/pkg/virt-controller/watch/migration"

	preview "cozy-kubevirt/cmd/kubectl-drain_preview/verdict"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
)

// moving is a VMI that can migrate, with what may stand in its way.
type moving struct {
	*placed
	evacuated
	quota bool // one that refuses pods
}

func newMoving(t *testing.T) *moving {
	m := &moving{placed: newPlaced(t)}
	launcher := m.starts()
	freed[preview.ByStrategy](&evacuated{vmi: m.placed.vmi}) // it can migrate
	m.evacuated = evacuated{vmi: m.placed.vmi, node: m.placed.node, launchers: []*k8sv1.Pod{launcher}}
	config := *m.cr.Spec.Configuration.DeepCopy()
	if config.MigrationConfiguration == nil {
		config.MigrationConfiguration = &v1.MigrationConfiguration{}
	}
	m.cr.Spec.Configuration = config
	return m
}

// underWay is its migration, which is yet to begin if nothing else is said.
func (m *moving) underWay() *v1.VirtualMachineInstanceMigration {
	if len(m.migrations) == 0 {
		m.migrations = append(m.migrations, known(&v1.VirtualMachineInstanceMigration{
			Spec:   v1.VirtualMachineInstanceMigrationSpec{VMIName: vmiName},
			Status: v1.VirtualMachineInstanceMigrationStatus{Phase: v1.MigrationPending},
		}))
	}
	return m.migrations[0]
}

// known is a migration as it is once the API server and virt-api's webhook have had it.
func known(m *v1.VirtualMachineInstanceMigration) *v1.VirtualMachineInstanceMigration {
	m.Namespace, m.Name, m.UID = chart.Namespace, "migration", "uid-of-the-migration"
	m.CreationTimestamp = metav1.Now()
	m.Finalizers = []string{v1.VirtualMachineInstanceMigrationFinalizer}
	m.Labels = map[string]string{v1.MigrationSelectorLabel: vmiName}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[v1.ControllerAPILatestVersionObservedAnnotation] = v1.ApiLatestVersion
	m.Annotations[v1.ControllerAPIStorageVersionObservedAnnotation] = v1.ApiStorageVersion
	return m
}

// launcherOn is another launcher of the VMI, which runs.
func (m *moving) launcherOn(node string) *k8sv1.Pod {
	pod := ready(m.launchers[0].DeepCopy(), node)
	m.launchers = append(m.launchers, pod)
	return pod
}

// target is where its migration goes.
func (m *moving) target() *k8sv1.Pod {
	m.underWay().Status.Phase = v1.MigrationScheduling
	target := m.launcherOn(there)
	target.Labels[v1.MigrationJobLabel] = string(m.underWay().UID)
	target.Annotations[v1.MigrationJobNameAnnotation] = m.underWay().Name
	return target
}

// ready is a pod as its kubelet leaves it.
func ready(pod *k8sv1.Pod, node string) *k8sv1.Pod {
	pod.Name, pod.Namespace = "virt-launcher-on-"+node, chart.Namespace
	pod.UID, pod.Spec.NodeName = types.UID("uid-of-"+pod.Name), node
	pod.CreationTimestamp = metav1.Now()
	pod.Status = k8sv1.PodStatus{Phase: k8sv1.PodRunning, ContainerStatuses: []k8sv1.ContainerStatus{
		{Name: "compute", Ready: true, State: k8sv1.ContainerState{Running: &k8sv1.ContainerStateRunning{}}}}}
	return pod
}

// pending is a pod that waits, since then, for a node or its kubelet.
func pending(pod *k8sv1.Pod, since time.Duration, conditions ...k8sv1.PodCondition) {
	pod.CreationTimestamp = metav1.NewTime(time.Now().Add(-since))
	pod.Status = k8sv1.PodStatus{Phase: k8sv1.PodPending, Conditions: conditions}
}

func (m *moving) limits() *v1.MigrationConfiguration {
	return m.cr.Spec.Configuration.MigrationConfiguration
}

const critical = "a migration that waits for no backup"

// obstacles are what may stand in a migration's way, each with the cause that the preview calls it by; NoCause does not
// hold it up.
var obstacles = map[string]struct {
	put   func(*moving)
	cause preview.Cause
}{
	"no migration may run":     {func(m *moving) { m.limits().ParallelMigrationsPerCluster = new(uint32) }, preview.ByLimit},
	"none may leave a node":    {func(m *moving) { m.limits().ParallelOutboundMigrationsPerNode = new(uint32) }, preview.ByLimit},
	"a mark for another node":  {func(m *moving) { m.evacuated.vmi.Status.EvacuationNodeName = there }, preview.ByStaleMark},
	"it says that it migrates": {func(m *moving) { histories["says that it migrates"](&m.evacuated) }, preview.ByMigration},
	"a utility volume": {func(m *moving) {
		m.evacuated.vmi.Spec.UtilityVolumes = []v1.UtilityVolume{{Name: "backup"}}
	}, preview.ByVolume},
	"a ResourceQuota": {func(m *moving) {
		m.quota = true
		m.underWay().Status.Conditions = []v1.VirtualMachineInstanceMigrationCondition{
			{Type: v1.VirtualMachineInstanceMigrationRejectedByResourceQuota, Status: k8sv1.ConditionTrue}}
	}, preview.ByQuota},
	"a second launcher": {func(m *moving) { m.launcherOn("node-c") }, preview.ByLeftover},
	"one that terminates": {func(m *moving) {
		m.launcherOn("node-d").DeletionTimestamp = &metav1.Time{Time: time.Now()}
	}, preview.ByLeftover},
	"a target that has no node": {func(m *moving) {
		pending(m.target(), time.Minute, k8sv1.PodCondition{Type: k8sv1.PodScheduled, Status: k8sv1.ConditionFalse, Reason: k8sv1.PodReasonUnschedulable})
	}, preview.ByTarget},
	"a target that does not start": {func(m *moving) { pending(m.target(), 10*time.Minute) }, preview.ByTarget},
	"a target that is ready":       {func(m *moving) { m.target() }, preview.NoCause},
	"a target that has just become ready": {func(m *moving) {
		m.target()
		m.underWay().Status.Phase = v1.MigrationPending
	}, preview.NoCause},
	"a migration that is yet to begin": {func(m *moving) { m.underWay() }, preview.NoCause},
	critical: {func(m *moving) {
		priority := v1.PrioritySystemCritical
		m.underWay().Spec.Priority = &priority
	}, preview.NoCause},
	"the drain taint": {func(m *moving) { m.taint("kubevirt.io/drain", k8sv1.TaintEffectNoSchedule) }, preview.NoCause},
	"a backup": {func(m *moving) {
		m.evacuated.vmi.Status.ChangedBlockTracking = &v1.ChangedBlockTrackingStatus{BackupStatus: &v1.VirtualMachineInstanceBackupStatus{BackupName: "nightly"}}
	}, preview.NoCause},
}

// among are the combinations of so many of the obstacles, in an order that does not change. A VMI has one target.
func among(n int, names []string) (all [][]string) {
	if n == 0 || len(names) == 0 {
		return [][]string{nil}
	}
	for i, name := range names {
		for _, rest := range among(n-1, names[i+1:]) {
			all = append(all, append([]string{name}, rest...))
		}
	}
	return append(all, nil)
}

func put(t *testing.T, names []string) *moving {
	m := newMoving(t)
	for _, name := range names {
		obstacles[name].put(m)
	}
	return m
}

// reached is how far a migration has got.
type reached struct {
	goes    bool // its target is ready, so that virt-handler is told of it
	why     string
	aborted bool // the backup
	left    *v1.VirtualMachineInstanceMigration
}

// drained is what becomes of the VMI once kubectl drain has asked for its launcher's eviction.
func (m *moving) drained() reached {
	config := clusterConfig(m.t, m.cr)
	vmi := askAbout(m.t, config, m.evacuated.vmi.DeepCopy(), situation{pod: source, asker: drain}).after
	for _, created := range m.evacuate(m.t, config, vmi) {
		return m.migrate(vmi, append([]*v1.VirtualMachineInstanceMigration{known(&created)}, m.migrations...))
	}
	return m.migrate(vmi, m.migrations)
}

// upgraded is what becomes of it once KubeVirt has another launcher.
func (m *moving) upgraded() reached {
	config := clusterConfig(m.t, m.cr)
	for _, created := range m.evacuate(m.t, config, m.evacuated.vmi) { // who has the drain taint
		return m.migrate(m.evacuated.vmi, append([]*v1.VirtualMachineInstanceMigration{known(&created)}, m.migrations...))
	}
	var created []*v1.VirtualMachineInstanceMigration
	synctest.Test(m.t, func(t *testing.T) {
		u := newUpgrade(t, m.cr)
		vmi := m.evacuated.vmi.DeepCopy()
		vmi.Status.LauncherContainerImageVersion = oldLauncher
		u.vmis.add(t, vmi)
		for _, launcher := range m.launchers {
			u.pods.add(t, launcher)
		}
		for _, migration := range m.migrations {
			u.moves.add(t, migration)
		}
		u.run(10 * time.Second)
		for _, o := range u.moves.GetStore().List() {
			if migration := o.(*v1.VirtualMachineInstanceMigration); migration.UID == "" {
				migration.Status.Phase = v1.MigrationPhaseUnset
				created = append(created, migration)
			}
		}
	})
	for _, migration := range created {
		known(migration)
	}
	return m.migrate(m.evacuated.vmi, append(created, m.migrations...))
}

// migrate has KubeVirt's migration controller act on the first migration, and nodes start the pods that it creates.
func (m *moving) migrate(vmi *v1.VirtualMachineInstance, all []*v1.VirtualMachineInstanceMigration) reached {
	if len(all) == 0 {
		return reached{why: "no migration is created"}
	}
	c := newClient()
	if m.quota {
		c.k8s.PrependReactor("create", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.NewForbidden(k8sv1.Resource("pods"), "target", fmt.Errorf("exceeded quota: small"))
		})
	}
	vmis, pods, nodes := newInformer(controller.GetVMIInformerIndexers()), newInformer(), newInformer()
	migrations := newInformer(controller.GetVirtualMachineInstanceMigrationInformerIndexers())
	config := clusterConfig(m.t, m.cr)
	migrates, err := migration.NewController(m.templates, vmis, pods, migrations, nodes, m.claims, newInformer(), newInformer(), newInformer(),
		newInformer(), newInformer(), &record.FakeRecorder{}, c, config, netannotations.NewGenerator(config))
	require.NoError(m.t, err)
	defer migrates.Queue.ShutDown()
	first := all[0].DeepCopy()
	for _, migration := range all {
		require.NoError(m.t, migrations.indexer.Add(migration))
	}
	for _, launcher := range m.launchers {
		require.NoError(m.t, pods.indexer.Add(launcher))
	}
	require.NoError(m.t, nodes.indexer.Add(m.evacuated.node))
	require.NoError(m.t, c.virt.Tracker().Add(vmi.DeepCopy()))
	require.NoError(m.t, c.virt.Tracker().Add(first))
	r := reached{}
	for range 6 { // from phase to phase
		written, err := c.VirtualMachineInstance(vmi.Namespace).Get(m.t.Context(), vmi.Name, metav1.GetOptions{})
		require.NoError(m.t, err)
		require.NoError(m.t, vmis.indexer.Update(written))
		r.left, err = c.VirtualMachineInstanceMigration(first.Namespace).Get(m.t.Context(), first.Name, metav1.GetOptions{})
		require.NoError(m.t, err)
		require.NoError(m.t, migrations.indexer.Update(r.left))
		made, err := c.k8s.CoreV1().Pods(vmi.Namespace).List(m.t.Context(), metav1.ListOptions{})
		require.NoError(m.t, err)
		for i := range made.Items {
			if _, known, _ := pods.indexer.GetByKey(vmi.Namespace + "/virt-launcher-on-" + there); !known {
				pods.add(m.t, ready(&made.Items[i], there))
			}
		}
		migrates.Queue.Add(first.Namespace + "/" + first.Name)
		require.True(m.t, migrates.Execute())
	}
	for _, action := range c.virt.Actions() {
		r.aborted = r.aborted || action.GetSubresource() == "backup"
	}
	r.goes = r.left.Status.Phase == v1.MigrationScheduled
	r.why = "its migration is " + string(r.left.Status.Phase)
	return r
}

func TestPreviewAgreesWithTheMigrationController(t *testing.T) {
	names := slices.Sorted(maps.Keys(obstacles))
	for _, names := range among(3, names) {
		if !oneTarget(names) {
			continue
		}
		agreesOnTheMigration(t, names, func(m *moving) (preview.Drained, reached) {
			return preview.Drain(preview.NewPlatform(m.cr), m.situation()), m.drained()
		})
		count("previewed migrations", 1)
	}
}

func oneTarget(names []string) bool {
	n := 0
	for _, name := range names {
		if strings.HasPrefix(name, "a target") {
			n++
		}
	}
	return n <= 1
}

// agreesOnTheMigration takes away what the preview names, one after the other, until the VMI migrates.
func agreesOnTheMigration(t *testing.T, names []string, ask func(*moving) (preview.Drained, reached)) {
	t.Helper()
	for {
		predicted, got := ask(put(t, names))
		why := predicted.Why
		held := preview.Drained{Outcome: preview.Blocks, Why: why, End: preview.Waits, Cause: predicted.Cause}
		goes := preview.Drained{Outcome: preview.Migrates, Why: why, End: preview.Ends}
		if predicted == goes && slices.Contains(names, "a backup") && !got.goes {
			aborts := strings.Contains(why, "aborts its backup")
			assert.True(t, aborts || strings.Contains(why, "waits for its backup"), "%q: %v", why, names)
			assert.Equal(t, aborts && (hasMigrationPriorities || slices.Contains(names, critical)), got.aborted, "%q: %v", why, names)
			names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "a backup" })
			continue // it has ended
		}
		if want := map[bool]preview.Drained{true: goes, false: held}[got.goes]; predicted != want {
			t.Errorf("the preview says %v, and with KubeVirt %s: %v", predicted, got.why, names)
			return
		}
		if got.goes {
			return
		}
		at := slices.IndexFunc(names, func(name string) bool {
			return obstacles[name].cause == predicted.Cause && predicted.Cause != preview.NoCause
		})
		if at < 0 {
			t.Errorf("the preview names %q (%s), and there is no such thing: %v", predicted.Cause, why, names)
			return
		}
		names = slices.Delete(slices.Clone(names), at, at+1)
	}
}

func TestPreviewAgreesWithTheMigrationControllerOnAnUpgrade(t *testing.T) {
	names := slices.Sorted(maps.Keys(obstacles))
	for _, names := range among(2, names) {
		if !oneTarget(names) {
			continue
		}
		agreesOnTheMigration(t, names, func(m *moving) (preview.Drained, reached) {
			predicted := preview.Upgrade(preview.NewPlatform(m.cr), m.situation())
			// An upgrade says why, and no cause: a drain's is what to take away next.
			d := preview.Drained{Outcome: predicted.Outcome, Why: predicted.Why, End: preview.Ends}
			if predicted.Outcome == preview.Refused {
				d.Outcome, d.End, d.Cause = preview.Blocks, preview.Waits, preview.Drain(preview.NewPlatform(m.cr), m.situation()).Cause
			}
			return d, m.upgraded()
		})
		count("previewed migrations in an upgrade", 1)
	}
}

// The first refusal by a quota cannot be foreseen; KubeVirt notes it on the migration, where the preview reads it.
func TestPreviewSeesThatAQuotaHasRefusedATarget(t *testing.T) {
	m := put(t, []string{"a migration that is yet to begin"})
	m.quota = true
	got := m.drained()
	require.False(t, got.goes)
	m.migrations = []*v1.VirtualMachineInstanceMigration{got.left}
	predicted := preview.Drain(preview.NewPlatform(m.cr), m.situation())
	assert.Equal(t, preview.Blocks, predicted.Outcome, predicted.Why)
	assert.Equal(t, preview.ByQuota, predicted.Cause)
}

// A migration that failed is tried again after a pause, so that a drain just then does not get on; that it fails again
// cannot be known.
func TestPreviewDoesNotPromiseAMigrationAfterOneThatFailed(t *testing.T) {
	for name, c := range map[string]struct {
		phase  v1.VirtualMachineInstanceMigrationPhase
		ago    time.Duration
		goes   bool
		claims preview.Outcome
	}{
		"it has just failed":       {v1.MigrationFailed, time.Second, false, preview.Unknown},
		"it failed a while ago":    {v1.MigrationFailed, time.Hour, true, preview.Unknown},
		"it has just succeeded":    {v1.MigrationSucceeded, time.Second, true, preview.Migrates},
		"it succeeded a while ago": {v1.MigrationSucceeded, time.Hour, true, preview.Migrates},
	} {
		m := newMoving(t)
		past := known(&v1.VirtualMachineInstanceMigration{Spec: v1.VirtualMachineInstanceMigrationSpec{VMIName: vmiName}})
		past.Name, past.UID = "past", "uid-of-the-past"
		past.Annotations[v1.EvacuationMigrationAnnotation] = here
		ended := metav1.NewTime(time.Now().Add(-c.ago))
		past.CreationTimestamp = metav1.NewTime(ended.Add(-time.Minute))
		past.Status.Phase = c.phase
		past.Status.PhaseTransitionTimestamps = []v1.VirtualMachineInstanceMigrationPhaseTransitionTimestamp{{Phase: c.phase, PhaseTransitionTimestamp: ended}}
		m.migrations = []*v1.VirtualMachineInstanceMigration{past}
		predicted := preview.Drain(preview.NewPlatform(m.cr), m.situation())
		assert.Equal(t, c.claims, predicted.Outcome, "%s: %s", name, predicted.Why)
		assert.Equal(t, c.goes, m.drained().goes, name)
	}
}

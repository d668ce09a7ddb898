// P13, P14 and P17: whom KubeVirt's workload updater migrates and whom it evicts, and what its evictions are answered.
// The updater runs as it does in virt-controller, under the rendered CR; its evictions go to KubeVirt's own admitter.
// It runs on a fake clock (testing/synctest), so a batch interval of a minute takes no time.
package contract

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	k8sv1 "k8s.io/api/core/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	v1 "kubevirt.io/api/core/v1"

	"kubevirt.io/kubevirt/pkg/controller"
	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"
	workloadupdater "kubevirt.io/kubevirt/pkg/virt-controller/watch/workload-updater"

	"cozy-kubevirt/tests/kubevirt/internal/modules"
)

const (
	newLauncher = "launcher:new"
	oldLauncher = "launcher:old"
)

// upgrade is a platform on which the launcher image has just changed.
type upgrade struct {
	t      testing.TB
	cr     *v1.KubeVirt
	config *virtconfig.ClusterConfig
	vmis   *informer
	pods   *informer
	moves  *informer

	sync.Mutex
	evictions []event // let through
	refused   []event
	marked    map[string]bool
	migrated  map[string]bool
}

type event struct {
	vmi string
	at  time.Time
}

func newUpgrade(t testing.TB, cr *v1.KubeVirt) *upgrade {
	return &upgrade{
		t: t, cr: deployed(cr), config: clusterConfig(t, cr),
		vmis: newInformer(), pods: newInformer(), moves: newInformer(controller.GetVirtualMachineInstanceMigrationInformerIndexers()),
		marked: map[string]bool{}, migrated: map[string]bool{},
	}
}

// vm adds a running VM on the old launcher. Its VMI was created under the platform's CR.
func (u *upgrade) vm(name string, own v1.EvictionStrategy, canMigrate k8sv1.ConditionStatus, change ...func(*v1.VirtualMachineInstance)) {
	vmi := newVMI(own)
	vmi.Name, vmi.UID = name, types.UID("uid-of-"+name)
	vmi = create(u.t, u.config, vmi)
	vmi.Status = v1.VirtualMachineInstanceStatus{
		Phase:                         v1.Running,
		NodeName:                      here,
		LauncherContainerImageVersion: oldLauncher,
		Conditions:                    []v1.VirtualMachineInstanceCondition{{Type: v1.VirtualMachineInstanceIsMigratable, Status: canMigrate}},
	}
	for _, c := range change {
		c(vmi)
	}
	launcher := podsOf(vmi, source)[0]
	launcher.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(vmi, v1.VirtualMachineInstanceGroupVersionKind)}
	u.vmis.add(u.t, vmi)
	u.pods.add(u.t, launcher)
}

// run lets the updater work for a while, by its own clock.
func (u *upgrade) run(d time.Duration) {
	u.t.Helper()
	kubeVirts := newInformer()
	c := newClient()
	c.k8s.PrependReactor("create", "pods", u.evict)
	c.virt.PrependReactor("create", "virtualmachineinstancemigrations", u.migrate)
	c.virt.PrependReactor("patch", "kubevirts", func(k8stesting.Action) (bool, runtime.Object, error) { return true, u.cr, nil })

	updater, err := workloadupdater.NewWorkloadUpdateController(newLauncher, slowStore{u.vmis}, u.pods, u.moves, kubeVirts,
		&record.FakeRecorder{}, c, u.config)
	require.NoError(u.t, err)
	stop := make(chan struct{})
	go updater.Run(stop)
	kubeVirts.add(u.t, u.cr)
	time.Sleep(d) // of the fake clock
	close(stop)
	time.Sleep(time.Minute) // so that the updater and its queue are gone
}

// slowStore makes each look at the VMIs take a second of the fake clock. The updater looks again at once while it has
// anything to do: the 30 that it passes to AddAfter are nanoseconds (workload-updater.go:55,499).
type slowStore struct{ *informer }

func (s slowStore) GetStore() cache.Store { return slowList{s.informer.GetStore()} }

type slowList struct{ cache.Store }

func (s slowList) List() []any {
	time.Sleep(time.Second)
	return s.Store.List()
}

// evict is the API server's part: the eviction goes through KubeVirt's webhook; a pod that is let go is deleted, and
// its VM is gone from the node.
func (u *upgrade) evict(action k8stesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "eviction" {
		return false, nil, nil
	}
	u.Lock()
	defer u.Unlock()
	eviction := action.(k8stesting.CreateAction).GetObject().(*policyv1beta1.Eviction)
	pod, _, err := u.pods.indexer.GetByKey(eviction.Namespace + "/" + eviction.Name)
	require.NoError(u.t, err)
	vmi := u.vmi(pod.(*k8sv1.Pod).Annotations[v1.DomainAnnotation])

	a := askAbout(u.t, u.config, vmi, situation{pod: source, asker: updater})
	happened := event{vmi.Name, time.Now()}
	if !a.allowed {
		u.refused = append(u.refused, happened)
		u.marked[vmi.Name] = a.after.Status.EvacuationNodeName != ""
		require.NoError(u.t, u.vmis.indexer.Update(a.after))
		return true, nil, errors.NewTooManyRequests(a.message, 0)
	}
	u.evictions = append(u.evictions, happened)
	require.NoError(u.t, u.vmis.indexer.Delete(vmi))
	return true, nil, nil
}

// migrate is the rest of virt-controller's part: the migration is there, and runs on.
func (u *upgrade) migrate(action k8stesting.Action) (bool, runtime.Object, error) {
	u.Lock()
	defer u.Unlock()
	migration := action.(k8stesting.CreateAction).GetObject().(*v1.VirtualMachineInstanceMigration).DeepCopy()
	migration.Name = migration.GenerateName + migration.Spec.VMIName
	migration.Status.Phase = v1.MigrationRunning
	u.migrated[migration.Spec.VMIName] = true
	u.moves.add(u.t, migration)
	return true, migration, nil
}

func (u *upgrade) vmi(name string) *v1.VirtualMachineInstance {
	o, exists, err := u.vmis.indexer.GetByKey(newVMI(unset).Namespace + "/" + name)
	require.NoError(u.t, err)
	require.True(u.t, exists, "VMI %s", name)
	return o.(*v1.VirtualMachineInstance)
}

// batches counts the evictions that were let through by the time they happened.
func batches(events []event) (sizes []int, gaps []time.Duration) {
	var last time.Time
	for _, e := range events {
		if len(sizes) == 0 || e.at.Sub(last) > time.Second {
			if len(sizes) > 0 {
				gaps = append(gaps, e.at.Sub(last))
			}
			sizes = append(sizes, 0)
			last = e.at
		}
		sizes[len(sizes)-1]++
	}
	return sizes, gaps
}

// workload-updater.go: whom (391-427), how many at once (507-550), and by which call (614).
func TestP13_AnUpgradeMigratesWhatCanAndEvictsTheRestTenAMinute(t *testing.T) {
	cr := rendered(t)
	synctest.Test(t, func(t *testing.T) {
		u := newUpgrade(t, cr)
		for i := range 25 {
			u.vm(fmt.Sprintf("stuck-%d", i), unset, k8sv1.ConditionFalse)
		}
		for i := range 3 {
			u.vm(fmt.Sprintf("mobile-%d", i), unset, k8sv1.ConditionTrue)
		}
		u.run(4 * time.Minute)

		sizes, gaps := batches(u.evictions)
		assert.Equal(t, []int{10, 10, 5}, sizes, "P13 is broken: an upgrade restarts VMs at another pace than 10 at a time")
		for _, gap := range gaps {
			assert.InDelta(t, time.Minute, gap, float64(5*time.Second), "P13 is broken: an upgrade restarts a batch of VMs at another pace than one a minute")
		}
		assert.Len(t, u.migrated, 3, "P13 is broken: VMs that can migrate stay on the old launcher, or are counted against the batch")
		assert.Empty(t, u.refused)
		for _, e := range u.evictions {
			assert.NotContains(t, e.vmi, "mobile", "P13 is broken: an upgrade restarts a VM that could have migrated")
		}
	})
}

func TestP13_MigrationsDoNotWaitForABatch(t *testing.T) {
	cr := rendered(t)
	synctest.Test(t, func(t *testing.T) {
		u := newUpgrade(t, cr)
		for i := range 12 {
			u.vm(fmt.Sprintf("stuck-%d", i), unset, k8sv1.ConditionFalse)
			u.vm(fmt.Sprintf("mobile-%d", i), unset, k8sv1.ConditionTrue)
		}
		u.run(30 * time.Second)
		assert.Len(t, u.evictions, *cr.Spec.WorkloadUpdateStrategy.BatchEvictionSize, "P13 is broken: the first batch is not one batch")
		atOnce := int(*u.config.GetMigrationConfiguration().ParallelMigrationsPerCluster)
		assert.Len(t, u.migrated, atOnce, "P13 is broken: migrations are held back by the batch, or not by parallelMigrationsPerCluster")
	})
}

func TestP07_AnUpgradeLeavesAVMIOfLiveMigrateOnTheOldLauncher(t *testing.T) {
	cr := rendered(t)
	synctest.Test(t, func(t *testing.T) {
		u := newUpgrade(t, cr)
		u.vm("old", migrate, k8sv1.ConditionFalse) // what a creation before the switch has stamped
		u.run(3 * time.Minute)
		assert.Empty(t, u.evictions, "P7 is broken: an upgrade shuts down a VM whose tenant was promised LiveMigrate")
		assert.NotEmpty(t, u.refused, "P7: the updater tries, and gets 429")
		assert.False(t, u.marked["old"])
	})
}

func TestP17_AnUpgradeNeverShutsDownATenantWorker(t *testing.T) {
	cr := rendered(t)
	synctest.Test(t, func(t *testing.T) {
		u := newUpgrade(t, cr)
		u.vm("worker-that-migrates", external, k8sv1.ConditionTrue)
		u.vm("worker-that-cannot", external, k8sv1.ConditionFalse)
		u.run(3 * time.Minute)
		assert.Empty(t, u.evictions, "P17 is broken: an upgrade shuts a tenant's worker down before its provider could replace it")
		assert.True(t, u.migrated["worker-that-migrates"], "P17 is broken: a worker that could migrate stays on the old launcher")
		assert.True(t, u.marked["worker-that-cannot"],
			"P17 is broken: nothing tells the provider to replace a worker that cannot migrate; it stays on the old launcher for good")
		assert.Equal(t, v1.Running, u.vmi("worker-that-cannot").Status.Phase)
	})
}

// virt-controller sets the condition when the sockets of a VMI differ from those of its guest
// (pkg/virt-controller/watch/vmi/lifecycle.go:502-504, 1146-1156); memory goes the same way.
func TestP14_ACPUChangeOfAVMThatCannotMigrateRestartsItWithinABatch(t *testing.T) {
	cr := rendered(t)
	for _, condition := range []v1.VirtualMachineInstanceConditionType{v1.VirtualMachineInstanceVCPUChange, v1.VirtualMachineInstanceMemoryChange} {
		synctest.Test(t, func(t *testing.T) {
			u := newUpgrade(t, cr)
			upToDate := func(vmi *v1.VirtualMachineInstance) { vmi.Status.LauncherContainerImageVersion = newLauncher }
			changed := func(vmi *v1.VirtualMachineInstance) {
				upToDate(vmi)
				vmi.Status.Conditions = append(vmi.Status.Conditions,
					v1.VirtualMachineInstanceCondition{Type: condition, Status: k8sv1.ConditionTrue})
			}
			u.vm("stuck", unset, k8sv1.ConditionFalse, changed)
			u.vm("mobile", unset, k8sv1.ConditionTrue, changed)
			u.vm("untouched", unset, k8sv1.ConditionFalse, upToDate)
			u.run(time.Minute)
			require.Len(t, u.evictions, 1, "P14 is broken: want exactly the VM that cannot migrate and got more CPUs restarted (%s)", condition)
			assert.Equal(t, "stuck", u.evictions[0].vmi)
			assert.Equal(t, map[string]bool{"mobile": true}, u.migrated, "P14 is broken: a VM that can migrate does not get its new CPUs (%s)", condition)
		})
	}
}

// The batch is cut before anybody is asked (workload-updater.go:549), so a VM that nobody restarted after the
// switch slows the upgrade of the others.
func TestP13_AVMIThatIsRefusedStillTakesItsPlaceInTheBatch(t *testing.T) {
	cr := rendered(t)
	synctest.Test(t, func(t *testing.T) {
		u := newUpgrade(t, cr)
		for i := range 15 {
			u.vm(fmt.Sprintf("old-%d", i), migrate, k8sv1.ConditionFalse)
			u.vm(fmt.Sprintf("new-%d", i), unset, k8sv1.ConditionFalse)
		}
		u.run(30 * time.Second)
		assert.Equal(t, *cr.Spec.WorkloadUpdateStrategy.BatchEvictionSize, len(u.evictions)+len(u.refused),
			"P13 is broken: an upgrade asks for more than a batch at once")
	})
}

// docs/upgrade.md warns of it; once a release has a pause the warning goes. Read from source: nothing here waits for
// nanoseconds.
func TestTheUpdatersPauseIsStillOneOfNanoseconds(t *testing.T) {
	const source = "pkg/virt-controller/watch/workload-updater/workload-updater.go"
	assert.Equal(t, "const periodicReEnqueueIntervalSeconds = 30", modules.Line(t, source+":55"))
	assert.Contains(t, modules.Line(t, source+":499"), "AddAfter(key, periodicReEnqueueIntervalSeconds)")
}

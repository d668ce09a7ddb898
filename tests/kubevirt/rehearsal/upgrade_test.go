package rehearsal

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cozy-kubevirt/tests/kubevirt/internal/client"
	"cozy-kubevirt/tests/kubevirt/internal/platform"
	v1 "kubevirt.io/api/core/v1"
	workloadupdater "kubevirt.io/kubevirt/pkg/virt-controller/watch/workload-updater"
)

// The scenarios that change the policy, KubeVirt's version or a VM's CPU.

func TestSwitchRestartsNothing(t *testing.T) {
	s := rehearseFromOldPolicy(t)
	first := s.node("a")
	s.create(migratable("migratable"), onLocalDisk("on-local-disk"))
	before := s.vmis()

	s.switchPolicy()
	s.always("nothing restarts", 2*time.Second, func() string {
		return s.differs(before, map[string]fate{"migratable": stays, "on-local-disk": stays})
	})

	s.node("b")
	drain := s.drain(first, holdTimeout)
	require.ErrorContains(t, drain.err, "global timeout reached")
	assert.Contains(t, drain.output, refusal("on-local-disk"))
	s.become(before, map[string]fate{"migratable": migrated, "on-local-disk": stays})

	s.restart("on-local-disk")
	drain = s.drain(first, patience)
	require.NoError(t, drain.err, drain.output)
	s.verdict = "after the switch nothing restarts; a VM from before it still holds a drain, until it is restarted once"
}

func TestUpgradeEvictsInBatches(t *testing.T) {
	s := rehearseFromOldPolicy(t)
	s.node("a")
	fates := map[string]fate{}
	fromBefore := []string{"from-before-1", "from-before-2"}
	for _, name := range fromBefore {
		s.create(onLocalDisk(name))
		fates[name] = stays
	}
	s.switchPolicy()

	kubeVirt, err := cluster.KubeVirt(t.Context())
	require.NoError(t, err)
	strategy := kubeVirt.Spec.WorkloadUpdateStrategy
	require.NotNil(t, strategy.BatchEvictionSize)
	require.NotNil(t, strategy.BatchEvictionInterval)
	const promised = 10
	assert.Equal(t, promised, *strategy.BatchEvictionSize, "the CR's batchEvictionSize")
	assert.Equal(t, time.Minute, strategy.BatchEvictionInterval.Duration, "the CR's batchEvictionInterval")

	var machines []machine
	for i := range 25 {
		m := onLocalDisk(fmt.Sprintf("vm-%02d", i))
		machines, fates[m.name] = append(machines, m), restarted
	}
	for i := range 3 {
		m := migratable(fmt.Sprintf("migratable-%d", i))
		machines, fates[m.name] = append(machines, m), migrated
	}
	s.create(machines...)
	before := s.vmis()
	s.node("b")

	s.upgrade(nil)
	s.become(before, fates)
	for name, vmi := range s.vmis() {
		if fates[name] == stays {
			assert.Equal(t, oldLauncher, vmi.Status.LauncherContainerImageVersion, name)
		} else {
			assert.Equal(t, newLauncher, vmi.Status.LauncherContainerImageVersion, name)
		}
	}

	s.eventually("the updater has asked for every VM that cannot migrate", func() string {
		asked := map[string]bool{}
		for _, eviction := range cluster.Evictions(s.namespace) {
			asked[eviction.Pod] = true
		}
		if len(asked) != 25+len(fromBefore) {
			return fmt.Sprintf("for %d", len(asked))
		}
		return ""
	})
	var sizes []string
	for i, size := range batches(cluster.Evictions(s.namespace)) {
		assert.LessOrEqual(t, size, promised, "evictions in batch %d", i+1)
		sizes = append(sizes, fmt.Sprint(size))
	}

	// Those that still carry LiveMigrate the updater asks for, too, and reports that it may not have them.
	s.eventually("the updater counts the VMIs that stay outdated", func() string {
		copied, err := s.virt.KubeVirt(s.namespace).Get(t.Context(), client.Release, metav1.GetOptions{})
		if count := copied.Status.OutdatedVirtualMachineInstanceWorkloads; err != nil || count == nil || *count != len(fromBefore) {
			return fmt.Sprintf("outdated: %v, %v", count, err)
		}
		return ""
	})
	for _, vm := range fromBefore {
		s.eventually("the updater reports the refusal", func() string {
			return s.noEvent(vm, workloadupdater.FailedEvictVirtualMachineInstanceReason, refusal(vm))
		})
	}
	s.become(before, fates)
	s.verdict = fmt.Sprintf("an upgrade migrates what can and evicts the rest in batches (asked for %s); VMs from before the switch stay up, outdated, and are reported",
		strings.Join(sizes, ", "))
}

// batches counts the evictions in each batch: one begins when an interval has passed since the last one began. (What is
// asked within an interval is one batch; a little is allowed for the time that a request takes.)
func batches(evictions []platform.Eviction) []int {
	var sizes []int
	var begun time.Time
	for _, eviction := range evictions {
		if len(sizes) == 0 || eviction.At.Sub(begun) > batchInterval*3/4 {
			sizes, begun = append(sizes, 0), eviction.At
		}
		sizes[len(sizes)-1]++
	}
	return sizes
}

func TestTenantWorkerIsLeftToItsOwner(t *testing.T) {
	s := rehearse(t)
	s.node("a")
	s.create(migratable("worker").with(v1.EvictionStrategyExternal), onLocalDisk("on-local-disk").with(v1.EvictionStrategyExternal))
	before := s.vmis()
	s.node("b")

	s.upgrade(nil)
	s.become(before, map[string]fate{"worker": migrated})
	s.eventually("the updater's eviction marks the worker that cannot migrate", func() string { return s.unmarked("on-local-disk") })
	s.always("it runs on", batchInterval, func() string {
		return s.differs(before, map[string]fate{"on-local-disk": stays})
	})
	s.restart("on-local-disk") // as Cluster API's provider does when its machine is replaced
	require.Equal(t, newLauncher, s.vmis()["on-local-disk"].Status.LauncherContainerImageVersion)

	before = s.vmis()
	drain := s.drain(before["worker"].Status.NodeName, holdTimeout)
	require.ErrorContains(t, drain.err, "global timeout reached")
	assert.Contains(t, drain.output, fmt.Sprintf(`Eviction triggered evacuation of VMI "%s/worker"`, s.namespace))
	require.Empty(t, s.unmarked("worker"))
	s.become(before, map[string]fate{"worker": stays})
	s.verdict = "a tenant worker is marked by the upgrade and by the drain, and not shut down; deleted by its owner, it starts on the new launcher"
}

func TestTenantWorkerWithoutEvictStaysOutdated(t *testing.T) {
	s := rehearse(t)
	s.node("a")
	s.create(onLocalDisk("worker").with(v1.EvictionStrategyExternal))
	before := s.vmis()

	s.upgrade(func(kubeVirt *v1.KubeVirt) {
		kubeVirt.Spec.WorkloadUpdateStrategy.WorkloadUpdateMethods = []v1.WorkloadUpdateMethod{v1.WorkloadUpdateMethodLiveMigrate}
	})
	s.eventually("the updater sees it", func() string {
		copied, err := s.virt.KubeVirt(s.namespace).Get(t.Context(), client.Release, metav1.GetOptions{})
		if count := copied.Status.OutdatedVirtualMachineInstanceWorkloads; err != nil || count == nil || *count != 1 {
			return fmt.Sprintf("outdated: %v, %v", count, err)
		}
		return ""
	})
	s.always("nobody touches it", 2*batchInterval, func() string {
		if s.unmarked("worker") == "" {
			return "it is marked"
		}
		return s.differs(before, map[string]fate{"worker": stays})
	})
	s.verdict = "without Evict a tenant worker that cannot migrate would not even be marked, and stay on the old launcher"
}

func TestCPUChangeRestartsWhatCannotMigrate(t *testing.T) {
	s := rehearse(t)
	s.node("a")
	s.create(migratable("migratable"), onLocalDisk("on-local-disk"))
	before := s.vmis()
	s.node("b")

	begun := time.Now()
	patch := []byte(`[{"op": "replace", "path": "/spec/template/spec/domain/cpu/sockets", "value": 2}]`)
	for vm := range before {
		_, err := s.virt.VirtualMachine(s.namespace).Patch(t.Context(), vm, types.JSONPatchType, patch, metav1.PatchOptions{})
		require.NoError(t, err)
	}
	s.timeline.mark("CPU sockets changed")
	s.become(before, map[string]fate{"migratable": migrated, "on-local-disk": restarted})
	took := time.Since(begun)
	for name, vmi := range s.vmis() {
		assert.EqualValues(t, 2, vmi.Status.CurrentCPUTopology.Sockets, name)
	}
	s.verdict = fmt.Sprintf("a CPU change migrates a running VM that can, and restarts one that cannot, within %.0f s", took.Seconds())
}

// unmarked complains of a VMI that is not marked for evacuation from where it runs.
func (s *scenario) unmarked(name string) string {
	vmi := s.vmis()[name]
	if vmi.Status.EvacuationNodeName == "" || vmi.Status.EvacuationNodeName != vmi.Status.NodeName {
		return describe(vmi)
	}
	return ""
}

// noEvent complains if there is no such event of the VMI.
func (s *scenario) noEvent(vmi, reason, message string) string {
	events, err := s.kube.CoreV1().Events(s.namespace).List(context.Background(), metav1.ListOptions{
		FieldSelector: "reason=" + reason + ",involvedObject.name=" + vmi,
	})
	if err != nil {
		return err.Error()
	}
	for _, event := range events.Items {
		if strings.Contains(event.Message, message) {
			return ""
		}
	}
	return fmt.Sprintf("no event %s of %s", reason, vmi)
}

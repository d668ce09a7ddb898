package rehearsal

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	v1 "kubevirt.io/api/core/v1"
)

// The scenarios that drain a node.

func TestDrainEndsAndTheVMsGoOn(t *testing.T) {
	s := rehearse(t)
	first := s.node("a")
	s.create(migratable("migratable"), onLocalDisk("on-local-disk"), withGPU("with-gpu"))
	before := s.vmis()
	s.node("b")

	drain := s.drain(first, patience)
	require.NoError(t, drain.err, drain.output)
	s.become(before, map[string]fate{"migratable": migrated, "on-local-disk": restarted, "with-gpu": restarted})
	s.verdict = fmt.Sprintf("a drain ends, in %.0f s: what can migrate has, a VM on a local disk and one with a GPU restarted elsewhere",
		drain.took.Seconds())
}

func TestOldPolicyBlocksTheDrain(t *testing.T) {
	s := rehearseFromOldPolicy(t)
	first := s.node("a")
	s.create(migratable("migratable"), onLocalDisk("on-local-disk"), withGPU("with-gpu"))
	before := s.vmis()
	s.node("b")

	drain := s.drain(first, holdTimeout)
	require.ErrorContains(t, drain.err, "global timeout reached")
	for _, vm := range []string{"on-local-disk", "with-gpu"} {
		assert.Contains(t, drain.output, refusal(vm))
	}
	s.become(before, map[string]fate{"migratable": migrated, "on-local-disk": stays, "with-gpu": stays})
	s.verdict = "under the old policy the same drain does not end: the webhook refuses to evict what cannot migrate"
}

// refusal is what the eviction webhook says of a VMI that carries LiveMigrate and cannot migrate
// (pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go:149).
func refusal(vm string) string {
	return fmt.Sprintf("VMI %s is configured with an eviction strategy but is not live-migratable", vm)
}

func TestOptOutOfOneVM(t *testing.T) {
	s := rehearse(t)
	first := s.node("a")
	s.create(onLocalDisk("holds").with(v1.EvictionStrategyLiveMigrate), migratable("lets-go").with(v1.EvictionStrategyNone))
	before := s.vmis()
	s.node("b")

	drain := s.drain(first, holdTimeout)
	require.ErrorContains(t, drain.err, "global timeout reached")
	assert.Contains(t, drain.output, refusal("holds"))
	s.become(before, map[string]fate{"holds": stays, "lets-go": restarted})
	s.verdict = "a VM with LiveMigrate of its own holds the drain; one with None is let go, though it could migrate"
}

func TestRunStrategyDecidesAfterTheEviction(t *testing.T) {
	s := rehearse(t)
	first := s.node("a")
	fates := map[string]fate{}
	var machines []machine
	for strategy, after := range map[v1.VirtualMachineRunStrategy]struct{ clean, crashed fate }{
		v1.RunStrategyAlways:         {clean: restarted, crashed: restarted},
		v1.RunStrategyRerunOnFailure: {clean: off, crashed: restarted},
		v1.RunStrategyManual:         {clean: off, crashed: off},
		v1.RunStrategyOnce:           {clean: off, crashed: off},
		v1.RunStrategyHalted:         {clean: off, crashed: off},
	} {
		name := strings.ToLower(string(strategy))
		machines = append(machines, onLocalDisk(name+"-clean").run(strategy), onLocalDisk(name+"-crashing").run(strategy).crashing())
		fates[name+"-clean"], fates[name+"-crashing"] = after.clean, after.crashed
	}
	s.create(machines...)
	before := s.vmis()
	s.node("b")

	drain := s.drain(first, patience)
	require.NoError(t, drain.err, drain.output)
	s.become(before, fates)
	s.always("that is final", 2*time.Second, func() string { return s.differs(before, fates) })
	s.verdict = "after the eviction Always restarts, RerunOnFailure only after a failure; Manual, Once and Halted stay off"
}

func TestHotplugPodOutlivesTheDrain(t *testing.T) {
	s := rehearse(t)
	first := s.node("a")
	s.create(onLocalDisk("vm").with(v1.EvictionStrategyLiveMigrate)) // so that the drain finds both pods again and again
	before := s.vmis()
	s.hotplug("vm")
	var hotplug corev1.Pod
	s.eventually("the VM's hotplug pod runs", func() string {
		pods, err := s.kube.CoreV1().Pods(s.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: v1.AppLabel + "=hotplug-disk"})
		if err != nil || len(pods.Items) != 1 || pods.Items[0].Status.Phase != corev1.PodRunning {
			return fmt.Sprintf("%d hotplug pods, %v", len(pods.Items), err)
		}
		hotplug = pods.Items[0]
		return ""
	})

	drain := s.drain(first, holdTimeout)
	require.ErrorContains(t, drain.err, "global timeout reached")
	assert.Contains(t, drain.output, "cannot evict hotplug pod: "+hotplug.Name)
	s.become(before, map[string]fate{"vm": stays})
	now, err := s.kube.CoreV1().Pods(s.namespace).Get(t.Context(), hotplug.Name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, hotplug.UID, now.UID)
	assert.Nil(t, now.DeletionTimestamp)

	s.halt("vm")
	s.become(before, map[string]fate{"vm": off})
	drain = s.drain(first, patience)
	require.NoError(t, drain.err, drain.output)
	_, err = s.kube.CoreV1().Pods(s.namespace).Get(t.Context(), hotplug.Name, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "the hotplug pod is gone: %v", err)
	s.verdict = "a hotplug pod is never drained while its VM is there, and gone with it"
}

// hotplug writes to the VMI what virtctl addvolume has virt-api write.
func (s *scenario) hotplug(vm string) {
	disk, volume := s.claim(machine{name: vm + "-hotplugged"}, true)
	if s.whole != nil {
		require.NoError(s, s.virt.VirtualMachineInstance(s.namespace).AddVolume(s.Context(), vm, &v1.AddVolumeOptions{
			Name: disk.Name, Disk: &disk,
			VolumeSource: &v1.HotplugVolumeSource{PersistentVolumeClaim: volume.PersistentVolumeClaim},
		}))
		return
	}
	require.NoError(s, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		vmi := s.vmis()[vm]
		vmi.Spec.Domain.Devices.Disks = append(vmi.Spec.Domain.Devices.Disks, disk)
		vmi.Spec.Volumes = append(vmi.Spec.Volumes, volume)
		_, err := cluster.VirtAPI.VirtualMachineInstance(s.namespace).Update(s.Context(), &vmi, metav1.UpdateOptions{})
		return err
	}))
}

func (s *scenario) halt(vm string) {
	patch := []byte(`[{"op": "replace", "path": "/spec/runStrategy", "value": "Halted"}]`)
	_, err := s.virt.VirtualMachine(s.namespace).Patch(s.Context(), vm, types.JSONPatchType, patch, metav1.PatchOptions{})
	require.NoError(s, err)
}

func TestDryRunChangesNothing(t *testing.T) {
	s := rehearse(t)
	s.node("a")
	s.create(migratable("migratable"), onLocalDisk("on-local-disk"), migratable("worker").with(v1.EvictionStrategyExternal),
		onLocalDisk("holds").with(v1.EvictionStrategyLiveMigrate))
	before := s.vmis()
	answers := map[string]string{
		"migratable":    "Eviction triggered evacuation of VMI",
		"on-local-disk": "", // let through
		"worker":        "Eviction triggered evacuation of VMI",
		"holds":         refusal("holds"),
	}
	for vm, answer := range answers {
		launcher := s.launcher(before[vm])
		err := s.kube.PolicyV1().Evictions(s.namespace).Evict(t.Context(), &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: launcher.Name, Namespace: s.namespace},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		})
		if answer == "" {
			require.NoError(t, err, vm)
		} else {
			require.ErrorContains(t, err, answer, vm)
			assert.True(t, apierrors.IsTooManyRequests(err), vm)
		}
		now, err := s.kube.CoreV1().Pods(s.namespace).Get(t.Context(), launcher.Name, metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, launcher.UID, now.UID, "the launcher of %s", vm)
		assert.Nil(t, now.DeletionTimestamp, "the launcher of %s", vm)
	}
	s.always("nothing changes", time.Second, func() string {
		for vm, now := range s.vmis() {
			if before.fate(vmis{vm: now}, vm) != stays || now.Status.EvacuationNodeName != "" {
				return fmt.Sprintf("VMI %s has changed: %s", vm, describe(now))
			}
		}
		return ""
	})
	migrations, err := s.virt.VirtualMachineInstanceMigration(s.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, migrations.Items)
	s.verdict = "a dry run of an eviction gets the same answer and changes nothing"
}

func TestWebhookDownLosesNothing(t *testing.T) {
	s := rehearse(t)
	first := s.node("a")
	s.create(migratable("migratable"), onLocalDisk("on-local-disk"))
	before := s.vmis()
	s.node("b")

	cluster.SetEvictionWebhookDown(s.namespace, true)
	drain := s.kubectlDrain(first, patience)
	require.ErrorContains(t, drain.err, "failed calling webhook")
	require.Less(t, drain.took, patience, "the drain gives up at once")
	s.become(before, map[string]fate{"migratable": stays, "on-local-disk": stays})

	cluster.SetEvictionWebhookDown(s.namespace, false)
	drain = s.drain(first, patience)
	require.NoError(t, drain.err, drain.output)
	s.become(before, map[string]fate{"migratable": migrated, "on-local-disk": restarted})
	s.verdict = "with the webhook down a drain fails and nothing is lost; with the webhook back the drain goes on"
}

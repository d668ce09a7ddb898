package verdict

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
)

func TestTheWebhookAnswersForALauncher(t *testing.T) {
	migratable := []v1.VirtualMachineInstanceCondition{{Type: v1.VirtualMachineInstanceIsMigratable, Status: corev1.ConditionTrue}}
	for name, c := range map[string]struct {
		strategy   v1.EvictionStrategy
		migratable bool
		change     func(vmi *v1.VirtualMachineInstance, launcher *corev1.Pod)
		want       Hold
	}{
		"LiveMigrate, and it can":           {v1.EvictionStrategyLiveMigrate, true, nil, Marked},
		"LiveMigrate, and it cannot":        {v1.EvictionStrategyLiveMigrate, false, nil, NotMigratable},
		"LiveMigrateIfPossible, it can":     {v1.EvictionStrategyLiveMigrateIfPossible, true, nil, Marked},
		"LiveMigrateIfPossible, it cannot":  {v1.EvictionStrategyLiveMigrateIfPossible, false, nil, ""},
		"External, whether or not it could": {v1.EvictionStrategyExternal, false, nil, Marked},
		"None":                              {v1.EvictionStrategyNone, true, nil, ""},
		"it is marked already": {v1.EvictionStrategyLiveMigrate, true,
			func(vmi *v1.VirtualMachineInstance, _ *corev1.Pod) { vmi.Status.EvacuationNodeName = "node-a" }, Evacuating},
		"the pod is a migration's target": {v1.EvictionStrategyLiveMigrate, true,
			func(_ *v1.VirtualMachineInstance, launcher *corev1.Pod) { launcher.Spec.NodeName = "node-b" }, TargetPod},
		"the pod has ended": {v1.EvictionStrategyLiveMigrate, true,
			func(_ *v1.VirtualMachineInstance, launcher *corev1.Pod) { launcher.Status.Phase = corev1.PodFailed }, ""},
	} {
		vmi := &v1.VirtualMachineInstance{Status: v1.VirtualMachineInstanceStatus{NodeName: "node-a"}}
		if c.migratable {
			vmi.Status.Conditions = migratable
		}
		launcher := readyLauncher()
		launcher.Spec.NodeName = "node-a"
		if c.change != nil {
			c.change(vmi, launcher)
		}
		answer := Evict(Platform{Strategy: c.strategy}, vmi, launcher)
		assert.Equal(t, c.want, answer.Hold, name)
		assert.Equal(t, c.want == "", answer.Allowed(), name)
		assert.Equal(t, c.want == Marked, answer.Marks(), name)
	}
	assert.Equal(t, NoVMI, Evict(Platform{}, nil, readyLauncher()).Hold)
}

func TestAHotplugPodIsHeldWhileItsLauncherAndItsVMIAreThere(t *testing.T) {
	vmi, ended := &v1.VirtualMachineInstance{}, readyLauncher()
	ended.Status.Phase = corev1.PodSucceeded
	assert.Equal(t, HotplugPod, EvictHotplug(readyLauncher(), vmi).Hold)
	assert.True(t, EvictHotplug(nil, vmi).Allowed(), "its launcher is gone")
	assert.True(t, EvictHotplug(readyLauncher(), nil).Allowed(), "its VMI is gone")
	assert.True(t, EvictHotplug(ended, vmi).Allowed(), "its launcher has ended")
}

// readyLauncher is a launcher that a budget counts as healthy.
func readyLauncher() *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodInitialized, Status: corev1.ConditionFalse}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
}

// What kubectl drain-preview says of a drain, compared with KubeVirt's evacuation controller: for which VMIs of a drained
// node it creates a migration, and for which cause it does not.
package contract

import (
	"fmt"
	"iter"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	v1 "kubevirt.io/api/core/v1"
	virtfake "kubevirt.io/client-go/kubevirt/fake"

	"kubevirt.io/kubevirt/pkg/controller"
	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"
	"kubevirt.io/kubevirt/pkg/virt-controller/watch/drain/evacuation"

	preview "cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// evacuated is a VMI that runs on a node, with all that the evacuation controller looks at.
type evacuated struct {
	vmi        *v1.VirtualMachineInstance
	node       *k8sv1.Node
	launchers  []*k8sv1.Pod
	migrations []*v1.VirtualMachineInstanceMigration
}

func newEvacuated(vmi *v1.VirtualMachineInstance) *evacuated {
	e := &evacuated{vmi: vmi.DeepCopy(), node: &k8sv1.Node{ObjectMeta: metav1.ObjectMeta{Name: here}}}
	e.vmi.Status.Phase, e.vmi.Status.NodeName = v1.Running, here
	e.launcher(here)
	return e
}

func (e *evacuated) launcher(node string) *k8sv1.Pod {
	pod := podsOf(e.vmi, source)[0]
	pod.Name, pod.Spec.NodeName = pod.Name+"-on-"+node, node
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(e.vmi, v1.VirtualMachineInstanceGroupVersionKind)}
	e.launchers = append(e.launchers, pod)
	return pod
}

func (e *evacuated) migration(phase v1.VirtualMachineInstanceMigrationPhase) {
	e.migrations = append(e.migrations, &v1.VirtualMachineInstanceMigration{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.vmi.Namespace, Name: "migration-that-is-there", UID: "uid-of-the-migration"},
		Spec:       v1.VirtualMachineInstanceMigrationSpec{VMIName: e.vmi.Name},
		Status:     v1.VirtualMachineInstanceMigrationStatus{Phase: phase},
	})
}

func (e *evacuated) taint(key string, effect k8sv1.TaintEffect) {
	e.node.Spec.Taints = append(e.node.Spec.Taints, k8sv1.Taint{Key: key, Effect: effect})
}

func (e *evacuated) situation() preview.Situation {
	return preview.Situation{
		VMI: e.vmi.DeepCopy(), VM: newVM(v1.RunStrategyAlways), Node: e.node, Launcher: e.launchers[0], Launchers: e.launchers,
		Migrations: e.migrations, Now: time.Now(),
	}
}

// drained is how many migrations KubeVirt creates once kubectl drain has asked for the eviction of the VMI's launcher.
func (e *evacuated) drained(t *testing.T, config *virtconfig.ClusterConfig) int {
	t.Helper()
	return len(e.evacuate(t, config, askAbout(t, config, e.vmi.DeepCopy(), situation{pod: source, asker: drain}).after))
}

// evacuate is what the evacuation controller creates for the VMI as it is now.
func (e *evacuated) evacuate(t *testing.T, config *virtconfig.ClusterConfig, vmi *v1.VirtualMachineInstance) []v1.VirtualMachineInstanceMigration {
	t.Helper()
	c := &client{virt: virtfake.NewSimpleClientset()}
	vmis, pods, nodes := newInformer(controller.GetVMIInformerIndexers()), newInformer(), newInformer()
	migrations := newInformer(controller.GetVirtualMachineInstanceMigrationInformerIndexers())
	evacuates, err := evacuation.NewEvacuationController(vmis, migrations, nodes, pods, &record.FakeRecorder{}, c, config)
	require.NoError(t, err)
	defer evacuates.Queue.ShutDown()
	for _, migration := range e.migrations {
		migrations.add(t, migration)
	}
	for _, launcher := range e.launchers {
		pods.add(t, launcher)
	}
	vmis.add(t, vmi)
	nodes.add(t, e.node)
	require.Equal(t, 1, evacuates.Queue.Len(), "the node is looked at once")
	require.True(t, evacuates.Execute())
	created, err := c.VirtualMachineInstanceMigration(vmi.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return created.Items
}

// The dimensions of a VMI that is drained, beside the strategy that it carries and whether it can migrate.
var (
	taints = map[string]func(*evacuated){
		"no taint":                      func(*evacuated) {},
		"the drain taint":               func(e *evacuated) { e.taint("kubevirt.io/drain", k8sv1.TaintEffectNoSchedule) },
		"it, with another effect":       func(e *evacuated) { e.taint("kubevirt.io/drain", k8sv1.TaintEffectNoExecute) },
		"the drain taint of another CR": func(e *evacuated) { e.taint("example.org/drain", k8sv1.TaintEffectNoSchedule) },
	}
	marks     = []string{"", here, there}
	histories = map[string]func(*evacuated){
		"never migrated": func(*evacuated) {},
		"says that it migrates": func(e *evacuated) {
			e.vmi.Status.MigrationState = &v1.VirtualMachineInstanceMigrationState{StartTimestamp: &metav1.Time{Time: time.Unix(0, 0)}}
		},
		"migrates":     func(e *evacuated) { e.migration(v1.MigrationPending) },
		"has migrated": func(e *evacuated) { e.migration(v1.MigrationSucceeded) },
	}
	companies = map[string]func(*evacuated){
		"one launcher":                func(*evacuated) {},
		"a second launcher":           func(e *evacuated) { e.launcher(there) },
		"a second one that has ended": func(e *evacuated) { e.launcher(there).Status.Phase = k8sv1.PodFailed; e.launchers = e.launchers[:1] },
	}
	lives = map[string]func(*evacuated){
		"running": func(*evacuated) {},
		"ended":   func(e *evacuated) { e.vmi.Status.Phase = v1.Succeeded },
		"leaving": func(e *evacuated) { e.vmi.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)} },
	}
)

// carriers are VMIs by the strategy that counts for them: their own, the cluster's by default, or the cluster's as they
// carry none.
func carriers(t *testing.T, cr *v1.KubeVirt) map[*v1.KubeVirt][]*v1.VirtualMachineInstance {
	all := map[*v1.KubeVirt][]*v1.VirtualMachineInstance{}
	for _, cluster := range strategies {
		under := withStrategy(cr, cluster)
		all[under] = []*v1.VirtualMachineInstance{newVMI(unset)}
		for _, own := range strategies {
			if own == unset || cluster == external {
				all[under] = append(all[under], create(t, clusterConfig(t, under), newVMI(own)))
			}
		}
	}
	return all
}

// evacuations are all combinations for a VMI, with a name for each.
func evacuations(vmi *v1.VirtualMachineInstance) iter.Seq2[string, *evacuated] {
	return func(yield func(string, *evacuated) bool) {
		for _, migratable := range migratables {
			for _, mark := range marks {
				for tainted, taint := range taints {
					for history, migrated := range histories {
						for company, second := range companies {
							for life, lives := range lives {
								e := newEvacuated(vmi)
								if migratable != "" {
									e.vmi.Status.Conditions = []v1.VirtualMachineInstanceCondition{{Type: v1.VirtualMachineInstanceIsMigratable, Status: migratable}}
								}
								e.vmi.Status.EvacuationNodeName = mark
								for _, change := range []func(*evacuated){taint, migrated, second, lives} {
									change(e)
								}
								carried := unset
								if vmi.Spec.EvictionStrategy != nil {
									carried = *vmi.Spec.EvictionStrategy
								}
								name := fmt.Sprintf("carries %q, migratable %q, marked %q, %s, %s, %s, %s", carried, migratable, mark, tainted, history, company, life)
								if !yield(name, e) {
									return
								}
							}
						}
					}
				}
			}
		}
	}
}

// freed takes away what the preview says holds a VMI's migration up.
var freed = map[preview.Cause]func(*evacuated){
	preview.ByStrategy: func(e *evacuated) {
		e.vmi.Status.Conditions = []v1.VirtualMachineInstanceCondition{{Type: v1.VirtualMachineInstanceIsMigratable, Status: k8sv1.ConditionTrue}}
	},
	preview.ByStaleMark: func(e *evacuated) { e.vmi.Status.EvacuationNodeName = "" },
	preview.ByMigration: func(e *evacuated) { e.vmi.Status.MigrationState.EndTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
	preview.ByLeftover:  func(e *evacuated) { e.launchers = e.launchers[:1] },
}

func TestPreviewAgreesWithTheEvacuationController(t *testing.T) {
	for cr, vmis := range carriers(t, rendered(t)) {
		config, platform := clusterConfig(t, cr), preview.NewPlatform(cr)
		for _, vmi := range vmis {
			for name, e := range evacuations(vmi) {
				agreesOnTheDrain(t, name, e, config, platform)
				count("previewed evacuations", 1)
			}
		}
	}
}

// agreesOnTheDrain compares the verdict, and then the cause: once what it names is gone, KubeVirt migrates the VMI, or the
// preview names the next. Nothing is hidden from the preview, so that nothing may be unknown to it.
func agreesOnTheDrain(t *testing.T, name string, e *evacuated, config *virtconfig.ClusterConfig, platform preview.Platform) {
	t.Helper()
	for range len(freed) + 1 {
		s := e.situation()
		predicted := preview.Drain(platform, s)
		underWay := len(e.migrations) > 0 && !e.migrations[0].IsFinal()
		created := e.drained(t, config)
		switch {
		case created > 0 != (predicted.Outcome == preview.Migrates && !underWay):
			t.Errorf("the preview says %q (%s), KubeVirt creates %d migrations: %s", predicted.Outcome, predicted.Why, created, name)
			return
		case predicted.Outcome == preview.Unknown:
			t.Errorf("the preview does not know, and everything is known: %s: %s", predicted.Why, name)
			return
		case predicted.Outcome != preview.Blocks:
			ends := map[bool]preview.End{true: preview.Waits, false: preview.Ends}[predicted.Outcome == preview.OwnerDecides]
			if predicted.End != ends {
				t.Errorf("%q, and the drain %q: %s", predicted.Outcome, predicted.End, name)
			}
			return
		}
		free := freed[predicted.Cause]
		if free == nil || predicted.End != preview.Waits {
			t.Errorf("the preview says %q by %q, and the drain %q, which nothing here holds: %s", predicted.Outcome, predicted.Cause, predicted.End, name)
			return
		}
		vmi, launchers := e.vmi.DeepCopy(), len(e.launchers)
		free(e)
		if reflect.DeepEqual(vmi, e.vmi) && launchers == len(e.launchers) {
			t.Errorf("the preview names %q (%s), and there is no such thing: %s", predicted.Cause, predicted.Why, name)
			return
		}
	}
	t.Errorf("whatever is taken away, it is held: %s", name)
}

// The taint is the one that the CR names.
func TestPreviewKnowsTheDrainTaintOfTheCR(t *testing.T) {
	key := "example.org/drain"
	cr := rendered(t).DeepCopy()
	cr.Spec.Configuration.MigrationConfiguration = &v1.MigrationConfiguration{NodeDrainTaintKey: &key}
	config, platform := clusterConfig(t, cr), preview.NewPlatform(cr)
	for tainted, taint := range taints {
		e := newEvacuated(create(t, config, newVMI(migrate)))
		freed[preview.ByStrategy](e) // it can migrate
		e.vmi.Status.EvacuationNodeName = there
		taint(e)
		assert.Equal(t, tainted == "the drain taint of another CR", e.drained(t, config) > 0, tainted)
		agreesOnTheDrain(t, tainted, e, config, platform)
	}
}

// A target cannot be evicted while its VMI is on its way; what the preview says of it is what comes of it afterwards.
func TestPreviewOfATargetIsWhatComesOfItOnceItHasArrived(t *testing.T) {
	for cr, vmis := range carriers(t, rendered(t)) {
		config, platform := clusterConfig(t, cr), preview.NewPlatform(cr)
		for _, vmi := range vmis {
			for tainted, taint := range taints {
				arrived := newEvacuated(vmi)
				freed[preview.ByStrategy](arrived) // it can migrate
				taint(arrived)
				leaving := &evacuated{vmi: arrived.vmi.DeepCopy(), node: arrived.node, launchers: arrived.launchers}
				leaving.vmi.Status.NodeName, leaving.vmi.Status.EvacuationNodeName = there, there
				leaving.migration(v1.MigrationScheduling)
				leaving.launchers[0].Labels[v1.MigrationJobLabel] = string(leaving.migrations[0].UID)
				leaving.launcher(there)

				predicted := preview.Drain(platform, leaving.situation())
				assert.NotEqual(t, preview.Unknown, predicted.Outcome)
				assert.Equal(t, arrived.drained(t, config) > 0, predicted.Outcome == preview.Migrates, "%s: %v", tainted, predicted)
				count("previewed arrivals", 1)
			}
		}
	}
}

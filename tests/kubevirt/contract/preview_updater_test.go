// What kubectl drain-preview says of an upgrade, compared with the workload updater: whom it migrates, evicts and leaves
// alone, and at which pace.
package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"kubevirt.io/kubevirt/pkg/controller"

	preview "cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// methods are what workloadUpdateMethods can say.
var methods = [][]v1.WorkloadUpdateMethod{
	nil,
	{v1.WorkloadUpdateMethodLiveMigrate},
	{v1.WorkloadUpdateMethodEvict},
	{v1.WorkloadUpdateMethodLiveMigrate, v1.WorkloadUpdateMethodEvict},
}

// phases are the states of a VMI that the updater tells apart.
var phases = map[string]func(*v1.VirtualMachineInstance){
	"running":  func(*v1.VirtualMachineInstance) {},
	"paused":   func(vmi *v1.VirtualMachineInstance) { addCondition(vmi, v1.VirtualMachineInstancePaused) },
	"starting": func(vmi *v1.VirtualMachineInstance) { vmi.Status.Phase = v1.Scheduled },
	"ended":    func(vmi *v1.VirtualMachineInstance) { vmi.Status.Phase = v1.Succeeded },
	"leaving": func(vmi *v1.VirtualMachineInstance) {
		vmi.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
	},
	"marked":             func(vmi *v1.VirtualMachineInstance) { vmi.Status.EvacuationNodeName = here },
	"marked for another": func(vmi *v1.VirtualMachineInstance) { vmi.Status.EvacuationNodeName = there },
	saysSo: func(vmi *v1.VirtualMachineInstance) {
		vmi.Status.MigrationState = &v1.VirtualMachineInstanceMigrationState{StartTimestamp: &metav1.Time{Time: time.Unix(0, 0)}}
	},
	migrating: func(*v1.VirtualMachineInstance) {},
}

const (
	saysSo    = "says that it migrates"
	migrating = "migrates"
)

func addCondition(vmi *v1.VirtualMachineInstance, condition v1.VirtualMachineInstanceConditionType) {
	vmi.Status.Conditions = append(vmi.Status.Conditions,
		v1.VirtualMachineInstanceCondition{Type: condition, Status: k8sv1.ConditionTrue})
}

func TestPreviewAgreesWithTheWorkloadUpdater(t *testing.T) {
	for _, cluster := range strategies {
		for _, allowed := range methods {
			t.Run(fmt.Sprintf("cluster %q, methods %v", cluster, allowed), func(t *testing.T) {
				cr := withStrategy(rendered(t), cluster)
				cr.Spec.WorkloadUpdateStrategy.WorkloadUpdateMethods = allowed
				all, atOnce := 1000, uint32(1000) // every VM's turn comes at once
				cr.Spec.WorkloadUpdateStrategy.BatchEvictionSize = &all
				cr.Spec.Configuration.MigrationConfiguration = &v1.MigrationConfiguration{ParallelMigrationsPerCluster: &atOnce}
				compareWithTheUpdater(t, cr)
			})
		}
	}
}

func compareWithTheUpdater(t *testing.T, cr *v1.KubeVirt) {
	var u *upgrade
	platform := preview.NewPlatform(cr)
	predicted := map[string]preview.Upgraded{}
	synctest.Test(t, func(t *testing.T) {
		u = newUpgrade(t, cr)
		predictUpgrade(t, u, platform, predicted)
		u.run(30 * time.Second)
	})
	u.t = t
	acts := len(cr.Spec.WorkloadUpdateStrategy.WorkloadUpdateMethods) > 0
	for name, verdict := range predicted {
		phase := name[strings.LastIndex(name, ",")+1:]
		did := preview.Nothing
		switch {
		case u.migrated[name]:
			did = preview.Migrates
		case askedFor(u.evictions, name):
			did = preview.Restarts
		case askedFor(u.refused, name):
			did = whoActs(t, u, name)
		case acts && phase == "starting": // what it does once that one runs is not decided yet
			did = preview.Unknown
		case acts && phase == migrating && u.vmi(name).IsMigratable(): // by the migration that is there
			did = preview.Migrates
		case acts && (phase == migrating || phase == saysSo):
			did = preview.Refused
		}
		assert.Equal(t, did, verdict.Outcome, "%s: %s", name, verdict.Why)
		assert.Equal(t, askedFor(u.evictions, name) || askedFor(u.refused, name), verdict.InBatch, "asked for in a batch: %s", name)
		count("previewed upgrades", 1)
	}
}

// predictUpgrade fills a platform with a VM of every kind, and says what becomes of it.
func predictUpgrade(t *testing.T, u *upgrade, platform preview.Platform, predicted map[string]preview.Upgraded) {
	t.Helper()
	for _, own := range strategies {
		for _, migratable := range migratables {
			for phase, change := range phases {
				name := strings.Join([]string{"own=" + string(own), "migratable=" + string(migratable), phase}, ",")
				u.vm(name, own, migratable, change)
				vmi := u.vmi(name)
				s := preview.Situation{VMI: vmi.DeepCopy(), VM: newVM(v1.RunStrategyAlways), Launcher: podsOf(vmi, source)[0]}
				if phase == migrating {
					s.Migrations = []*v1.VirtualMachineInstanceMigration{{
						ObjectMeta: metav1.ObjectMeta{Namespace: vmi.Namespace, Name: name},
						Spec:       v1.VirtualMachineInstanceMigrationSpec{VMIName: name},
					}}
					u.moves.add(t, s.Migrations[0])
				}
				predicted[name] = preview.Upgrade(platform, s)
			}
		}
	}
}

// whoActs is what comes of a refusal: the evacuation controller migrates the VMI, its owner is told, or nobody acts.
func whoActs(t *testing.T, u *upgrade, name string) preview.Outcome {
	t.Helper()
	e := newEvacuated(u.vmi(name))
	switch {
	case len(e.evacuate(t, u.config, e.vmi)) > 0:
		return preview.Migrates
	case e.vmi.IsMarkedForEviction() && *e.vmi.Spec.EvictionStrategy == external:
		return preview.OwnerDecides
	}
	return preview.Refused
}

func askedFor(events []event, name string) bool {
	return slices.ContainsFunc(events, func(e event) bool { return e.vmi == name })
}

// The updater has no answer for a VMI without one (workload-updater.go:596-609), so what it looks for is asked.
func TestPreviewFindsTheLauncherThatTheUpdaterEvicts(t *testing.T) {
	for _, node := range []string{here, there} {
		e := newEvacuated(newVMI(none))
		e.launchers = nil
		launcher := e.launcher(node)
		pods := newInformer()
		pods.add(t, launcher)
		found, err := controller.CurrentVMIPod(e.vmi, pods.GetIndexer())
		require.NoError(t, err)
		asked := preview.Upgrade(preview.NewPlatform(rendered(t)), e.situation()).InBatch
		assert.Equal(t, found != nil, asked, "a launcher on %s, of a VMI on %s", node, here)
	}
}

func TestPreviewOfThePaceIsTheUpdaters(t *testing.T) {
	silent := rendered(t).DeepCopy()
	silent.Spec.WorkloadUpdateStrategy.BatchEvictionSize, silent.Spec.WorkloadUpdateStrategy.BatchEvictionInterval = nil, nil
	for name, cr := range map[string]*v1.KubeVirt{"the chart's CR": rendered(t), "a CR that leaves the pace to KubeVirt": silent} {
		for _, stuck := range []int{1, 10, 11, 25} {
			t.Run(fmt.Sprintf("%s, %d VMs", name, stuck), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					u := newUpgrade(t, cr)
					platform := preview.NewPlatform(cr)
					var all []preview.Upgraded
					for i := range stuck {
						name := fmt.Sprintf("stuck-%d", i)
						u.vm(name, ifPossible, k8sv1.ConditionFalse)
						vmi := u.vmi(name)
						all = append(all, preview.Upgrade(platform,
							preview.Situation{VMI: vmi, VM: newVM(v1.RunStrategyAlways), Launcher: podsOf(vmi, source)[0]}))
					}
					pace := preview.PaceOf(platform, all)
					u.run(5 * time.Minute)

					sizes, _ := batches(u.evictions)
					assert.Len(t, sizes, pace.Batches)
					assert.Equal(t, pace.Batches, pace.LastBatch(platform))
					took := u.evictions[len(u.evictions)-1].at.Sub(u.evictions[0].at)
					assert.InDelta(t, pace.AtLeast, took, float64(time.Duration(pace.Batches)*5*time.Second))
				})
			})
		}
	}
}

// P21: kubevirt_vmi_non_evictable is 1, and the alert VMCannotBeEvicted fires, exactly for the VMIs that still carry
// LiveMigrate and cannot migrate: the list of VMs that need one restart after the switch.
package contract

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"kubevirt.io/kubevirt/pkg/controller"
	metrics "kubevirt.io/kubevirt/pkg/monitoring/metrics/virt-controller"
	kubevirtrules "kubevirt.io/kubevirt/pkg/monitoring/rules"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
)

const nonEvictable = "kubevirt_vmi_non_evictable"

// pkg/monitoring/metrics/virt-controller/vmistats_collector.go:349-373, pkg/monitoring/rules/alerts/vms.go:68-73. All
// VMIs in one scrape: the collector reads its stores from package variables, which a process sets once.
func TestP21_TheMetricNamesTheVMIsOfLiveMigrateThatCannotMigrate(t *testing.T) {
	cr := rendered(t)
	before, now := clusterConfig(t, withStrategy(cr, migrate)), clusterConfig(t, cr)
	vmis, want := newInformer(), map[string]float64{}
	add := func(vmi *v1.VirtualMachineInstance, canMigrate k8sv1.ConditionStatus, value float64) {
		vmi.Name = fmt.Sprintf("vmi-%d", len(want))
		vmi.Status.Phase, vmi.Status.NodeName = v1.Running, here
		if canMigrate != "" {
			vmi.Status.Conditions = []v1.VirtualMachineInstanceCondition{{Type: v1.VirtualMachineInstanceIsMigratable, Status: canMigrate}}
		}
		want[vmi.Name] = value
		vmis.add(t, vmi)
	}
	for _, canMigrate := range migratables {
		blocks := 0.0
		if canMigrate != k8sv1.ConditionTrue {
			blocks = 1
		}
		add(create(t, before, newVMI(unset)), canMigrate, blocks) // not restarted since the switch
		add(create(t, now, newVMI(migrate)), canMigrate, blocks)  // a tenant's own choice
		add(create(t, now, newVMI(unset)), canMigrate, 0)
		for _, own := range []v1.EvictionStrategy{none, ifPossible, external} {
			add(create(t, now, newVMI(own)), canMigrate, 0)
		}
	}

	stores := &metrics.Stores{
		VMI: vmis.GetStore(), VM: newInformer().GetStore(), PersistentVolumeClaim: newInformer().GetStore(),
		Instancetype: newInformer().GetStore(), ClusterInstancetype: newInformer().GetStore(),
		Preference: newInformer().GetStore(), ClusterPreference: newInformer().GetStore(), ControllerRevision: newInformer().GetStore(),
	}
	indexers := &metrics.Indexers{
		VMIMigration: newInformer(controller.GetVirtualMachineInstanceMigrationInformerIndexers()).GetIndexer(),
		KVPod:        newInformer().GetIndexer(),
	}
	require.NoError(t, metrics.SetupMetrics(indexers, stores, now, newClient()))

	got := map[string]float64{}
	families, err := prometheus.DefaultGatherer.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != nonEvictable {
			continue
		}
		for _, metric := range family.Metric {
			for _, label := range metric.Label {
				if label.GetName() == "name" {
					got[label.GetValue()] = metric.GetGauge().GetValue()
				}
			}
		}
	}
	assert.Equal(t, want, got, "P21 is broken: the alert VMCannotBeEvicted is not the list of VMs that still need one restart")
	count("metrics", len(got))
}

func TestP21_TheAlertIsThatMetricForRunningVMs(t *testing.T) {
	require.NoError(t, kubevirtrules.SetupRules(chart.Namespace))
	for _, alert := range kubevirtrules.ListAlerts() {
		if alert.Alert != "VMCannotBeEvicted" {
			continue
		}
		assert.Contains(t, alert.Expr.String(), nonEvictable, "P21 is broken: the alert asks another metric")
		assert.Contains(t, alert.Expr.String(), "phase='running'")
		assert.Contains(t, alert.Expr.String(), "== 1")
		return
	}
	t.Error("P21 is broken: KubeVirt has no alert VMCannotBeEvicted any more, and the runbook points at it")
}

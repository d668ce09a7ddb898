package rehearsal

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
	"cozy-kubevirt/tests/kubevirt/internal/client"
	v1 "kubevirt.io/api/core/v1"
)

// What goes wrong on that day: whatever is killed, no VM is lost and none runs twice, and the work goes on.

func TestDayWithFaults(t *testing.T) {
	d := startDay(t)
	ctx := t.Context()
	fates := map[string]fate{}
	var machines []machine
	for i := range 6 {
		m := migratable(fmt.Sprintf("web-%d", i+1))
		machines, fates[m.name] = append(machines, m), migrated
	}
	for i := range 2 {
		m := onLocalDisk(fmt.Sprintf("db-%d", i+1)).with(v1.EvictionStrategyLiveMigrateIfPossible)
		machines, fates[m.name] = append(machines, m), restarted
	}
	d.create(machines...)
	before := d.vmis()

	d.cluster.SetMigrationsTake(time.Minute)
	d.step("operator to "+kubeVirtVersion()+", the operators killed while virt-handler rolls, virt-controller while VMs migrate", func() {
		require.NoError(t, d.cluster.InstallOperator(ctx, kubeVirtVersion()))
		d.eventually("virt-handlers of two versions are side by side, or the new one has begun", func() string {
			if versions := d.handlerVersions(); versions[kubeVirtVersion()] == 0 {
				return fmt.Sprintf("virt-handlers: %v", versions)
			}
			return ""
		})
		d.kill("virt-operator")
		d.eventually("an update migration runs", func() string {
			if d.migrating() == nil {
				return "none runs"
			}
			return ""
		})
		d.kill("virt-controller")
	})
	var inFlight []string
	d.step("helm upgrade to this chart, too early: VMs still migrate", func() {
		handlers := d.handlers()
		require.NoError(t, d.cluster.HelmUpgrade(ctx, helm(), chart.Dir(t), "--values", chart.ValuesFiles(t)["platform"]))
		d.eventually("a virt-handler is replaced under a migration (kubevirt#18720)", func() string {
			now := d.handlers()
			for vm, nodes := range d.migrating() {
				for _, node := range nodes {
					if now[node] != handlers[node] {
						inFlight = append(inFlight, vm)
						break
					}
				}
			}
			if len(inFlight) == 0 {
				return "none yet"
			}
			return ""
		})
		d.cluster.SetMigrationsTake(0)
		require.NoError(t, d.cluster.Deployed(ctx, kubeVirtVersion()))
		d.become(before, fates)
	})
	d.nothingTwiceNow()

	node := d.vmis()["db-1"].Status.NodeName
	before = d.vmis()
	d.step("drain of "+node+" with no virt-api", func() {
		d.cluster.Hold("virt-api")
		d.eventually("no virt-api answers", func() string { return d.endpoints("virt-api", false) })
		drain := d.kubectlDrain(node, d.patience)
		require.ErrorContains(t, drain.err, "failed calling webhook")
		require.Less(t, drain.took, d.patience, "the drain gives up at once")
		for name := range fates {
			fates[name] = stays
		}
		d.become(before, fates)
	})
	d.step("drain of "+node+" with virt-api back", func() {
		d.cluster.Release("virt-api")
		d.eventually("virt-api answers", func() string { return d.endpoints("virt-api", true) })
		d.drainEnds(node, before, fates)
	})
	d.cordon(node, false)
	d.nothingTwiceNow()

	node = d.vmis()["db-1"].Status.NodeName
	before = d.vmis()
	d.step("drain of "+node+", which has stopped answering", func() {
		d.cluster.Silence(node)
		d.eventually("the node is not ready", func() string { return d.notReady(node) })
		drain := d.kubectlDrain(node, 3*holdTimeout)
		assert.Regexp(t, drainWaits, drain.err)
		assert.GreaterOrEqual(t, drain.took, 3*holdTimeout, "the drain waits until its timeout")
		for name := range fates {
			fates[name] = stays
		}
		d.become(before, fates)
		d.nothingTwiceNow()
	})
	d.step(node+" answers again", func() {
		d.cluster.Wake(node)
		d.drainEnds(node, before, fates)
	})
	d.nothingTwiceNow()
	d.verdict = fmt.Sprintf("with the operators and virt-controllers killed, virt-handlers replaced under %d migrations by a helm upgrade that came too early, "+
		"virt-api gone and a node silent, nothing is lost and nothing runs twice", len(inFlight))
}

// drainEnds drains a node: what was on it has migrated, or restarted if it could not, and all others have met the fates given.
func (d *day) drainEnds(node string, before vmis, fates map[string]fate) {
	d.Helper()
	drain := d.kubectlDrain(node, d.patience)
	require.NoError(d, drain.err, drain.output)
	for name, vmi := range before {
		if vmi.Status.NodeName == node {
			fates[name] = migrated
			if strings.HasPrefix(name, "db") {
				fates[name] = restarted
			}
		}
	}
	d.become(before, fates)
}

// migrating are the VMs that migrate right now, and the nodes that they leave and go to.
func (d *day) migrating() map[string][]string {
	list, err := d.virt.VirtualMachineInstanceMigration(d.namespace).List(d.Context(), metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var found map[string][]string
	all := d.vmis()
	for _, migration := range list.Items {
		state := all[migration.Spec.VMIName].Status.MigrationState
		if migration.Status.Phase != v1.MigrationRunning || state == nil {
			continue
		}
		if found == nil {
			found = map[string][]string{}
		}
		found[migration.Spec.VMIName] = []string{state.SourceNode, state.TargetNode}
	}
	return found
}

// handlers are the virt-handler pods, by their nodes.
func (d *day) handlers() map[string]types.UID {
	found := map[string]types.UID{}
	for _, pod := range d.handlerPods() {
		found[pod.Spec.NodeName] = pod.UID
	}
	return found
}

// kill ends a component's processes, which the kubelet then starts again.
func (d *day) kill(component string) {
	require.NotEmpty(d, d.cluster.Ready(component), "%s runs", component)
	d.timeline.during(component+" killed", func() {
		d.cluster.Hold(component)
		d.eventually("none is ready", func() string { return d.cluster.Ready(component) })
		d.cluster.Release(component)
	})
}

// handlerVersions counts the virt-handler pods by version.
func (d *day) handlerVersions() map[string]int {
	versions := map[string]int{}
	for _, pod := range d.handlerPods() {
		_, version, _ := strings.Cut(pod.Spec.Containers[0].Image, ":")
		versions[version]++
	}
	return versions
}

func (d *day) handlerPods() []corev1.Pod {
	pods, err := d.kube.CoreV1().Pods(client.Namespace).List(d.Context(), metav1.ListOptions{LabelSelector: v1.AppLabel + "=virt-handler"})
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning
	})
}

// endpoints complains unless a Service has ready endpoints, or has none.
func (d *day) endpoints(service string, wanted bool) string {
	slices, err := d.kube.DiscoveryV1().EndpointSlices(client.Namespace).List(d.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	if err != nil {
		return err.Error()
	}
	ready := 0
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
				ready++
			}
		}
	}
	if wanted != (ready > 0) {
		return fmt.Sprintf("%d ready endpoints", ready)
	}
	return ""
}

func (d *day) notReady(node string) string {
	now, err := d.kube.CoreV1().Nodes().Get(d.Context(), node, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	for _, condition := range now.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return "it is ready"
		}
	}
	return ""
}

package rehearsal

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file is what becomes of a VM on the day when the scheduler finds no place for it, or only one. (A VM whose disk is
// bound to the drained node is among those that the day drains.)

// oneFreePlace evicts the VMs with a GPU, of which each node has one: the first while one place is free, and the second
// while none is.
func (d *day) oneFreePlace() {
	first, second := d.vmis()["gpu-1"].Status.NodeName, d.vmis()["gpu-2"].Status.NodeName
	free := slices.DeleteFunc(slices.Clone(dayNodes), func(node string) bool { return node == first || node == second })
	require.Len(d, free, 2, "nodes with a free GPU")
	for _, node := range []string{first, second, free[0]} {
		d.cordon(node, true)
	}
	before := d.vmis()
	d.evict("gpu-1")
	d.become(before, map[string]fate{"gpu-1": restarted})
	assert.Equal(d, free[1], d.vmis()["gpu-1"].Status.NodeName, "the only node with a free GPU")
	d.evict("gpu-2")
	d.become(before, map[string]fate{"gpu-2": waits})
	d.cordon(free[0], false)
	d.become(before, map[string]fate{"gpu-2": restarted})
	assert.Equal(d, free[0], d.vmis()["gpu-2"].Status.NodeName, "the node whose GPU is free again")
	for _, node := range []string{first, second} {
		d.cordon(node, false)
	}
}

// noRoomAnywhere drains a node while no other takes VMs: what can migrate stays, its migration waits, and so does the drain;
// what was evicted is started as soon as there is room.
func (d *day) noRoomAnywhere() {
	before := d.vmis()
	node := before["web-1"].Status.NodeName
	stay, went := map[string]fate{}, map[string]fate{}
	for name, vmi := range before {
		switch {
		case vmi.Status.NodeName != node:
		case strings.HasPrefix(name, "web-"):
			stay[name], went[name] = stays, migrated
		case strings.HasPrefix(name, "db-"):
			stay[name], went[name] = waits, restarted
		}
	}
	for _, other := range dayNodes {
		d.cordon(other, true)
	}
	drain := d.drain(node, holdTimeout) // as the preview says
	assert.Regexp(d, drainWaits, drain.err)
	d.become(before, stay)
	// No more than two leave a node at once (parallelOutboundMigrationsPerNode), and which of all that can migrate go first
	// nobody knows.
	d.eventually("a migration waits for a node", func() string {
		for name, fate := range stay {
			if fate == stays && d.noTarget(name) == "" {
				return ""
			}
		}
		return "none has a target"
	})
	d.become(before, stay)
	for _, other := range dayNodes {
		d.cordon(other, other == node)
	}
	d.become(before, went)
	d.eventually("no migration is under way", func() string {
		list, err := d.virt.VirtualMachineInstanceMigration(d.namespace).List(d.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, migration := range list.Items {
			if !migration.IsFinal() {
				return migration.Spec.VMIName + " migrates"
			}
		}
		return ""
	})
	d.cordon(node, false)
}

// noTarget complains unless a VM's migration has a target pod that no node takes.
func (d *day) noTarget(vm string) string {
	pods, err := d.kube.CoreV1().Pods(d.namespace).List(d.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=,status.phase=Pending"})
	if err != nil {
		return err.Error()
	}
	for _, pod := range pods.Items {
		if strings.HasPrefix(pod.Name, "virt-launcher-"+vm+"-") {
			return ""
		}
	}
	return "it has none"
}

// evict asks the API to evict a VM's launcher.
func (d *day) evict(vm string) {
	launcher := d.launcher(d.vmis()[vm])
	require.NoError(d, d.kube.PolicyV1().Evictions(d.namespace).Evict(d.Context(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: launcher.Name, Namespace: d.namespace},
	}))
}

// Package verdict says what the next drain and the next upgrade of KubeVirt do to a VM. It is a pure function of what is
// known of the VM and the platform, with no input or output of its own; tests/kubevirt/contract compares it with
// KubeVirt's own code.
package verdict

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	v1 "kubevirt.io/api/core/v1"
)

// Platform is what the KubeVirt CR decides for all VMs.
type Platform struct {
	Strategy      v1.EvictionStrategy // the cluster's; KubeVirt's default if the CR has none
	LiveMigrates  bool                // workloadUpdateMethods has LiveMigrate
	Evicts        bool                // workloadUpdateMethods has Evict
	BatchSize     int                 // evictions a batch
	BatchInterval time.Duration       // from the start of one batch to the start of the next
	Migrations    int                 // that run at once in the whole cluster
	Outbound      int                 // migrations that run at once from a node
	DrainTaint    string              // nodeDrainTaintKey: KubeVirt evacuates a node that carries it
	Unknown       string              // why the CR could not be read, if so
}

// KubeVirt's defaults where the CR is silent.
const (
	defaultStrategy      = v1.EvictionStrategyNone // pkg/virt-config/configuration.go:186
	defaultBatchSize     = 10                      // pkg/virt-controller/watch/workload-updater/workload-updater.go:61
	defaultBatchInterval = time.Minute             // workload-updater.go:60
	defaultMigrations    = 5                       // pkg/virt-config/virt-config.go:45
	defaultOutbound      = 2                       // pkg/virt-config/virt-config.go:44
	defaultDrainTaint    = "kubevirt.io/drain"     // pkg/virt-config/configuration.go:41
)

// NewPlatform reads a KubeVirt CR.
func NewPlatform(cr *v1.KubeVirt) Platform {
	p := Platform{
		Strategy: defaultStrategy, BatchSize: defaultBatchSize, BatchInterval: defaultBatchInterval, Migrations: defaultMigrations,
		Outbound: defaultOutbound, DrainTaint: defaultDrainTaint,
	}
	if strategy := cr.Spec.Configuration.EvictionStrategy; strategy != nil {
		p.Strategy = *strategy
	}
	if migrations := cr.Spec.Configuration.MigrationConfiguration; migrations != nil {
		if migrations.ParallelMigrationsPerCluster != nil {
			p.Migrations = int(*migrations.ParallelMigrationsPerCluster)
		}
		if migrations.ParallelOutboundMigrationsPerNode != nil {
			p.Outbound = int(*migrations.ParallelOutboundMigrationsPerNode)
		}
		if migrations.NodeDrainTaintKey != nil {
			p.DrainTaint = *migrations.NodeDrainTaintKey
		}
	}
	updates := cr.Spec.WorkloadUpdateStrategy
	for _, method := range updates.WorkloadUpdateMethods {
		p.LiveMigrates = p.LiveMigrates || method == v1.WorkloadUpdateMethodLiveMigrate
		p.Evicts = p.Evicts || method == v1.WorkloadUpdateMethodEvict
	}
	if updates.BatchEvictionSize != nil {
		p.BatchSize = *updates.BatchEvictionSize
	}
	if updates.BatchEvictionInterval != nil {
		p.BatchInterval = updates.BatchEvictionInterval.Duration
	}
	return p
}

// Situation is what is known of one VMI on one node.
type Situation struct {
	// VMI is nil for a launcher whose VMI is gone.
	VMI *v1.VirtualMachineInstance
	// VM is the VMI's owner, nil if it has none or it could not be read.
	VM *v1.VirtualMachine
	// Launcher is the VMI's pod on the node: the one it runs in, or a migration's target. Nil if there is none.
	Launcher *corev1.Pod
	// Hotplug are the VMI's hotplug pods (hp-volume-…) on the node.
	Hotplug []*corev1.Pod
	// Launchers are all of the VMI's launchers that have not ended, on any node or on none yet.
	Launchers []*corev1.Pod
	// Migrations are all that name the VMI.
	Migrations []*v1.VirtualMachineInstanceMigration
	// Node is the one of the situation's pods; nil if it is not known.
	Node *corev1.Node
	// Now is when all this was so.
	Now time.Time
	// Budgets are the PodDisruptionBudgets that select the launcher.
	Budgets []*policyv1.PodDisruptionBudget
	// Migrated and Restarted are whether another node could take the VMI in a migration, and its VM's next VMI, while all
	// that leave this node ask for room.
	Migrated, Restarted Place
	Unknown             Unread
}

// Place is whether a node other than this one takes a VM.
type Place struct {
	Bound   string // why none does; "" if one does
	Unknown string // why that is not known, if it is not
}

// Unread are the facts that could not be read, each with its reason; "" is none.
type Unread struct {
	VM, Pods, Budgets, Migrations, Nodes string
}

package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/scheduling"
)

// This file is what goes wrong for people, each kind with cases of its own: a cluster in which a VM could leave node-a, and
// one thing about it that is different.

type fields = map[string]any

// world is a cluster of two nodes and a VM on the first.
type world struct {
	kubevirt, a, b, vm, vmi, launcher, claim, volume fields
	more                                             []fields
	without                                          []string // kinds that the dump lacks
}

const worldTemplate = `
kubevirt: {apiVersion: kubevirt.io/v1, kind: KubeVirt, metadata: {name: kubevirt, namespace: kubevirt}, spec: {configuration: {evictionStrategy: LiveMigrateIfPossible},
  workloadUpdateStrategy: {workloadUpdateMethods: [LiveMigrate, Evict]}}}
a: {apiVersion: v1, kind: Node, metadata: {name: node-a, labels: {kubernetes.io/hostname: node-a, kubernetes.io/arch: amd64, kubevirt.io/schedulable: "true",
  topology.kubernetes.io/zone: z1, cpu-vendor.node.kubevirt.io/Intel: "true", host-model-cpu.node.kubevirt.io/Skylake: "true",
  cpu-model-migration.node.kubevirt.io/Skylake: "true", cpu-feature.node.kubevirt.io/ibrs: "true",
  host-model-required-features.node.kubevirt.io/ibrs: "true", machine-type.node.kubevirt.io/pc-q35-9: "true"}, annotations: {kubevirt.io/heartbeat: "2026-05-11T08:10:23Z"}},
  status: {allocatable: {cpu: "8", memory: 32Gi, pods: "20"}, conditions: [{type: Ready, status: "True"}]}}
b: {apiVersion: v1, kind: Node, metadata: {name: node-b, labels: {kubernetes.io/hostname: node-b, kubernetes.io/arch: amd64, kubevirt.io/schedulable: "true",
  topology.kubernetes.io/zone: z1, cpu-vendor.node.kubevirt.io/Intel: "true", cpu-model-migration.node.kubevirt.io/Skylake: "true",
  cpu-feature.node.kubevirt.io/ibrs: "true", machine-type.node.kubevirt.io/pc-q35-9: "true"}},
  status: {allocatable: {cpu: "8", memory: 32Gi, pods: "20"}, conditions: [{type: Ready, status: "True"}]}}
vm: {apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: web, namespace: shop, uid: vm-web}, spec: {runStrategy: Always, template: {spec: {
  domain: {cpu: {cores: 2}, memory: {guest: 4Gi}}, volumes: [{name: root, persistentVolumeClaim: {claimName: web}}]}}}}
vmi: {apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, metadata: {name: web, namespace: shop, uid: vmi-web, ownerReferences: [{apiVersion: kubevirt.io/v1,
  kind: VirtualMachine, name: web, uid: vm-web, controller: true}]}, spec: {evictionStrategy: LiveMigrateIfPossible, architecture: amd64, domain: {cpu: {cores: 2, model: host-model},
  memory: {guest: 4Gi}}, volumes: [{name: root, persistentVolumeClaim: {claimName: web}}]}, status: {phase: Running, nodeName: node-a, machine: {type: pc-q35-9},
  conditions: [{type: LiveMigratable, status: "True"}]}}
launcher: {apiVersion: v1, kind: Pod, metadata: {name: virt-launcher-web-1, namespace: shop, uid: pod-web, creationTimestamp: "2026-05-01T10:00:00Z",
  labels: {kubevirt.io: virt-launcher, kubevirt.io/created-by: vmi-web, app: web}, annotations: {kubevirt.io/domain: web}, ownerReferences: [{apiVersion: kubevirt.io/v1,
  kind: VirtualMachineInstance, name: web, uid: vmi-web, controller: true}]}, spec: {nodeName: node-a, nodeSelector: {kubevirt.io/schedulable: "true", kubernetes.io/arch: amd64},
  containers: [{name: compute, resources: {requests: {cpu: 200m, memory: 4400Mi}}}], volumes: [{name: root, persistentVolumeClaim: {claimName: web}}]},
  status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}
claim: {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web, namespace: shop}, spec: {volumeName: pv-web, accessModes: [ReadWriteMany]}}
volume: {apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-web}, spec: {accessModes: [ReadWriteMany], csi: {driver: d.example.org, volumeHandle: web}}}
`

func newWorld(t *testing.T) *world {
	t.Helper()
	var read map[string]fields
	require.NoError(t, yaml.Unmarshal([]byte(worldTemplate), &read))
	return &world{kubevirt: read["kubevirt"], a: read["a"], b: read["b"], vm: read["vm"], vmi: read["vmi"], launcher: read["launcher"],
		claim: read["claim"], volume: read["volume"]}
}

// object reads one that is written as YAML.
func object(text string) fields {
	var read fields
	if err := yaml.Unmarshal([]byte(text), &read); err != nil {
		panic(err)
	}
	return read
}

func clone(o fields) fields {
	text, _ := json.Marshal(o)
	return object(string(text))
}

// set writes a field, and what is above it, by its path.
func set(o fields, path string, value any) {
	at := strings.Split(path, "|")
	for _, name := range at[:len(at)-1] {
		below, is := o[name].(fields)
		if !is {
			below = fields{}
			o[name] = below
		}
		o = below
	}
	if value == nil {
		delete(o, at[len(at)-1])
		return
	}
	o[at[len(at)-1]] = value
}

func (w *world) dump(t *testing.T) string {
	t.Helper()
	var items []fields
	for _, o := range append([]fields{w.kubevirt, w.a, w.b, w.vm, w.vmi, w.launcher, w.claim, w.volume}, w.more...) {
		lacks := false
		for _, kind := range w.without {
			lacks = lacks || o["kind"] == kind
		}
		if !lacks {
			items = append(items, o)
		}
	}
	text, err := json.Marshal(fields{"apiVersion": "v1", "kind": "List", "items": items})
	require.NoError(t, err)
	return string(text)
}

// second adds another VM like the first.
func (w *world) second(name, node string) (vm, vmi, launcher fields) {
	rename := func(o fields) fields {
		text, _ := json.Marshal(o)
		return object(strings.NewReplacer("web", name, "node-a", node).Replace(string(text)))
	}
	vm, vmi, launcher = rename(w.vm), rename(w.vmi), rename(w.launcher)
	w.more = append(w.more, vm, vmi, launcher, rename(w.claim), rename(w.volume))
	return vm, vmi, launcher
}

func migrationOf(phase, more string) fields {
	return object(`{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstanceMigration, metadata: {name: m1, namespace: shop, uid: m1,
  creationTimestamp: "2026-05-11T08:00:00Z"}, spec: {vmiName: web}, status: {phase: ` + phase + more + `}}`)
}

// refusedByQuota adds a migration that waits, with what it says of a quota.
func (w *world) refusedByQuota(status string) fields {
	migration := migrationOf("Pending", `, conditions: [{type: migrationRejectedByResourceQuota, status: "`+status+`"}]`)
	w.more = append(w.more, migration)
	return migration
}

// target is a migration's target pod, in some state.
func (w *world) target(status string) fields {
	pod := clone(w.launcher)
	set(pod, "metadata|name", "virt-launcher-web-2")
	set(pod, "metadata|uid", "pod-web-2")
	set(pod, "metadata|creationTimestamp", "2026-05-11T08:00:00Z")
	set(pod, "metadata|labels|kubevirt.io/migrationJobUID", "m1")
	set(pod, "spec|nodeName", "node-b")
	set(pod, "status", object(status))
	w.more = append(w.more, pod)
	return pod
}

func stuckOnNode(w *world) {
	set(w.vmi, "status|conditions", []any{object(`{type: LiveMigratable, status: "False", reason: DisksNotLiveMigratable}`)})
}

type caseOf struct {
	change  func(w *world)
	outcome string
	end     string
	why     string // a part of it
}

const (
	waits = "waits"
	ends  = "ends"
	blank = "unknown"
)

// kindsOfCase are the kinds. Each case is one of its kind.
var kindsOfCase = map[string]map[string]caseOf{
	"a VM that can go": {
		"migrates": {nil, "migrates", ends, ""},
		"restarts": {stuckOnNode, "restarts", ends, ""},
	},
	"the host model is a selector": {
		"no node has the model":   {func(w *world) { set(w.b, "metadata|labels|cpu-model-migration.node.kubevirt.io/Skylake", nil) }, "blocks", waits, "1 lacks cpu-model-migration.node.kubevirt.io/Skylake"},
		"no node has the feature": {func(w *world) { set(w.b, "metadata|labels|cpu-feature.node.kubevirt.io/ibrs", nil) }, "blocks", waits, "1 lacks cpu-feature.node.kubevirt.io/ibrs"},
		"a VM that migrated before": {func(w *world) {
			set(w.launcher, "spec|nodeSelector|cpu-model-migration.node.kubevirt.io/Cascadelake", "true")
		}, "blocks", waits, "Cascadelake"},
		"its node has lost its label, so KubeVirt asks for no model": {func(w *world) {
			set(w.a, "metadata|labels|host-model-cpu.node.kubevirt.io/Skylake", nil)
			set(w.b, "metadata|labels|cpu-model-migration.node.kubevirt.io/Skylake", nil)
			set(w.b, "metadata|labels|cpu-feature.node.kubevirt.io/ibrs", nil)
		}, "migrates", ends, ""},
		"another model is none": {func(w *world) {
			set(w.vmi, "spec|domain|cpu|model", "Haswell")
			set(w.b, "metadata|labels|cpu-model-migration.node.kubevirt.io/Skylake", nil)
		}, "migrates", ends, ""},
		"a restart needs none": {func(w *world) {
			stuckOnNode(w)
			set(w.b, "metadata|labels|cpu-model-migration.node.kubevirt.io/Skylake", nil)
		}, "restarts", ends, ""},
	},
	"the vendor is a selector": {
		"another vendor":          {func(w *world) { w.vendor("AMD") }, "blocks", waits, "1 lacks cpu-vendor.node.kubevirt.io/Intel"},
		"no vendor at all":        {func(w *world) { set(w.b, "metadata|labels|cpu-vendor.node.kubevirt.io/Intel", nil) }, "blocks", waits, "cpu-vendor"},
		"a restart may change it": {func(w *world) { stuckOnNode(w); w.vendor("AMD") }, "restarts", ends, ""},
		"its node has none":       {func(w *world) { set(w.a, "metadata|labels|cpu-vendor.node.kubevirt.io/Intel", nil); w.vendor("AMD") }, "migrates", ends, ""},
		"the launcher's counts":   {func(w *world) { set(w.launcher, "spec|nodeSelector|cpu-vendor.node.kubevirt.io/AMD", "true") }, "blocks", waits, "cpu-vendor.node.kubevirt.io/AMD"},
	},
	"a rule of scheduling": {
		"the machine type": {func(w *world) { set(w.b, "metadata|labels|machine-type.node.kubevirt.io/pc-q35-9", nil) }, "blocks", waits, "machine-type"},
		"dedicated CPUs":   {func(w *world) { set(w.vmi, "spec|domain|cpu|dedicatedCpuPlacement", true) }, "blocks", waits, "cpumanager"},
		"the CR's selector": {func(w *world) {
			set(w.kubevirt, "spec|configuration|developerConfiguration|nodeSelectors", fields{"vms": "yes"})
		}, "blocks", waits, "1 lacks vms=yes"},
		"a cordoned node":    {func(w *world) { set(w.b, "spec|unschedulable", true) }, "blocks", waits, "1 is cordoned"},
		"a taint":            {func(w *world) { set(w.b, "spec|taints", []any{object(`{key: gpu, effect: NoSchedule}`)}) }, "blocks", waits, "1 has the taint gpu"},
		"memory":             {func(w *world) { set(w.b, "status|allocatable|memory", "2Gi") }, "blocks", waits, "1 has 2Gi of the 4400Mi memory it needs"},
		"other pods' memory": {func(w *world) { w.fill("node-b", "30Gi") }, "blocks", waits, "1 has 2Gi of the 4400Mi memory it needs"},
		"pods":               {func(w *world) { set(w.b, "status|allocatable|pods", "0") }, "blocks", waits, "as many pods as"},
		"a volume's node":    {func(w *world) { w.bind("node-a") }, "blocks", waits, "cannot reach volume pv-web"},
		"a volume's zone":    {func(w *world) { set(w.volume, "metadata|labels", fields{"topology.kubernetes.io/zone": "z9"}) }, "blocks", waits, "another zone"},
		"pod anti-affinity": {func(w *world) {
			set(w.launcher, "spec|affinity", object(`{podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: web}}}]}}`))
		}, "blocks", waits, "pod affinity"},
		"topology spread": {func(w *world) {
			set(w.launcher, "spec|topologySpreadConstraints", []any{object(`{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: other}}}`)})
			for i := range 2 {
				pod := w.fill("node-b", "1Mi")
				set(pod, "metadata|name", fmt.Sprintf("other-%d", i))
				set(pod, "metadata|labels", fields{"app": "other"})
			}
			set(w.launcher, "metadata|labels|app", "other")
		}, "blocks", waits, "topology spread"},
		"a host port": {func(w *world) {
			port := object(`{name: compute, ports: [{hostPort: 99, containerPort: 99, protocol: TCP}], resources: {requests: {memory: 1Gi}}}`)
			set(w.launcher, "spec|containers", []any{port})
			set(w.fill("node-b", "1Mi"), "spec|containers", []any{port})
		}, "blocks", waits, "host port"},
		"a claim for one pod": {func(w *world) {
			stuckOnNode(w)
			set(w.claim, "spec|accessModes", []any{"ReadWriteOncePod"})
			set(w.fill("node-b", "1Mi"), "spec|volumes", []any{object(`{name: v, persistentVolumeClaim: {claimName: web}}`)})
		}, "restarts later", ends, "cannot share"},
		"attach limits": {func(w *world) {
			w.more = append(w.more, object(`{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: node-b}, spec: {drivers: [{name: d.example.org, nodeID: b, allocatable: {count: 0}}]}}`))
		}, "blocks", waits, "as many volumes"},
		"a restart waits for its node": {func(w *world) { stuckOnNode(w); w.bind("node-a") }, "restarts later", ends, "cannot reach volume pv-web"},
	},
	"room for only some": {
		"two ask for the room of one": {func(w *world) { set(w.b, "status|allocatable|memory", "5Gi"); w.second("db", "node-a") }, "blocks", waits, "room for 1 of the 2 VMs"},
		"who finds no place anyway takes no room": {func(w *world) {
			set(w.b, "status|allocatable|memory", "5Gi")
			_, _, launcher := w.second("db", "node-a")
			set(launcher, "spec|nodeSelector|nowhere", "yes")
		}, "migrates", ends, ""},
		"who can only follow it takes no room from it": {func(w *world) {
			set(w.b, "status|allocatable|memory", "5Gi")
			_, _, launcher := w.second("db", "node-a")
			set(launcher, "spec|affinity", object(`{podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}`))
		}, "migrates", ends, ""},
		"room for both": {func(w *world) { w.second("db", "node-a") }, "migrates", ends, ""},
		"a restart may come first": {func(w *world) {
			set(w.b, "status|allocatable|memory", "5Gi")
			_, vmi, _ := w.second("db", "node-a")
			set(vmi, "status|conditions", nil)
		}, "unknown", blank, "compete for room"},
		"another pod may come first": {func(w *world) {
			set(w.b, "status|allocatable|memory", "5Gi")
			pod := w.fill("node-a", "4Gi")
			set(pod, "metadata|ownerReferences", []any{object(`{apiVersion: apps/v1, kind: ReplicaSet, name: x, uid: x, controller: true}`)})
		}, "unknown", blank, "compete for room"},
		"a DaemonSet's pod stays": {func(w *world) {
			set(w.b, "status|allocatable|memory", "5Gi")
			pod := w.fill("node-a", "4Gi")
			set(pod, "metadata|ownerReferences", []any{object(`{apiVersion: apps/v1, kind: DaemonSet, name: x, uid: x, controller: true}`)})
		}, "migrates", ends, ""},
		"lower priority would give way": {func(w *world) {
			set(w.launcher, "spec|priority", 1000)
			w.fill("node-b", "30Gi")
		}, "unknown", blank, "lower priority"},
	},
	"a migration does not go on": {
		"its target is unschedulable": {func(w *world) {
			w.more = append(w.more, migrationOf("Scheduling", ""))
			set(w.target(`{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: no node}]}`), "spec|nodeName", nil)
		}, "blocks", waits, "unschedulable: no node"},
		"its target hangs in Init": {func(w *world) {
			w.more = append(w.more, migrationOf("Scheduling", ""))
			w.target(`{phase: Pending}`)
		}, "blocks", waits, "has not started in 10m"},
		"its target has just been made": {func(w *world) {
			w.more = append(w.more, migrationOf("Scheduling", ""))
			set(w.target(`{phase: Pending}`), "metadata|creationTimestamp", "2026-05-11T08:10:00Z")
		}, "unknown", blank, "has not started yet"},
		"the last ones failed": {func(w *world) {
			w.more = append(w.more, migrationOf("Failed", `, migrationState: {failureReason: timed out}`))
		}, "unknown", blank, "failed: timed out"},
		"it ran, and nobody ended it": {func(w *world) {
			set(w.vmi, "status|migrationState", object(`{startTimestamp: "2026-05-01T10:00:00Z"}`))
		}, "blocks", waits, "says since 2026-05-01T10:00:00Z"},
		"a utility volume is there": {func(w *world) { set(w.vmi, "spec|utilityVolumes", []any{object(`{name: backup, claimName: b}`)}) }, "blocks", waits, "utility volume backup"},
		"a utility volume is there, and so is a target": {func(w *world) {
			set(w.vmi, "spec|utilityVolumes", []any{object(`{name: backup, claimName: b}`)})
			w.more = append(w.more, migrationOf("Pending", ""))
			w.target(`{phase: Running}`)
		}, "blocks", waits, "utility volume backup"},
		"a utility volume came too late": {func(w *world) {
			set(w.vmi, "spec|utilityVolumes", []any{object(`{name: backup, claimName: b}`)})
			w.more = append(w.more, migrationOf("Running", ""))
			w.target(`{phase: Running}`)
		}, "migrates", ends, "under way"},
		"a backup is waited for, though a target is there": {func(w *world) {
			set(w.vmi, "status|changedBlockTracking", object(`{state: Enabled, backupStatus: {backupName: nightly}}`))
			w.more = append(w.more, migrationOf("Pending", ""))
			w.target(`{phase: Running}`)
		}, "migrates", ends, "waits for its backup nightly"},
		"a backup came too late": {func(w *world) {
			set(w.vmi, "status|changedBlockTracking", object(`{state: Enabled, backupStatus: {backupName: nightly}}`))
			w.more = append(w.more, migrationOf("Running", ""))
			w.target(`{phase: Running}`)
		}, "migrates", ends, "under way"},
		"none may run": {func(w *world) {
			set(w.kubevirt, "spec|configuration|migrations", fields{"parallelMigrationsPerCluster": 0})
		}, "blocks", waits, "parallelMigrationsPerCluster is 0"},
		"none may leave a node": {func(w *world) {
			set(w.kubevirt, "spec|configuration|migrations", fields{"parallelOutboundMigrationsPerNode": 0})
		}, "blocks", waits, "parallelOutboundMigrationsPerNode is 0"},
		"the mark is stale": {func(w *world) { set(w.vmi, "status|evacuationNodeName", "node-b") }, "blocks", waits, "still marked"},
		"it runs already, and none other may": {func(w *world) {
			set(w.kubevirt, "spec|configuration|migrations", fields{"parallelMigrationsPerCluster": 0, "parallelOutboundMigrationsPerNode": 0})
			w.more = append(w.more, migrationOf("Running", ""))
			w.target(`{phase: Running}`)
		}, "migrates", ends, "under way"},
		"the mark is stale, and it migrates all the same": {func(w *world) {
			set(w.vmi, "status|evacuationNodeName", "node-b")
			w.more = append(w.more, migrationOf("Running", ""))
			w.target(`{phase: Running}`)
		}, "migrates", ends, "under way"},
		"the mark is stale, and migrations were not read": {func(w *world) {
			set(w.vmi, "status|evacuationNodeName", "node-b")
			w.without = []string{"VirtualMachineInstanceMigration"}
		}, "unknown", blank, "no virtualmachineinstancemigrations"},
		"it runs, so it goes on": {func(w *world) { w.more = append(w.more, migrationOf("Running", "")); w.target(`{phase: Running}`) }, "migrates", ends, "under way"},
		"a backup is aborted": {func(w *world) {
			set(w.vmi, "status|changedBlockTracking", object(`{state: Enabled, backupStatus: {backupName: nightly}}`))
		}, "migrates", ends, "aborts its backup nightly"},
	},
	"a node with the drain taint": {
		"is evacuated already": {func(w *world) { w.drainTaint("kubevirt.io/drain") }, "migrates", ends, "under way, as its node has the taint kubevirt.io/drain"},
		"is so whatever the mark": {func(w *world) {
			w.drainTaint("kubevirt.io/drain")
			set(w.vmi, "status|evacuationNodeName", "node-b")
		}, "migrates", ends, "has the taint"},
		"is so whatever its VM says": {func(w *world) {
			w.drainTaint("kubevirt.io/drain")
			set(w.vmi, "status|migrationState", object(`{startTimestamp: "2026-05-01T10:00:00Z"}`))
		}, "migrates", ends, "has the taint"},
		"that the CR names": {func(w *world) {
			set(w.kubevirt, "spec|configuration|migrations", fields{"nodeDrainTaintKey": "example.org/drain"})
			w.drainTaint("example.org/drain")
			set(w.vmi, "status|evacuationNodeName", "node-b")
		}, "migrates", ends, "has the taint example.org/drain"},
		"of another CR": {func(w *world) {
			w.drainTaint("example.org/drain")
			set(w.vmi, "status|evacuationNodeName", "node-b")
		}, "blocks", waits, "still marked"},
		"or not, as nodes were not read": {func(w *world) {
			set(w.vmi, "status|evacuationNodeName", "node-b")
			w.without = []string{"Node"}
		}, "unknown", blank, "no nodes"},
		"as well as the other node": {func(w *world) {
			w.drainTaint("kubevirt.io/drain")
			set(w.b, "spec|taints", w.a["spec"].(fields)["taints"])
		}, "blocks", waits, "has the taint kubevirt.io/drain"},
		"leaves what cannot migrate": {func(w *world) { stuckOnNode(w); w.drainTaint("kubevirt.io/drain") }, "restarts", ends, ""},
	},
	"a second launcher": {
		"lives": {func(w *world) {
			set(w.target(`{phase: Running}`), "metadata|labels|kubevirt.io/migrationJobUID", "gone")
		}, "blocks", waits, "second launcher"},
		"is terminating": {func(w *world) {
			set(w.target(`{phase: Running}`), "metadata|deletionTimestamp", "2026-05-11T08:00:00Z")
		}, "blocks", waits, "is terminating"},
		"is pending": {func(w *world) { set(w.target(`{phase: Pending}`), "spec|nodeName", nil) }, "blocks", waits, "second launcher"},
		"has ended":  {func(w *world) { w.target(`{phase: Succeeded}`) }, "migrates", ends, ""},
		"is another VMI's": {func(w *world) {
			set(w.target(`{phase: Running}`), "metadata|ownerReferences", []any{object(`{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, name: web, uid: old, controller: true}`)})
			set(w.more[len(w.more)-1], "metadata|labels|kubevirt.io/created-by", "old")
		}, "migrates", ends, ""},
	},
	"a node is not ready": {
		"a VM that would migrate": {func(w *world) { w.notReady("False") }, "blocks", waits, "not ready"},
		"a VM that would restart": {func(w *world) { stuckOnNode(w); w.notReady("False") }, "blocks", waits, "not ready"},
		"its kubelet is silent":   {func(w *world) { w.notReady("Unknown") }, "blocks", waits, "not ready"},
		"its launcher is going": {func(w *world) {
			stuckOnNode(w)
			w.notReady("False")
			set(w.launcher, "metadata|deletionTimestamp", "2026-05-11T08:00:00Z")
		}, "blocks", waits, "not ready"},
		"a budget holds it too": {func(w *world) { stuckOnNode(w); w.notReady("Unknown"); w.without = []string{"PodDisruptionBudget"} }, "blocks", waits, "not ready"},
	},
	"a VMI that is being deleted": {
		"Always":         {func(w *world) { w.deleted("Always") }, "restarts", ends, ""},
		"Once":           {func(w *world) { w.deleted("Once") }, "restarts", ends, "Once starts another"},
		"RerunOnFailure": {func(w *world) { w.deleted("RerunOnFailure") }, "stays off", ends, "RerunOnFailure starts none"},
		"Manual":         {func(w *world) { w.deleted("Manual") }, "stays off", ends, "Manual"},
		"Manual, and a start is asked": {func(w *world) {
			w.deleted("Manual")
			set(w.vm, "status|stateChangeRequests", []any{fields{"action": "Start"}})
		}, "restarts", ends, "a start has been asked for"},
		"WaitAsReceiver": {func(w *world) { w.deleted("WaitAsReceiver") }, "restarts", ends, "WaitAsReceiver starts another"},
		"Halted":         {func(w *world) { w.deleted("Halted") }, "stays off", ends, "Halted"},
	},
	"volumes that are being migrated": {
		"a restart would boot from the new ones": {func(w *world) {
			stuckOnNode(w)
			set(w.vmi, "status|migratedVolumes", []any{fields{"volumeName": "root"}})
			set(w.vm, "status|volumeUpdateState", object(`{volumeMigrationState: {migratedVolumes: [{volumeName: root}]}}`))
		}, "stays off", ends, "volumes are being migrated"},
		"it has to be recovered": {func(w *world) {
			stuckOnNode(w)
			set(w.vm, "status|conditions", []any{object(`{type: ManualRecoveryRequired, status: "True"}`)})
		}, "stays off", ends, "broken off"},
		"it has been recovered": {func(w *world) {
			stuckOnNode(w)
			set(w.vm, "status|conditions", []any{object(`{type: ManualRecoveryRequired, status: "False"}`)})
		}, "restarts", ends, ""},
		"they have been": {func(w *world) {
			stuckOnNode(w)
			set(w.vm, "status|volumeUpdateState", object(`{volumeMigrationState: {migratedVolumes: [{volumeName: root}]}}`))
		}, "restarts", ends, ""},
		"it can migrate": {func(w *world) {
			set(w.vmi, "status|migratedVolumes", []any{fields{"volumeName": "root"}})
			set(w.vm, "status|volumeUpdateState", object(`{volumeMigrationState: {migratedVolumes: [{volumeName: root}]}}`))
		}, "migrates", ends, ""},
	},
	"a quota refuses a migration's target": {
		"and still does": {func(w *world) { w.refusedByQuota("True") }, "blocks", waits, "ResourceQuota refuses the target of its migration m1"},
		"and no longer":  {func(w *world) { w.refusedByQuota("False") }, "migrates", ends, "under way"},
		"and did before it failed": {func(w *world) {
			set(w.refusedByQuota("True"), "status|phase", "Failed")
		}, "unknown", blank, "its last migration has failed"},
		"of another VM": {func(w *world) { set(w.refusedByQuota("True"), "spec|vmiName", "db") }, "migrates", ends, ""},
		"and has let it in since": {func(w *world) {
			w.refusedByQuota("True")
			w.target(`{phase: Running}`)
		}, "migrates", ends, "under way"},
		"of a VM that cannot migrate": {func(w *world) { stuckOnNode(w); w.refusedByQuota("True") }, "restarts", ends, ""},
	},
	"a TPM's state": {
		"can be had anywhere": {func(w *world) { w.state("ReadWriteOnce", "") }, "migrates", ends, ""},
		"moves to a new volume, which only some nodes may have": {func(w *world) { w.state("ReadWriteOnce", "node-a") }, "unknown", blank, "new volume"},
		"moves, and there is no room anyway": {func(w *world) {
			w.state("ReadWriteOnce", "node-a")
			set(w.b, "status|allocatable|memory", "2Gi")
		}, "blocks", waits, "1 has 2Gi of the 4400Mi memory it needs"},
		"is shared by both launchers":        {func(w *world) { w.state("ReadWriteMany", "node-a") }, "blocks", waits, "cannot reach volume pv-state"},
		"is shared, and can be had anywhere": {func(w *world) { w.state("ReadWriteMany", "") }, "migrates", ends, ""},
		"stays where it is in a restart":     {func(w *world) { stuckOnNode(w); w.state("ReadWriteOnce", "node-a") }, "restarts later", ends, "cannot reach volume pv-state"},
		"is in another zone than the other nodes": {func(w *world) {
			set(w.state("ReadWriteOnce", ""), "metadata|labels", fields{"topology.kubernetes.io/zone": "z9"})
		}, "unknown", blank, "new volume"},
	},
	"a kind that the dump lacks": {
		"VMs":                         {func(w *world) { stuckOnNode(w); w.without = []string{"VirtualMachine"} }, "unknown", blank, "no virtualmachines"},
		"VMs, but it migrates":        {func(w *world) { w.without = []string{"VirtualMachine"} }, "migrates", ends, ""},
		"claims":                      {func(w *world) { w.without = []string{"PersistentVolumeClaim"} }, "unknown", blank, "no persistentvolumeclaims"},
		"volumes":                     {func(w *world) { stuckOnNode(w); w.without = []string{"PersistentVolume"} }, "unknown", blank, "no persistentvolumes"},
		"budgets":                     {func(w *world) { stuckOnNode(w); w.without = []string{"PodDisruptionBudget"} }, "unknown", blank, "no poddisruptionbudgets"},
		"migrations":                  {func(w *world) { w.without = []string{"VirtualMachineInstanceMigration"} }, "unknown", blank, "no virtualmachineinstancemigrations"},
		"nodes":                       {func(w *world) { w.without = []string{"Node"} }, "unknown", blank, "no nodes"},
		"pods":                        {func(w *world) { w.without = []string{"Pod"} }, "unknown", blank, "no pods"},
		"the CR, but it migrates not": {func(w *world) { stuckOnNode(w); w.without = []string{"KubeVirt"} }, "restarts", ends, ""},
	},
}

func (w *world) vendor(name string) {
	set(w.b, "metadata|labels|cpu-vendor.node.kubevirt.io/Intel", nil)
	set(w.b, "metadata|labels|cpu-vendor.node.kubevirt.io/"+name, "true")
}

func (w *world) fill(node, memory string) fields {
	pod := object(`{apiVersion: v1, kind: Pod, metadata: {name: filler, namespace: shop}, spec: {nodeName: ` + node + `, containers: [{name: c, resources: {requests: {memory: ` + memory + `}}}]}, status: {phase: Running}}`)
	w.more = append(w.more, pod)
	return pod
}

// state gives the VM a TPM that keeps its state on a volume, of one node or of all, and returns the volume.
func (w *world) state(mode, node string) (volume fields) {
	set(w.vmi, "spec|domain|devices|tpm", fields{"persistent": true})
	set(w.launcher, "spec|volumes", append(w.launcher["spec"].(fields)["volumes"].([]any),
		object(`{name: vm-state, persistentVolumeClaim: {claimName: persistent-state-for-web-x}}`)))
	volume = object(`{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-state}, spec: {accessModes: [` + mode + `], csi: {driver: d.example.org, volumeHandle: state}}}`)
	if node != "" {
		set(volume, "spec|nodeAffinity", onNode(node))
	}
	w.more = append(w.more, volume, object(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: persistent-state-for-web-x, namespace: shop},
  spec: {volumeName: pv-state, accessModes: [`+mode+`]}, status: {phase: Bound, accessModes: [`+mode+`]}}`))
	return volume
}

func onNode(name string) fields {
	return object(`{required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [` + name + `]}]}]}}`)
}

func (w *world) bind(node string) {
	set(w.volume, "spec|nodeAffinity", onNode(node))
}

func (w *world) notReady(status string) {
	set(w.a, "status|conditions", []any{fields{"type": "Ready", "status": status}})
}

func (w *world) drainTaint(key string) {
	set(w.a, "spec|taints", []any{fields{"key": key, "effect": "NoSchedule"}})
}

func (w *world) deleted(strategy string) {
	set(w.vm, "spec|runStrategy", strategy)
	set(w.vmi, "metadata|deletionTimestamp", "2026-05-11T08:00:00Z")
}

func TestEachKindOfTroubleIsSeen(t *testing.T) {
	for kind, cases := range kindsOfCase {
		for name, c := range cases {
			t.Run(kind+"/"+name, func(t *testing.T) {
				w := newWorld(t)
				// What a case does not say that the dump lacks, it has: a migration and a budget of nobody in question.
				w.more = append(w.more,
					object(`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: other, namespace: other}, spec: {selector: {matchLabels: {a: b}}}}`),
					object(`{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstanceMigration, metadata: {name: other, namespace: other}, spec: {vmiName: other}, status: {phase: Succeeded}}`))
				if c.change != nil {
					c.change(w)
				}
				out, errOut, status := run(w.dump(t), "-f", "-", "-o", "json", "node-a")
				require.Empty(t, errOut)
				var said struct {
					VMs []struct {
						Name, Node string
						Drain      struct{ Outcome, End, Why string }
					}
				}
				require.NoError(t, json.Unmarshal([]byte(out), &said))
				seen := false
				for _, vm := range said.VMs {
					if vm.Name != "web" || vm.Node != "node-a" {
						continue
					}
					seen = true
					assert.Equal(t, c.outcome, vm.Drain.Outcome, vm.Drain.Why)
					assert.Equal(t, c.end, vm.Drain.End)
					assert.Contains(t, vm.Drain.Why, c.why)
				}
				assert.True(t, seen, out)
				if len(said.VMs) == 1 {
					assert.Equal(t, map[string]int{ends: 0, waits: 3, blank: 1}[c.end], status)
				}
			})
		}
	}
}

// Each plugin of the scheduler is needed: without it, the case that it decides comes out otherwise.
func TestEachRuleOfSchedulingIsNeeded(t *testing.T) {
	defer func() { scheduling.Without = "" }()
	for rule, name := range map[string]string{
		"NodeUnschedulable": "a cordoned node", "TaintToleration": "a taint", "NodeAffinity": "the machine type", "NodePorts": "a host port",
		"NodeResourcesFit": "memory", "VolumeRestrictions": "a claim for one pod", "NodeVolumeLimits": "attach limits",
		"VolumeBinding": "a volume's node", "VolumeZone": "a volume's zone", "PodTopologySpread": "topology spread",
		"InterPodAffinity": "pod anti-affinity",
	} {
		t.Run(rule, func(t *testing.T) {
			w := newWorld(t)
			c := kindsOfCase["a rule of scheduling"][name]
			c.change(w)
			dump := w.dump(t)
			scheduling.Without = ""
			out, _, _ := run(dump, "-f", "-", "--complete", "-o", "json", "node-a")
			assert.Contains(t, out, fmt.Sprintf("%q: %q", "outcome", c.outcome))
			scheduling.Without = rule
			out, _, _ = run(dump, "-f", "-", "--complete", "-o", "json", "node-a")
			assert.NotContains(t, out, fmt.Sprintf("%q: %q", "outcome", c.outcome), "without the rule, its case comes out the same")
		})
	}
}

// What is no other than YAML or JSON is read, or refused with its place.
func TestEveryFormOfADumpIsReadWhole(t *testing.T) {
	w := newWorld(t)
	stuckOnNode(w)
	w.more = append(w.more, object(`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: hold, namespace: shop, generation: 1}, spec: {selector: {matchLabels: {app: web}}},
  status: {observedGeneration: 1, disruptionsAllowed: 0}}`))
	list := w.dump(t)
	var read struct{ Items []fields }
	require.NoError(t, json.Unmarshal([]byte(list), &read))
	inYAML := func(o any) string {
		text, err := yaml.Marshal(o)
		require.NoError(t, err)
		return string(text)
	}
	item := func(o fields) string {
		return "- " + strings.ReplaceAll(strings.TrimSpace(inYAML(o)), "\n", "\n  ") + "\n"
	}
	first, last := read.Items[:len(read.Items)-1], read.Items[len(read.Items)-1]
	items, flow, documents, dashes, quotedKeys := "", "", "", "", ""
	for _, o := range first {
		items += item(o)
		text, _ := json.Marshal(o)
		flow += "  " + string(text) + ",\n"
		documents += "---\n" + inYAML(o)
		dashes += "-\n  " + strings.ReplaceAll(strings.TrimSpace(inYAML(o)), "\n", "\n  ") + "\n"
	}
	for _, o := range read.Items {
		quotedKeys += strings.Replace(item(o), "kind:", `"kind":`, 1)
	}
	lastText, _ := json.Marshal(last)
	raw := `{"kind":"PodDisruptionBudgetList","apiVersion":"policy/v1","items":[` + strings.Replace(strings.Replace(string(lastText), `"kind":"PodDisruptionBudget",`, "", 1), `"apiVersion":"policy/v1",`, "", 1) + `]}`
	head := "apiVersion: v1\nkind: List\nitems:\n"
	for name, text := range map[string]string{
		"a comment between items":      head + items + "# and now\n" + item(last),
		"a flow list, second document": head + items + "---\napiVersion: v1\nkind: List\nitems: [" + string(lastText) + "]\n",
		"a flow list":                  "apiVersion: v1\nkind: List\nitems: [\n" + flow + string(lastText) + "]\n",
		"dashes alone on their line":   head + dashes + "-\n  " + strings.ReplaceAll(strings.TrimSpace(inYAML(last)), "\n", "\n  ") + "\n",
		"quoted keys":                  head + quotedKeys,
		"documents":                    documents + "---\n" + inYAML(last),
		"directives":                   "%YAML 1.2\n" + documents + "...\n%YAML 1.2\n---\n" + inYAML(last),
		"JSON and then YAML":           `{"apiVersion":"v1","kind":"List","items":[` + string(lastText) + "]}\n---\n" + head + items,
		"YAML and then JSON":           head + items + "---\n" + string(lastText),
		"JSON after JSON":              strings.Replace(list, ","+string(lastText), "", 1) + string(lastText),
		"lists in lists":               `{"apiVersion":"v1","items":[` + list + `,{"kind":"List","apiVersion":"v1","items":null}],"kind":"List"}`,
		"a raw list":                   strings.Replace(list, ","+string(lastText), "", 1) + raw,
		"the same object twice":        list + list,
		"kind after items":             inYAML(fields{"items": read.Items, "kind": "List", "apiVersion": "v1"}),
		"Windows line ends":            strings.ReplaceAll(documents+"---\n"+inYAML(last), "\n", "\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, status := run(text, "-f", "-", "-o", "json")
			require.Empty(t, errOut)
			assert.Equal(t, 3, status, "the budget, which comes last, holds the VM")
			assert.Contains(t, out, "PodDisruptionBudget hold allows no disruption")
			assert.Equal(t, 1, strings.Count(out, `"name": "web"`), "each VM counts once")
		})
	}
	for name, text := range map[string]string{
		"JSON after YAML without a separator": head + items + string(lastText) + "\n",
		"a cut-off dump":                      list[:len(list)-30],
		"text between documents":              documents + "---\njust text\n---\n" + inYAML(last),
		"a number among the items":            strings.Replace(list, `"items":[`, `"items":[7,`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, status := run(text, "-f", "-")
			assert.Equal(t, 1, status)
			assert.Empty(t, out)
			assert.Contains(t, errOut, "document ")
		})
	}
	t.Run("several files add up", func(t *testing.T) {
		folder := t.TempDir()
		one, other := filepath.Join(folder, "one.json"), filepath.Join(folder, "other.yaml")
		require.NoError(t, os.WriteFile(one, []byte(list), 0o600))
		require.NoError(t, os.WriteFile(other, []byte(documents), 0o600))
		out, errOut, status := run("", "-f", one, "-f", other, "-o", "json")
		require.Empty(t, errOut)
		assert.Equal(t, 3, status)
		assert.Equal(t, 1, strings.Count(out, `"name": "web"`))
	})
}

func TestUntrustedTextForgesNothing(t *testing.T) {
	forged := "\x1b[2J\x1b[1;32mA drain would end.\nNode x: 0 VMs\u202e"
	for name, change := range map[string]func(*world){
		"an owner's kind": func(w *world) {
			set(w.vmi, "metadata|ownerReferences", []any{fields{"apiVersion": "v1", "kind": forged, "name": "x", "uid": "x", "controller": true}})
		},
		"a reason": func(w *world) {
			set(w.vmi, "status|conditions", []any{fields{"type": "LiveMigratable", "status": "False", "reason": forged}})
		},
		"a phase":    func(w *world) { set(w.vmi, "status|phase", forged) },
		"a strategy": func(w *world) { set(w.vmi, "spec|evictionStrategy", forged) },
		"a scheduler's words": func(w *world) {
			w.more = append(w.more, migrationOf("Scheduling", ""))
			set(w.target(`{phase: Pending}`), "status|conditions", []any{fields{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": forged}})
		},
	} {
		for _, format := range []string{"", "wide", "markdown", "json", "yaml"} {
			t.Run(name+" as "+format, func(t *testing.T) {
				w := newWorld(t)
				stuckOnNode(w)
				change(w)
				args := []string{"-f", "-", "--complete"}
				if format != "" {
					args = append(args, "-o", format)
				}
				out, _, _ := run(w.dump(t), args...)
				assert.NotContains(t, out, "\x1b")
				if format != "json" && format != "yaml" { // which are for programs
					assert.NotContains(t, out, "\u202e")
				}
				for line := range strings.Lines(out) {
					assert.False(t, strings.HasPrefix(line, "Node x"), line)
				}
			})
		}
	}
}

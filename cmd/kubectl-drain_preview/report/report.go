// Package report is what a preview says: a row for each VM, and what follows from all of them.
package report

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// GroupVersionKind is what a report says of itself in JSON and YAML.
var GroupVersionKind = schema.GroupVersionKind{Group: "drain-preview", Version: "v1", Kind: "DrainPreview"}

// Report is the whole answer. It is an Object so that kubectl's printers take it.
type Report struct {
	metav1.TypeMeta `json:",inline"`
	Nodes           []string `json:"nodes"`
	// VMs are by node, namespace and name.
	VMs []VM `json:"vms"`
	// Drains says whether the drains would end: "ends", "waits" or "unknown".
	Drains verdict.End `json:"drains"`
	// Pace is of an upgrade of the whole cluster.
	Pace Pace `json:"pace"`
	// Read is what was read, as counts by kind.
	Read string `json:"read"`
	// Notes are what could not be read.
	Notes  []string `json:"notes,omitempty"`
	Advice []Advice `json:"advice,omitempty"`
}

// VM is what happens to one VM on one node.
type VM struct {
	Namespace      string         `json:"namespace"`
	Name           string         `json:"name"`
	Node           string         `json:"node"`
	Phase          string         `json:"phase"`
	Strategy       string         `json:"evictionStrategy"` // "" if it is not known
	StrategySource verdict.Source `json:"evictionStrategySource"`
	LiveMigratable bool           `json:"liveMigratable"`
	// Reason is KubeVirt's own, of the condition LiveMigratable.
	Reason string `json:"reason,omitempty"`
	// NextStrategy is what the VM's next VMI will carry; "" if there is no VM, or it is not known.
	NextStrategy string  `json:"nextEvictionStrategy,omitempty"`
	RunStrategy  string  `json:"runStrategy"` // "" if there is no VM, "unknown" if it could not be read
	Drain        Drain   `json:"drain"`
	Upgrade      Upgrade `json:"upgrade"`

	// Launcher is its pod on the node.
	Launcher string `json:"launcher,omitempty"`
	// Verified is what the cluster itself says of its eviction, where it was asked (--verify).
	Verified *Verified `json:"verified,omitempty"`

	launcher  *corev1.Pod
	launchers []*corev1.Pod // all of its VMI's
	vmi       *v1.VirtualMachineInstance
	eviction  verdict.Answer
	budget    string
}

// Drain is the verdict on a drain of the VM's node.
type Drain struct {
	Outcome verdict.Outcome `json:"outcome"`
	Why     string          `json:"why,omitempty"`
	End     verdict.End     `json:"end"`
	Cause   verdict.Cause   `json:"cause,omitempty"`
}

// Upgrade is the verdict on an upgrade of KubeVirt.
type Upgrade struct {
	Outcome verdict.Outcome `json:"outcome"`
	Why     string          `json:"why,omitempty"`
	// Batch is when the VM is evicted, such as "batch 1" or "batch ≤ 3"; "" if it is not.
	Batch string `json:"batch,omitempty"`
}

// Pace is how the updater goes about an upgrade.
type Pace struct {
	Evictions     int             `json:"evictions"`
	Refused       int             `json:"refused"`
	Migrations    int             `json:"migrations"`
	Parallel      int             `json:"parallelMigrations"`
	BatchSize     int             `json:"batchEvictionSize"`
	BatchInterval metav1.Duration `json:"batchEvictionInterval"`
	Batches       int             `json:"batches"`
	AtLeast       metav1.Duration `json:"atLeast"`
	// Unknown says why nothing is known of the pace, if so.
	Unknown string `json:"unknown,omitempty"`
}

// DeepCopyObject makes a Report an Object.
func (r *Report) DeepCopyObject() runtime.Object {
	c := *r
	c.Nodes, c.VMs = slices.Clone(r.Nodes), slices.Clone(r.VMs)
	c.Notes, c.Advice = slices.Clone(r.Notes), slices.Clone(r.Advice)
	return &c
}

// Exit statuses of the command.
const (
	ExitEnds       = 0 // every drain would end
	ExitUnanswered = 1 // the question could not be answered
	ExitWaits      = 3 // something would block a drain
	ExitDisagrees  = 4 // the cluster answers an eviction otherwise than previewed
)

// ExitStatus is for scripts. What is known to block a drain is said even where other things are not known.
func (r *Report) ExitStatus() int {
	for _, vm := range r.VMs {
		if vm.Verified != nil && !vm.Verified.Agreed {
			return ExitDisagrees
		}
	}
	switch r.Drains {
	case verdict.Waits:
		return ExitWaits
	case verdict.NoTell:
		return ExitUnanswered
	}
	return ExitEnds
}

// On are the VMs of one node.
func (r *Report) On(node string) []VM {
	byNode := func(vm VM, node string) int { return strings.Compare(vm.Node, node) }
	begin, _ := slices.BinarySearchFunc(r.VMs, node, byNode)
	end, _ := slices.BinarySearchFunc(r.VMs[begin:], node+"\x00", byNode)
	return r.VMs[begin : begin+end]
}

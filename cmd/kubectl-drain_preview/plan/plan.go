// Package plan is a maintenance window on paper: nodes that are drained one after the other, what each step does to each
// VM, what has to be done before, and how long it may take.
package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// GroupVersionKind is what a plan says of itself in JSON and YAML.
var GroupVersionKind = schema.GroupVersionKind{Group: "drain-preview", Version: "v1", Kind: "DrainPlan"}

// Plan is the drains of some nodes, in their order.
type Plan struct {
	metav1.TypeMeta `json:",inline"`
	// Order says where the order of the steps comes from: "given" or "auto".
	Order string `json:"order"`
	Steps []Step `json:"steps"`
	// Drains says whether all drains would end: "ends", "waits" or "unknown".
	Drains verdict.End `json:"drains"`
	// Read is what was read, as counts by kind; Notes are what could not be.
	Read  string   `json:"read"`
	Notes []string `json:"notes,omitempty"`
}

// Step is one drain, mostly of one node, which is let in again before the next.
type Step struct {
	Nodes  []string    `json:"nodes"`
	VMs    []VM        `json:"vms"` // by namespace and name
	Drains verdict.End `json:"drains"`
}

// VM is what a step does to one VM.
type VM struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Node is the one that it leaves, Assumed the one that it is assumed to go to, "" where it goes to none.
	Node    string          `json:"node"`
	Assumed string          `json:"assumed,omitempty"`
	Outcome verdict.Outcome `json:"outcome"`
	Why     string          `json:"why,omitempty"`
	End     verdict.End     `json:"end"`
	Cause   verdict.Cause   `json:"cause,omitempty"`
	// Restarts counts how often the plan has restarted it, this step included.
	Restarts int `json:"restarts,omitempty"`
	// IfAssumed says that this holds only if the VMs of earlier steps went where the plan assumes.
	IfAssumed bool `json:"ifAssumed,omitempty"`
}

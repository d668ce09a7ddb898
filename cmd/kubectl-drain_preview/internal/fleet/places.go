package fleet

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/source"
	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// This file says whether another node could take a VM: by the scheduler's own rules for selectors, taints and volumes,
// and without a look at what is free there.

type places struct {
	objects *source.Objects
	claims  map[types.NamespacedName]*corev1.PersistentVolumeClaim
	volumes map[string]*corev1.PersistentVolume
	open    []*corev1.Node // nodes that take VMs
	// reached are the nodes of open on which a volume can be had, by its selector: volumes of one node share theirs.
	reached map[string][]bool
}

func newPlaces(objects *source.Objects) *places {
	p := &places{
		objects: objects,
		claims:  map[types.NamespacedName]*corev1.PersistentVolumeClaim{},
		volumes: map[string]*corev1.PersistentVolume{},
		reached: map[string][]bool{},
	}
	for _, claim := range objects.Claims {
		p.claims[nameOf(claim)] = claim
	}
	for _, volume := range objects.Volumes {
		p.volumes[volume.Name] = volume
	}
	for _, node := range objects.Nodes {
		// Launchers select the label (pkg/virt-controller/services/nodeselectorrenderer.go).
		if node.Labels[v1.NodeSchedulable] == "true" && !node.Spec.Unschedulable {
			p.open = append(p.open, node)
		}
	}
	return p
}

// elsewhere judges the spec of a VMI on a node.
func (p *places) elsewhere(namespace, node string, spec v1.VirtualMachineInstanceSpec) verdict.Place {
	bound, gap := p.affinities(namespace, spec)
	if gap != "" {
		return verdict.Place{Gap: gap}
	}
	if gap := p.objects.Gaps[source.Nodes]; gap != "" {
		if len(bound) == 0 && len(spec.NodeSelector) == 0 && spec.Affinity == nil {
			return verdict.Place{} // nothing ties it to any node
		}
		return verdict.Place{Gap: gap}
	}
	selects := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: corev1.PodSpec{NodeSelector: spec.NodeSelector, Affinity: spec.Affinity}})
	closest := obstacle{onlyNode, ""}
	for i, other := range p.open {
		if other.Name == node {
			continue
		}
		found := between(other, i, selects, spec.Tolerations, bound)
		if found.what == nothing {
			return verdict.Place{}
		}
		if found.what > closest.what {
			closest = found
		}
	}
	return verdict.Place{Bound: closest.String()}
}

// obstacle is what keeps a VM from a node.
type obstacle struct {
	what kindOfObstacle
	name string // of the taint or volume
}

// kindOfObstacle is ordered: the greater it is, the closer the node comes to taking the VM.
type kindOfObstacle int

const (
	nothing kindOfObstacle = iota
	onlyNode
	taint
	selector
	volume
)

func (o obstacle) String() string {
	switch o.what {
	case taint:
		return fmt.Sprintf("taint %s keeps it from other nodes", o.name)
	case selector:
		return "its nodeSelector or affinity fits no other node"
	case volume:
		return fmt.Sprintf("volume %s is on this node only", o.name)
	}
	return "no other node takes VMs"
}

// between is what keeps a VM from a node, the i-th that takes VMs.
func between(node *corev1.Node, i int, selects nodeaffinity.RequiredNodeAffinity, tolerations []corev1.Toleration, bound []boundVolume) obstacle {
	if unmet, tainted := corev1helpers.FindMatchingUntoleratedTaint(node.Spec.Taints, tolerations, keepsOut); tainted {
		return obstacle{taint, unmet.Key}
	}
	if fits, err := selects.Match(node); err != nil || !fits {
		return obstacle{selector, ""}
	}
	for _, v := range bound {
		if !v.reached[i] {
			return obstacle{volume, v.name}
		}
	}
	return obstacle{}
}

func keepsOut(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}

// boundVolume is a volume that can be had on some nodes only.
type boundVolume struct {
	name    string
	reached []bool // by node that takes VMs
}

// reachedBy says on which of the nodes that take VMs a volume can be had.
func (p *places) reachedBy(volume *corev1.PersistentVolume) ([]bool, error) {
	key := volume.Spec.NodeAffinity.Required.String()
	if reached, known := p.reached[key]; known {
		return reached, nil
	}
	selector, err := nodeaffinity.NewNodeSelector(volume.Spec.NodeAffinity.Required)
	if err != nil {
		return nil, err
	}
	reached := make([]bool, len(p.open))
	for i, node := range p.open {
		reached[i] = selector.Match(node)
	}
	p.reached[key] = reached
	return reached, nil
}

// affinities are the volumes of a VMI that can be had on some nodes only, or what could not be read of them.
func (p *places) affinities(namespace string, spec v1.VirtualMachineInstanceSpec) (bound []boundVolume, gap string) {
	for _, volume := range spec.Volumes {
		claimName := claimOf(volume)
		if claimName == "" {
			continue
		}
		claim := p.claims[types.NamespacedName{Namespace: namespace, Name: claimName}]
		if claim == nil {
			if gap := p.absent(source.Claims, claimName); gap != "" {
				return nil, gap
			}
			continue
		}
		if claim.Spec.VolumeName == "" {
			continue // not bound yet, so not to a node
		}
		pv := p.volumes[claim.Spec.VolumeName]
		if pv == nil {
			if gap := p.absent(source.Volumes, claim.Spec.VolumeName); gap != "" {
				return nil, gap
			}
			continue
		}
		if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
			continue
		}
		reached, err := p.reachedBy(pv)
		if err != nil {
			return nil, fmt.Sprintf("the nodeAffinity of persistentvolume %s cannot be read: %v", pv.Name, err)
		}
		bound = append(bound, boundVolume{pv.Name, reached})
	}
	return bound, ""
}

// absent says why an object is not there: a gap, unless the cluster itself says that there is none.
func (p *places) absent(kind source.Kind, name string) string {
	if gap := p.objects.Gaps[kind]; gap != "" {
		return gap
	}
	if p.objects.FromDump {
		return fmt.Sprintf("the dump has no %s %s", strings.TrimSuffix(string(kind), "s"), name)
	}
	return ""
}

// claimOf is the claim that a volume uses, or "". A DataVolume's claim has its name.
func claimOf(volume v1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.DataVolume != nil:
		return volume.DataVolume.Name
	case volume.Ephemeral != nil && volume.Ephemeral.PersistentVolumeClaim != nil:
		return volume.Ephemeral.PersistentVolumeClaim.ClaimName
	}
	return ""
}

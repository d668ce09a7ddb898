package scheduling

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/source"
	"cozy-kubevirt/cmd/kubectl-drain_preview/launcher"
	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// This file is the cluster as the plugins see it, with an index for what is asked of every VM.

// Snapshot is where everything runs.
type Snapshot struct {
	objects *source.Objects
	nodes   *lister
	plugins []plugin
	classes map[string]*class
	// labels that decide whether another pod's anti-affinity is about a pod.
	decisive sets.Set[string]

	// A launcher's anti-affinity to its own VMI is about the pods of that VMI alone. The plugin is asked about it on a lister
	// of just the nodes with such pods, and everywhere else it is left out: with thousands of launchers it would have to go
	// through all pods for each.
	own        *lister
	ownPlugins []plugin
	byVMI      map[string][]int // nodes with pods of a VMI, by its UID

	volumes   map[string]*corev1.PersistentVolume
	claims    map[string]*corev1.PersistentVolumeClaim
	used      map[string]int // pods that use a claim
	reach     map[*corev1.PersistentVolume]func(*corev1.Node) bool
	informers informers.SharedInformerFactory
}

// lister hands the nodes to the plugins.
type lister struct {
	all     []fwk.NodeInfo
	index   map[string]int
	claimed sets.Set[string]
}

func (l *lister) NodeInfos() framework.NodeInfoLister       { return l }
func (l *lister) StorageInfos() framework.StorageInfoLister { return l }
func (l *lister) IsPVCUsedByPods(key string) bool           { return l.claimed.Has(key) }
func (l *lister) List() ([]fwk.NodeInfo, error)             { return l.all, nil }

func (l *lister) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) {
	return l.having(func(n fwk.NodeInfo) bool { return len(n.GetPodsWithAffinity()) > 0 }), nil
}

func (l *lister) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return l.having(func(n fwk.NodeInfo) bool { return len(n.GetPodsWithRequiredAntiAffinity()) > 0 }), nil
}

func (l *lister) having(is func(fwk.NodeInfo) bool) (found []fwk.NodeInfo) {
	for _, node := range l.all {
		if is(node) {
			found = append(found, node)
		}
	}
	return found
}

func (l *lister) Get(name string) (fwk.NodeInfo, error) {
	if i, known := l.index[name]; known {
		return l.all[i], nil
	}
	return nil, fmt.Errorf("node %s is not there", name)
}

// New takes a snapshot of what was read.
func New(objects *source.Objects) (*Snapshot, error) {
	s := &Snapshot{
		objects: objects, classes: map[string]*class{}, decisive: sets.Set[string]{}, byVMI: map[string][]int{},
		volumes: map[string]*corev1.PersistentVolume{}, claims: map[string]*corev1.PersistentVolumeClaim{}, used: map[string]int{},
		reach: map[*corev1.PersistentVolume]func(*corev1.Node) bool{},
		nodes: &lister{index: map[string]int{}, claimed: sets.Set[string]{}}, own: &lister{index: map[string]int{}},
	}
	for _, volume := range objects.Volumes {
		s.volumes[volume.Name] = volume
	}
	for _, claim := range objects.Claims {
		s.claims[claim.Namespace+"/"+claim.Name] = claim
	}
	for i, node := range objects.Nodes {
		info := framework.NewNodeInfo()
		info.SetNode(node)
		s.nodes.all = append(s.nodes.all, info)
		s.nodes.index[node.Name] = i
	}
	for _, pod := range objects.Pods {
		s.add(pod)
	}
	s.own.index = s.nodes.index
	s.informers = newInformers(objects)
	return s, s.plug()
}

func (s *Snapshot) plug() (err error) {
	if s.plugins, err = newPlugins(&handle{lister: s.nodes, informers: s.informers}, byDefault...); err != nil {
		return err
	}
	s.ownPlugins, err = newPlugins(&handle{lister: s.own, informers: s.informers}, podAffinity)
	return err
}

// Fork is a snapshot of the same cluster that may be asked at the same time as the first.
func (s *Snapshot) Fork() (*Snapshot, error) {
	fork := *s
	fork.classes, fork.reach = map[string]*class{}, map[*corev1.PersistentVolume]func(*corev1.Node) bool{}
	fork.nodes = &lister{all: slices.Clone(s.nodes.all), index: s.nodes.index, claimed: s.nodes.claimed}
	fork.own = &lister{index: s.own.index}
	return &fork, fork.plug()
}

// add puts a pod where it runs. One that has ended takes no room.
func (s *Snapshot) add(pod *corev1.Pod) {
	i, known := s.nodes.index[pod.Spec.NodeName]
	if !known || verdict.Ended(pod) {
		return
	}
	if uid := pod.Labels[v1.CreatedByLabel]; uid != "" && !slices.Contains(s.byVMI[uid], i) {
		s.byVMI[uid] = append(s.byVMI[uid], i)
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			key := pod.Namespace + "/" + volume.PersistentVolumeClaim.ClaimName
			if s.used[key]++; s.used[key] > 1 { // a claim for one pod is let go by the launcher before the next takes it
				s.nodes.claimed.Insert(key)
			}
		}
	}
	pod, _ = launcher.WithoutOwnTerm(pod)
	if pod.Spec.Affinity != nil && pod.Spec.Affinity.PodAntiAffinity != nil {
		for _, term := range pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			addKeys(s.decisive, term.LabelSelector)
		}
	}
	s.nodes.all[i].(*framework.NodeInfo).AddPod(pod)
}

func addKeys(keys sets.Set[string], selector *metav1.LabelSelector) {
	if selector == nil {
		return
	}
	for key := range selector.MatchLabels {
		keys.Insert(key)
	}
	for _, expression := range selector.MatchExpressions {
		keys.Insert(expression.Key)
	}
}

// class is pods that all plugins judge alike, and what they say of each node, as far as it has been asked.
type class struct {
	*prepared
	asked    []bool
	refusals []refusal
	requests map[corev1.ResourceName]int64
}

// classOf finds or makes the class of a pod that is to be created.
func (s *Snapshot) classOf(pod *corev1.Pod) *class {
	requests := requestsOf(pod)
	key := s.key(pod, requests)
	c := s.classes[key]
	if c == nil {
		c = &class{prepared: prepare(s.plugins, pod, s.nodes.all), asked: make([]bool, len(s.nodes.all)),
			refusals: make([]refusal, len(s.nodes.all)), requests: requests}
		s.classes[key] = c
	}
	return c
}

func (s *Snapshot) refusal(c *class, node int) refusal {
	if !c.asked[node] {
		c.asked[node], c.refusals[node] = true, c.ask(s.plugins, s.nodes.all[node])
	}
	return c.refusals[node]
}

// key is all of a pod that a plugin looks at.
func (s *Snapshot) key(pod *corev1.Pod, requests map[corev1.ResourceName]int64) string {
	text := &strings.Builder{}
	spec := &pod.Spec
	text.WriteString(labels.Set(spec.NodeSelector).String())
	if spec.Affinity != nil {
		write(text, spec.Affinity)
	}
	for i := range spec.Tolerations {
		fmt.Fprint(text, spec.Tolerations[i].Key, spec.Tolerations[i].Operator, spec.Tolerations[i].Value, spec.Tolerations[i].Effect, ";")
	}
	keys := s.decisive.Clone()
	if affinity := spec.Affinity; affinity != nil {
		if affinity.PodAffinity != nil {
			for _, term := range affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				addKeys(keys, term.LabelSelector)
			}
		}
	}
	for i := range spec.TopologySpreadConstraints {
		write(text, &spec.TopologySpreadConstraints[i])
		addKeys(keys, spec.TopologySpreadConstraints[i].LabelSelector)
		for _, key := range spec.TopologySpreadConstraints[i].MatchLabelKeys {
			keys.Insert(key)
		}
	}
	if len(keys) > 0 || spec.Affinity != nil && (spec.Affinity.PodAffinity != nil || spec.Affinity.PodAntiAffinity != nil) ||
		len(spec.TopologySpreadConstraints) > 0 {
		text.WriteString(pod.Namespace)
	}
	for _, key := range sets.List(keys) {
		fmt.Fprint(text, ";", key, "=", pod.Labels[key])
	}
	for _, name := range sortedKeys(requests) {
		fmt.Fprint(text, ";", name, requests[name])
	}
	for _, container := range spec.Containers {
		for _, port := range container.Ports {
			text.WriteString(port.String())
		}
	}
	for _, volume := range spec.Volumes {
		text.WriteString(s.volumeKey(pod.Namespace, volume))
	}
	return text.String()
}

// zoneLabels are those of a volume that keep its pods to a zone (k8s.io/kubernetes v1.34.2, pkg/scheduler/framework/plugins/
// volumezone/volume_zone.go).
var zoneLabels = []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion}

// write adds an object to a key, in its shortest and quickest form.
func write(text *strings.Builder, object interface{ Marshal() ([]byte, error) }) {
	encoded, _ := object.Marshal() // into memory, so that nothing fails
	text.Write(encoded)
	text.WriteByte(';')
}

// volumeKey is what ties a volume to nodes.
func (s *Snapshot) volumeKey(namespace string, volume corev1.Volume) string {
	if volume.PersistentVolumeClaim == nil {
		return volume.String()
	}
	name := namespace + "/" + volume.PersistentVolumeClaim.ClaimName
	claim := s.claims[name]
	if claim == nil || s.volumes[claim.Spec.VolumeName] == nil || s.used[name] > 1 ||
		slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
		return name
	}
	pv := s.volumes[claim.Spec.VolumeName]
	text := ";volume"
	if pv.Spec.CSI != nil {
		text += pv.Spec.CSI.Driver
	} else {
		text += name
	}
	if pv.Spec.NodeAffinity != nil {
		encoded, _ := pv.Spec.NodeAffinity.Marshal()
		text += string(encoded)
	}
	for _, label := range zoneLabels {
		text += pv.Labels[label] + ","
	}
	return text
}

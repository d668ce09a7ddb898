package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/source"
	"cozy-kubevirt/cmd/kubectl-drain_preview/launcher"
	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// This file is whether there is room for all that leave a node at once, whichever of them goes first and wherever a
// scheduler puts it.

// contender is a leaver while the room is shared out.
type contender struct {
	launcher.Leaver
	*class
	own  map[int]bool // nodes with pods of its VMI
	fits []int        // nodes that take it if it goes first
}

// Drain says of each of them whether another node takes it.
func (s *Snapshot) Drain(node string, leavers []launcher.Leaver) []verdict.Place {
	return s.drain(node, leavers, s.others(node, leavers))
}

func (s *Snapshot) drain(node string, leavers []launcher.Leaver, contenders []*contender) []verdict.Place {
	places := make([]verdict.Place, len(leavers))
	if why := s.unread(); why != "" {
		for i := range places {
			places[i].Unknown = why
		}
		return places
	}
	except := func(i int) bool { return s.nodes.all[i].Node().Name == node }
	others := len(contenders)
	byLeaver := make([]*contender, len(leavers))
	for i, l := range leavers {
		l = s.withNewState(l)
		if l.Pod == nil {
			places[i] = verdict.Place{Unknown: l.Unknown}
			others++ // whatever it is, it takes room
			continue
		}
		if why := s.unreadOf(l.Pod); why != "" {
			places[i].Unknown = why
		}
		c := s.contender(l)
		byLeaver[i] = c
		contenders, others = append(contenders, c), others+1
	}
	all := len(contenders)
	contenders = slices.DeleteFunc(contenders, func(c *contender) bool { return s.never(c, except) })
	others -= all - len(contenders)
	var contested []int
	alike := map[*class]verdict.Place{} // what was said of leavers that nothing tells apart
	for i, c := range byLeaver {
		if c != nil && places[i].Unknown == "" && c.exact() && !c.elsewhere(except) {
			if said, known := alike[c.class]; known {
				places[i] = said
				continue
			}
		}
		switch {
		case c == nil || places[i].Unknown != "":
		case !s.anywhere(c, except):
			places[i] = s.nowhere(c, except)
		case s.always(c, contenders, others-1, except) && (c.AtMost == nil || s.anywhere(s.contender(launcher.Leaver{Pod: c.AtMost}), except)):
			if c.Unknown != "" { // what is not known of its pod could only make it larger
				places[i].Unknown = c.Unknown
			}
		default:
			contested = append(contested, i)
			continue
		}
		if c != nil && c.exact() && !c.elsewhere(except) {
			alike[c.class] = places[i]
		}
	}
	if len(contested) > 0 {
		s.share(byLeaver, contested, contenders, except, places)
	}
	return places
}

// Alone says whether another node takes a pod while nothing else leaves its node.
func (s *Snapshot) Alone(node string, l launcher.Leaver) verdict.Place {
	return s.drain(node, []launcher.Leaver{l}, nil)[0]
}

func (c *contender) exact() bool { return c.AtMost == nil && c.Unknown == "" }

// elsewhere says whether a VMI has pods on other nodes.
func (c *contender) elsewhere(except func(int) bool) bool {
	for i := range c.own {
		if !except(i) {
			return true
		}
	}
	return false
}

// stateVolume holds what a VM keeps of its TPM, its firmware and its changed blocks
// (pkg/virt-controller/services/rendervolumes.go:386-400).
const stateVolume = "vm-state"

// withNewState is a migration's target with a claim of its own for that state, which KubeVirt makes unless the first is
// ReadWriteMany (pkg/storage/backend-storage/backend-storage.go:576-590). It is of a class like the first; where a volume of
// such a class can only be had on some nodes, on which is not known.
func (s *Snapshot) withNewState(l launcher.Leaver) launcher.Leaver {
	if l.Pod == nil || !l.Waits {
		return l
	}
	at := slices.IndexFunc(l.Pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == stateVolume && v.PersistentVolumeClaim != nil })
	if at < 0 {
		return l
	}
	claim := s.claims[l.Pod.Namespace+"/"+l.Pod.Spec.Volumes[at].PersistentVolumeClaim.ClaimName]
	if claim == nil || len(claim.Status.AccessModes) > 0 && claim.Status.AccessModes[0] == corev1.ReadWriteMany {
		return l
	}
	pod := *l.Pod
	pod.Spec.Volumes = slices.Delete(slices.Clone(pod.Spec.Volumes), at, at+1)
	l.Pod = &pod
	if volume := s.volumes[claim.Spec.VolumeName]; l.Unknown == "" && (volume == nil || volume.Spec.NodeAffinity != nil || hasZone(volume)) {
		l.Unknown = "a migration needs a new volume for its TPM's or firmware's state, and on which nodes there can be one is not known"
	}
	return l
}

func hasZone(volume *corev1.PersistentVolume) bool {
	return slices.ContainsFunc(zoneLabels, func(label string) bool { return volume.Labels[label] != "" })
}

// unread says what is missing of the cluster to say anything of room.
func (s *Snapshot) unread() string {
	return cmp.Or(s.objects.Unknown[source.Nodes], s.objects.Unknown[source.Pods], s.objects.Unknown[source.OtherPods])
}

// unreadOf says what is missing to say where a pod could run.
func (s *Snapshot) unreadOf(pod *corev1.Pod) string {
	if scheduler := pod.Spec.SchedulerName; scheduler != "" && scheduler != corev1.DefaultSchedulerName {
		return fmt.Sprintf("the rules of the scheduler %s are not known", scheduler)
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		return "it claims devices, which are not looked at"
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		name := volume.PersistentVolumeClaim.ClaimName
		claim := s.claims[pod.Namespace+"/"+name]
		switch {
		case claim == nil:
			if why := cmp.Or(s.objects.Unknown[source.Claims], s.missing("persistentvolumeclaim", name)); why != "" {
				return why
			}
		case claim.Spec.VolumeName == "":
			return fmt.Sprintf("claim %s is not bound to a volume yet", name)
		case s.volumes[claim.Spec.VolumeName] == nil:
			if why := cmp.Or(s.objects.Unknown[source.Volumes], s.missing("persistentvolume", claim.Spec.VolumeName)); why != "" {
				return why
			}
		}
	}
	if why := s.objects.Unknown[source.Namespaces]; why != "" && selectsNamespaces(pod) {
		return why
	}
	return ""
}

func (s *Snapshot) missing(kind, name string) string {
	if s.objects.FromDump {
		return fmt.Sprintf("the dump has no %s %s", kind, name)
	}
	return ""
}

func selectsNamespaces(pod *corev1.Pod) bool {
	if pod.Spec.Affinity == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	if affinity := pod.Spec.Affinity.PodAffinity; affinity != nil {
		terms = append(terms, affinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	if affinity := pod.Spec.Affinity.PodAntiAffinity; affinity != nil {
		terms = append(terms, affinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return t.NamespaceSelector != nil })
}

// others are the pods that leave beside the VMs and are created again: those that somebody controls, unless they belong
// to the node.
func (s *Snapshot) others(node string, leavers []launcher.Leaver) (others []*contender) {
	i, known := s.nodes.index[node]
	if !known || s.unread() != "" {
		return nil
	}
	leaving := map[*corev1.Pod]bool{}
	for _, l := range leavers {
		leaving[l.Old] = true
	}
	for _, info := range s.nodes.all[i].GetPods() {
		pod := info.GetPod()
		owner := metav1.GetControllerOf(pod)
		if leaving[pod] || owner == nil || owner.Kind == "DaemonSet" || owner.Kind == "Node" || owner.Kind == "VirtualMachineInstance" ||
			pod.Annotations[corev1.MirrorPodAnnotationKey] != "" || pod.Labels["kubevirt.io"] != "" {
			continue
		}
		others = append(others, &contender{Leaver: launcher.Leaver{Pod: pod}, class: s.classOf(pod)})
	}
	return others
}

func (s *Snapshot) contender(l launcher.Leaver) *contender {
	rest, uid := launcher.WithoutOwnTerm(l.Pod)
	c := &contender{Leaver: l, class: s.classOf(rest)}
	if uid != "" && len(s.byVMI[uid]) > 0 && len(s.ownPlugins) > 0 {
		s.own.all = nil
		for _, i := range s.byVMI[uid] {
			s.own.all = append(s.own.all, s.nodes.all[i])
		}
		alone := &corev1.Pod{ObjectMeta: l.Pod.ObjectMeta, Spec: corev1.PodSpec{Affinity: l.Pod.Spec.Affinity}}
		ready := prepare(s.ownPlugins, alone, s.own.all)
		c.own = map[int]bool{}
		for _, i := range s.byVMI[uid] {
			c.own[i] = ready.ask(s.ownPlugins, s.nodes.all[i]).plugin != ""
		}
	}
	return c
}

func (s *Snapshot) takes(c *contender, i int) bool {
	return !c.own[i] && s.refusal(c.class, i).plugin == ""
}

func (s *Snapshot) anywhere(c *contender, except func(int) bool) bool {
	for i := range s.nodes.all {
		if !except(i) && s.takes(c, i) {
			return true
		}
	}
	return false
}

// never says whether no node takes a pod, whatever else leaves and wherever it goes: such a pod takes no room. Where other pods
// are may only let it in by its affinity to them, or by its topology spread.
func (s *Snapshot) never(c *contender, except func(int) bool) bool {
	for i := range s.nodes.all {
		if except(i) || c.own[i] {
			continue
		}
		if by := s.refusal(c.class, i).plugin; by == "" || by == "InterPodAffinity" || by == "PodTopologySpread" {
			return false
		}
	}
	return c.AtMost == nil || s.never(s.contender(launcher.Leaver{Pod: c.AtMost}), except)
}

// nowhere says why no node takes a pod, unless pods of lower priority would make room.
func (s *Snapshot) nowhere(c *contender, except func(int) bool) verdict.Place {
	why := s.reason(c.class, except, c.own)
	if pod := c.Pod; pod.Spec.PreemptionPolicy == nil || *pod.Spec.PreemptionPolicy != corev1.PreemptNever {
		for i := range s.nodes.all {
			if !except(i) && !c.own[i] && s.refusal(c.class, i).plugin == "NodeResourcesFit" && s.takesByForce(c, i) {
				return verdict.Place{Unknown: "only in place of pods of lower priority: " + why}
			}
		}
	}
	return verdict.Place{Bound: why}
}

// takesByForce says whether a node would take a pod once those of a lower priority have gone.
func (s *Snapshot) takesByForce(c *contender, i int) bool {
	lower := func(info fwk.PodInfo) bool { return priority(info.GetPod()) < priority(c.Pod) }
	if !slices.ContainsFunc(s.nodes.all[i].GetPods(), lower) {
		return false
	}
	node := s.nodes.all[i].(*framework.NodeInfo).SnapshotConcrete()
	removed := false
	for _, info := range slices.Clone(node.Pods) {
		if lower(info) {
			removed = node.RemovePod(klog.Background(), info.GetPod()) == nil || removed
		}
	}
	return removed && c.ask(s.plugins, node).plugin == ""
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// always says whether a pod fits even if all the others go first, to where they are most in its way: if it takes more of
// them than there are to fill every node that takes it, one is left.
func (s *Snapshot) always(c *contender, contenders []*contender, others int, except func(int) bool) bool {
	if s.sensitive(c, contenders) {
		return false
	}
	if others == 0 {
		return true
	}
	sizes := sizesOf(c, contenders)
	left := others
	for i, node := range s.nodes.all {
		if except(i) || !s.takes(c, i) {
			continue
		}
		if left -= s.fills(c, node, sizes, others); left < 0 {
			return true
		}
	}
	return false
}

// sensitive says whether where another leaver goes matters to a pod beyond the room that it takes.
func (s *Snapshot) sensitive(c *contender, contenders []*contender) bool {
	spec := &c.pod.Spec
	if len(spec.TopologySpreadConstraints) == 0 && (spec.Affinity == nil || spec.Affinity.PodAffinity == nil && spec.Affinity.PodAntiAffinity == nil) &&
		len(s.decisive) == 0 && len(s.objects.CSINodes) == 0 && !hasPorts(c.pod) {
		return false
	}
	for i := range s.nodes.all {
		if !s.takes(c, i) {
			continue
		}
		// With all the others there at once, a rule that is about more than room shows itself.
		crowded := s.nodes.all[i].(*framework.NodeInfo).SnapshotConcrete()
		for _, other := range contenders {
			if other != c {
				crowded.AddPod(other.Pod)
			}
		}
		before := s.nodes.all[i]
		s.nodes.all[i] = crowded
		r := prepare(s.plugins, c.pod, s.nodes.all).ask(s.plugins, crowded)
		s.nodes.all[i] = before
		if r.plugin != "" && r.plugin != "NodeResourcesFit" {
			return true
		}
		if i > 8 {
			break // the others are of the same kind on every node
		}
	}
	return len(spec.TopologySpreadConstraints) > 0 && len(contenders) > 1 && s.spreadTogether(c, contenders)
}

func hasPorts(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return len(c.Ports) > 0 })
}

// spreadTogether says whether another leaver counts in a pod's topology spread.
func (s *Snapshot) spreadTogether(c *contender, contenders []*contender) bool {
	for _, constraint := range c.pod.Spec.TopologySpreadConstraints {
		selector, err := metav1.LabelSelectorAsSelector(constraint.LabelSelector)
		for _, other := range contenders {
			if other != c && (err != nil || other.Pod.Namespace == c.pod.Namespace && selector.Matches(labelsOf(other.Pod))) {
				return true
			}
		}
	}
	return false
}

// sizesOf are how much the others ask for of each resource that a pod asks for, the largest first.
func sizesOf(c *contender, contenders []*contender) map[corev1.ResourceName][]int64 {
	sizes := map[corev1.ResourceName][]int64{}
	for name := range c.requests {
		for _, other := range contenders {
			if other != c && other.requests[name] > 0 {
				sizes[name] = append(sizes[name], other.requests[name])
			}
		}
		slices.SortFunc(sizes[name], func(a, b int64) int { return cmp.Compare(b, a) })
	}
	return sizes
}

// fills is how many of the others it takes, at the least, until a node has no room for a pod.
func (s *Snapshot) fills(c *contender, node fwk.NodeInfo, sizes map[corev1.ResourceName][]int64, others int) int {
	least := node.GetAllocatable().GetAllowedPodNumber() - len(node.GetPods())
	for name, wanted := range c.requests {
		left := free(node, name) - wanted
		taken := 0
		for left >= 0 && taken < len(sizes[name]) {
			left -= sizes[name][taken]
			taken++
		}
		if left < 0 {
			least = min(least, taken)
		}
	}
	return min(least, others+1)
}

func free(node fwk.NodeInfo, name corev1.ResourceName) int64 {
	return quantity(node.GetAllocatable(), name) - quantity(node.GetRequested(), name)
}

func quantity(r fwk.Resource, name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceCPU:
		return r.GetMilliCPU()
	case corev1.ResourceMemory:
		return r.GetMemory()
	case corev1.ResourceEphemeralStorage:
		return r.GetEphemeralStorage()
	}
	return r.GetScalarResources()[name]
}

// requestsOf is what a pod asks for, in the units of the scheduler.
func requestsOf(pod *corev1.Pod) map[corev1.ResourceName]int64 {
	requests := map[corev1.ResourceName]int64{}
	for name, q := range resource.PodRequests(pod, resource.PodResourcesOptions{}) {
		if name == corev1.ResourceCPU {
			requests[name] = q.MilliValue()
		} else {
			requests[name] = q.Value()
		}
	}
	return requests
}

func sortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// boundElsewhere is a volume of a pod that cannot be had on a node.
func (s *Snapshot) boundElsewhere(pod *corev1.Pod, node *corev1.Node) string {
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim := s.claims[pod.Namespace+"/"+volume.PersistentVolumeClaim.ClaimName]
		if claim == nil || s.volumes[claim.Spec.VolumeName] == nil {
			continue
		}
		pv := s.volumes[claim.Spec.VolumeName]
		if reach := s.reachOf(pv); reach != nil && !reach(node) {
			return pv.Name
		}
	}
	return ""
}

// reachOf is from which nodes a volume can be had; nil is from all.
func (s *Snapshot) reachOf(pv *corev1.PersistentVolume) func(*corev1.Node) bool {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return nil
	}
	reach, known := s.reach[pv]
	if !known {
		selector, err := nodeaffinity.NewNodeSelector(pv.Spec.NodeAffinity.Required)
		reach = func(node *corev1.Node) bool { return err == nil && selector.Match(node) }
		s.reach[pv] = reach
	}
	return reach
}

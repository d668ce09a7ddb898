package scheduling

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
)

// This file puts what the plugins say into words: which rule, and on how many nodes.

// said is a rule that keeps a pod from some nodes.
type said struct {
	one, many string // "lacks X", "lack X"
	nodes     int
	most      int64 // of what is free, where that is what is too little
	needs     int64
	resource  corev1.ResourceName
}

// reason says why none of the other nodes takes a pod.
func (s *Snapshot) reason(c *class, except func(int) bool, own map[int]bool) string {
	var rules []*said
	others := 0
	for i, node := range s.nodes.all {
		if except(i) {
			continue
		}
		others++
		r := s.refusal(c, i)
		if r.plugin == "" && own[i] {
			r = refusal{"InterPodAffinity", "another of its launchers is there"}
		}
		rule := s.word(c, r, node)
		at := slices.IndexFunc(rules, func(known *said) bool { return known.one == rule.one && known.resource == rule.resource })
		if at < 0 {
			rules = append(rules, rule)
			continue
		}
		rules[at].nodes++
		rules[at].most = max(rules[at].most, rule.most)
	}
	if others == 0 {
		return "there is no other node"
	}
	slices.SortStableFunc(rules, func(a, b *said) int { return b.nodes - a.nodes })
	var parts []string
	for _, rule := range rules {
		parts = append(parts, rule.String())
	}
	return fmt.Sprintf("0 of %d other %s: %s", others, plural(others, "node", "nodes"), strings.Join(parts, ", "))
}

func (r *said) String() string {
	if r.resource == "" {
		return fmt.Sprintf("%d %s", r.nodes, plural(r.nodes, r.one, r.many))
	}
	if r.nodes > 1 {
		return fmt.Sprintf("%d have at most %s of the %s %s it needs", r.nodes, amount(r.resource, r.most), amount(r.resource, r.needs), r.resource)
	}
	return fmt.Sprintf("1 has %s of the %s %s it needs", amount(r.resource, r.most), amount(r.resource, r.needs), r.resource)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func amount(name corev1.ResourceName, n int64) string {
	switch name {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(n, resource.DecimalSI).String()
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		const mi = 1 << 20
		switch {
		case n >= 10<<30 || n%(1<<30) == 0:
			return fmt.Sprintf("%dGi", n>>30)
		case n >= mi:
			return fmt.Sprintf("%dMi", n/mi)
		}
	}
	return fmt.Sprint(n)
}

// word puts one plugin's refusal of one node into words.
func (s *Snapshot) word(c *class, r refusal, node fwk.NodeInfo) *said {
	rule := func(one, many string) *said { return &said{one: one, many: many, nodes: 1} }
	switch r.plugin {
	case "NodeUnschedulable":
		return rule("is cordoned", "are cordoned")
	case "TaintToleration":
		taint, _ := corev1helpers.FindMatchingUntoleratedTaint(node.Node().Spec.Taints, c.pod.Spec.Tolerations, keepsOut)
		return rule("has the taint "+taint.Key, "have the taint "+taint.Key)
	case "NodeAffinity":
		if label := lacks(c.pod.Spec.NodeSelector, node.Node().Labels); label != "" {
			return rule("lacks "+label, "lack "+label)
		}
		return rule("is not in its node affinity", "are not in its node affinity")
	case "NodePorts":
		return rule("has its host port taken", "have its host port taken")
	case "NodeResourcesFit":
		for _, short := range noderesources.Fits(c.pod, node, noderesources.ResourceRequestsOptions{}) {
			if short.ResourceName == corev1.ResourcePods {
				return rule("has as many pods as it takes", "have as many pods as they take")
			}
			return &said{one: "has", nodes: 1, most: max(0, short.Capacity-short.Used), needs: short.Requested, resource: short.ResourceName}
		}
	case "VolumeBinding":
		if volume := s.boundElsewhere(c.pod, node.Node()); volume != "" {
			return rule("cannot reach volume "+volume, "cannot reach volume "+volume)
		}
		return rule("cannot have its volumes", "cannot have its volumes")
	case "VolumeZone":
		return rule("is in another zone than its volumes", "are in another zone than its volumes")
	case "NodeVolumeLimits":
		return rule("has as many volumes as it takes", "have as many volumes as they take")
	case "VolumeRestrictions":
		return rule("cannot share its volumes", "cannot share its volumes")
	case "PodTopologySpread":
		return rule("would break its topology spread", "would break its topology spread")
	case "InterPodAffinity":
		return rule("is kept from it by pod affinity", "are kept from it by pod affinity")
	}
	return rule("refuses it: "+r.message, "refuse it: "+r.message)
}

func keepsOut(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}

// lacks is the label that a node lacks, the one that says most first.
func lacks(selector, labels map[string]string) string {
	var missing []string
	for key, value := range selector {
		if labels[key] != value {
			missing = append(missing, key)
		}
	}
	for _, telling := range []string{"cpu-model-migration.", "cpu-vendor.", "cpu-model.", "cpu-feature.", "machine-type."} {
		for _, key := range slices.Sorted(slices.Values(missing)) {
			if strings.HasPrefix(key, telling) {
				return key
			}
		}
	}
	if len(missing) == 0 {
		return ""
	}
	first := slices.Min(missing)
	if selector[first] == "true" {
		return first
	}
	return first + "=" + selector[first]
}

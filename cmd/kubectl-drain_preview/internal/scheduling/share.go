package scheduling

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// This file is what can come of it where room is short for all that leave a node.

// most is how many leavers, and how many questions to the plugins, are worth trying every order for.
const (
	mostLeavers   = 6
	mostQuestions = 20_000
)

// share says of the leavers that do not fit for sure what is true in every order.
func (s *Snapshot) share(byLeaver []*contender, contested []int, contenders []*contender, except func(int) bool, places []verdict.Place) {
	n := len(contenders)
	why := fmt.Sprintf("the %d pods that leave this node compete for room elsewhere", n)
	if n == 1 {
		why = "how much its pod needs is not known exactly"
	}
	for _, i := range contested {
		places[i] = verdict.Place{Unknown: why}
	}
	if most, all := s.mostThatFit(byLeaver, except); most < all { // whoever goes first, some stay
		for _, i := range contested {
			if byLeaver[i].Waits {
				places[i] = verdict.Place{Bound: fmt.Sprintf("there is room for %d of the %d VMs that migrate from here", most, all)}
			}
		}
		return
	}
	if n > mostLeavers || slices.ContainsFunc(byLeaver, func(c *contender) bool { return c == nil || c.AtMost != nil || c.Unknown != "" }) {
		return
	}
	t := &trial{s: s, contenders: contenders, except: except, seen: map[string]bool{}}
	t.placed = make([]int, n)
	for i := range t.placed {
		t.placed[i] = -1
	}
	t.left, t.went = make([]bool, n), make([]bool, n)
	t.alwaysWaits, t.leastWaits = true, n
	if !t.run() {
		return
	}
	for _, i := range contested {
		at := slices.Index(contenders, byLeaver[i])
		switch {
		case !t.left[at]:
			places[i] = verdict.Place{}
		case !t.went[at]:
			places[i] = verdict.Place{Bound: "the others that leave this node take the room elsewhere"}
		case t.alwaysWaits && byLeaver[i].Waits:
			places[i] = verdict.Place{Bound: fmt.Sprintf("there is no room for all %d pods that leave this node", n)}
		}
	}
}

// mostThatFit is the most of the migrating leavers that the other nodes have room for, whatever the order, and their
// number.
func (s *Snapshot) mostThatFit(byLeaver []*contender, except func(int) bool) (most, all int) {
	var waiting []*contender
	for _, c := range byLeaver {
		if c != nil && c.Waits && s.anywhere(c, except) {
			waiting = append(waiting, c)
		}
	}
	least := map[corev1.ResourceName]int64{}
	for i, c := range waiting {
		for name, wanted := range c.requests {
			if i == 0 {
				least[name] = wanted
			}
		}
		for name := range least {
			least[name] = min(least[name], c.requests[name])
		}
	}
	for i, node := range s.nodes.all {
		if except(i) || !slices.ContainsFunc(waiting, func(c *contender) bool { return s.takes(c, i) }) {
			continue
		}
		room := node.GetAllocatable().GetAllowedPodNumber() - len(node.GetPods())
		for name, wanted := range least {
			if wanted > 0 {
				room = min(room, int(free(node, name)/wanted))
			}
		}
		most += max(0, room)
	}
	return min(most, len(waiting)), len(waiting)
}

// trial tries every order in which the leavers can go, and every node that a scheduler can choose for each.
type trial struct {
	s          *Snapshot
	contenders []*contender
	except     func(int) bool
	placed     []int // the node of each; -1 while it is to go
	seen       map[string]bool
	questions  int

	left, went  []bool // whether each was left over in some order, and found a place in some
	alwaysWaits bool   // in every order a leaver is left over that the drain waits for
	leastWaits  int
}

// run is false if there is too much to try.
func (t *trial) run() bool {
	key := fmt.Sprint(t.placed)
	if t.seen[key] {
		return true
	}
	t.seen[key] = true
	any := false
	for at, c := range t.contenders {
		if t.placed[at] >= 0 {
			continue
		}
		ready := prepare(t.s.plugins, c.pod, t.s.nodes.all)
		for i, node := range t.s.nodes.all {
			if t.questions++; t.questions > mostQuestions {
				return false
			}
			if t.except(i) || c.own[i] || ready.ask(t.s.plugins, node).plugin != "" {
				continue
			}
			any = true
			with := node.(*framework.NodeInfo).SnapshotConcrete()
			with.AddPod(c.pod)
			t.placed[at], t.s.nodes.all[i] = i, with
			enough := t.run()
			t.placed[at], t.s.nodes.all[i] = -1, node
			if !enough {
				return false
			}
		}
	}
	if any {
		return true
	}
	waits := false // nobody else finds a place: this is how it ends
	for at, c := range t.contenders {
		if t.placed[at] >= 0 {
			t.went[at] = true
		} else {
			t.left[at] = true
			waits = waits || c.Waits
		}
	}
	t.alwaysWaits = t.alwaysWaits && waits
	return true
}

func labelsOf(pod *corev1.Pod) labels.Set { return pod.Labels }

package rehearsal

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "kubevirt.io/api/core/v1"
)

// The scenario with many VMs on one node.

// many is how many VMs the node has at each drain. One drain of 200 says also when the first 50 and 100 had left.
var many = flag.String("many", "200", "numbers of VMs to drain at once, growing")

func TestManyVMsAreAllAccountedFor(t *testing.T) {
	s := rehearse(t)
	nodes := []string{s.node("a"), s.node("b")}
	fates := map[string]fate{}
	var times []string
	for number := range strings.SplitSeq(*many, ",") {
		size, err := strconv.Atoi(number)
		require.NoError(t, err)
		s.patience = max(patience, time.Duration(size)*time.Second)
		s.cordon(nodes[0], false)
		s.cordon(nodes[1], true)
		s.startWhatIsOff(fates)
		var machines []machine
		for i := len(fates); i < size; i++ {
			m, after := oneOfMany(i)
			machines, fates[m.name] = append(machines, m), after
		}
		s.create(machines...)
		before := s.vmis()
		s.cordon(nodes[1], false)

		begun := time.Now()
		drain := s.drain(nodes[0], s.patience)
		require.NoError(t, drain.err, "%d VMs", size)
		s.become(before, fates)
		s.nothingTwice(fates, begun)
		times = append(times, fmt.Sprintf("%d in %.0f s%s", size, drain.took.Seconds(), s.firstOf(nodes[0], begun, size)))
		fmt.Printf("     %5.1fs  drained so far: %s\n", time.Since(s.started).Seconds(), strings.Join(times, ", "))
		slices.Reverse(nodes)
	}
	s.verdict = "many VMs at once are all accounted for, none lost, none twice: " + strings.Join(times, ", ")
}

// oneOfMany mixes the kinds of VMs, and says what a drain does to each.
func oneOfMany(i int) (machine, fate) {
	name := fmt.Sprintf("vm-%03d", i)
	switch i % 10 {
	case 0:
		return migratable(name), migrated
	case 1, 2:
		return onLocalDisk(name).run(v1.RunStrategyRerunOnFailure), off
	case 3, 4:
		return withGPU(name), restarted
	}
	return onLocalDisk(name), restarted
}

// startWhatIsOff starts the VMs that the last drain left off.
func (s *scenario) startWhatIsOff(fates map[string]fate) {
	var again []machine
	for _, name := range slices.Sorted(maps.Keys(fates)) {
		if fates[name] == off {
			s.requestStart(name)
			again = append(again, onLocalDisk(name))
		}
	}
	s.running(again...)
}

// nothingTwice checks that no VM was started or moved more than once, and that none has two launchers now.
func (s *scenario) nothingTwice(fates map[string]fate, begun time.Time) {
	for vm, fate := range fates {
		starts := 1
		if fate == off {
			starts = 0
		}
		assert.Equal(s, starts, s.timeline.starts(vm, begun), "how often %s, %s, was seen to start or arrive on a node", vm, fate)
	}
	pods, err := s.kube.CoreV1().Pods(s.namespace).List(s.Context(), metav1.ListOptions{LabelSelector: v1.AppLabel + "=virt-launcher"})
	require.NoError(s, err)
	launchers := map[string]int{}
	for _, pod := range pods.Items {
		if pod.Status.Phase == corev1.PodRunning {
			launchers[pod.Annotations[v1.DomainAnnotation]]++
		}
	}
	for vm, count := range launchers {
		assert.Equal(s, 1, count, "launchers of %s that run", vm)
	}
}

// firstOf says when the first 50 and the first 100 of more VMs had left the node.
func (s *scenario) firstOf(node string, begun time.Time, size int) string {
	left := s.timeline.left(strings.TrimPrefix(node, s.namespace+"-"), begun)
	require.Len(s, left, size, "VMs that were seen to leave %s", node)
	var parts []string
	for _, part := range []int{50, 100} {
		if part < size {
			parts = append(parts, fmt.Sprintf("%d in %.0f s", part, left[part-1].Sub(begun).Seconds()))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ", the first " + strings.Join(parts, " and ")
}

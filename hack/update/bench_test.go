package main

// Measures the whole process on a file with nothing to do, against the usual way: a chain of a dozen sed calls.

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

const sedCalls = 12

func BenchmarkUpdateAgainstASedChain(b *testing.B) {
	path := onDisk(b, "cr.yaml", shipped(b))
	chain := strings.Repeat(`sed 's/namespace: kubevirt$/namespace: other/' "$0" > "$0.tmp" && `, sedCalls) + "true"
	update, sed := binary(b), onDisk(b, "cr.yaml", shipped(b))
	once := func(name string, args ...string) time.Duration {
		begin := time.Now()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		return time.Since(begin)
	}
	var ours, theirs []time.Duration
	for b.Loop() { // by turns, so that a busy machine is fair to both
		ours = append(ours, once(update, path))
		theirs = append(theirs, once("sh", "-c", chain, sed))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	our, their := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(our.Seconds()*1000, "ms/update")
	b.ReportMetric(their.Seconds()*1000, "ms/sed-chain")
	if len(ours) > 10 && our > their {
		b.Errorf("update takes %v, the sed chain %v", our, their)
	}
}

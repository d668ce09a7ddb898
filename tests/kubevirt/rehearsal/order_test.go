package rehearsal

import (
	"sync"
	"testing"
)

// This file is the order of the scenarios: first the days, some at a time, since a cluster that rolls mostly waits; then what
// needs the old policy, one after the other, since the policy is one for the whole platform; then all others at once.

// atOnce is how many days run beside each other: more than two only wait for the processors.
const atOnce = 2

// Every scenario notes which of them it is before Go lets the first of them go on (testing.T.Parallel).
var (
	days, underOldPolicy sync.WaitGroup
	places               = make(chan struct{}, atOnce)
	oldPolicy            sync.Mutex
)

// asDay waits for a place.
func asDay(t *testing.T) {
	days.Add(1)
	t.Cleanup(days.Done)
	t.Parallel()
	places <- struct{}{}
	t.Cleanup(func() { <-places })
}

// asOldPolicy waits for its turn, and returns what ends it; so does the end of the test.
func asOldPolicy(t *testing.T) (over func()) {
	underOldPolicy.Add(1)
	t.Parallel()
	days.Wait()
	oldPolicy.Lock()
	over = sync.OnceFunc(func() {
		oldPolicy.Unlock()
		underOldPolicy.Done()
	})
	t.Cleanup(over)
	return over
}

// asOther waits for all those.
func asOther(t *testing.T) {
	t.Parallel()
	days.Wait()
	underOldPolicy.Wait()
}

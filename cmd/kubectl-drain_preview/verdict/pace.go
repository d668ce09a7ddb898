package verdict

import "time"

// This file is how the updater's batches fall: the first at once, then one an interval
// (pkg/virt-controller/watch/workload-updater/workload-updater.go:508-549).

// Pace is how an upgrade goes for all VMs together.
type Pace struct {
	Evictions int // VMs that a batch is done with
	Refused   int // VMs that are asked for, and keep their place in later batches
	Migrating int // VMs that migrate outside of the batches
	// Batches is the least number of batches for the evictions. With refused VMs it can be more, without a bound: the
	// updater takes each batch from an unordered map, and asks the refused ones again.
	Batches int
	// AtLeast is from the first batch to the start of the last, at the least.
	AtLeast time.Duration
}

// PaceOf adds the verdicts on every VM of the cluster up.
func PaceOf(p Platform, all []Upgraded) Pace {
	pace := Pace{}
	for _, u := range all {
		switch {
		case u.Leaves():
			pace.Evictions++
		case u.InBatch:
			pace.Refused++
		case u.Outcome == Migrates:
			pace.Migrating++
		}
	}
	if pace.Evictions > 0 {
		pace.Batches = (pace.Evictions + p.BatchSize - 1) / p.BatchSize
		pace.AtLeast = time.Duration(pace.Batches-1) * p.BatchInterval
	}
	return pace
}

// LastBatch is the last batch, counted from 1, in which a VM's turn can come; 0 if there is no last.
func (pace Pace) LastBatch(p Platform) int {
	switch {
	case pace.Evictions+pace.Refused <= p.BatchSize:
		return 1
	case pace.Refused == 0:
		return pace.Batches
	}
	return 0
}

package verdict

// This file names what can become of a VM.

// Fate is what becomes of a VM.
type Fate string

const (
	Migrates         Fate = "migrates"
	Restarts         Fate = "restarts"
	RestartsWithNode Fate = "restarts when this node is back"
	StaysOffIfClean  Fate = "stays off if the guest shuts down cleanly"
	StaysOff         Fate = "stays off"
	Blocks           Fate = "blocks the drain"
	OwnerDecides     Fate = "its owner decides"
	Held             Fate = "held by a hotplugged volume until the VM is gone"
	Refused          Fate = "refused and stays on the old launcher"
	Nothing          Fate = "nothing"
	Unknown          Fate = "unknown"
)

// End says whether the VM lets a drain end.
type End string

const (
	Ends   End = "ends"    // the VM goes
	Waits  End = "waits"   // the VM stays until somebody acts, and the drain waits
	NoTell End = "unknown" // a fact is missing
)

// Cause is what has to change for a drain to go on, or for a VM to migrate.
type Cause string

const (
	NoCause     Cause = ""
	ByStrategy  Cause = "strategy"  // it carries LiveMigrate and cannot migrate
	ByBudget    Cause = "budget"    // a PodDisruptionBudget
	ByPlace     Cause = "place"     // no other node can take it
	ByStaleMark Cause = "mark"      // it is marked for an evacuation that is over
	ByOwner     Cause = "owner"     // External
	ByHotplug   Cause = "hotplug"   // a hotplug pod away from its launcher
	ByLeftover  Cause = "leftover"  // a launcher without a VMI
	ByGap       Cause = "not known" // a fact that could not be read
)

// Drained is the verdict on a drain of the VM's node.
type Drained struct {
	Fate  Fate
	Why   string
	End   End
	Cause Cause // of an End other than Ends
}

// Upgraded is the verdict on an upgrade of KubeVirt.
type Upgraded struct {
	Fate Fate
	Why  string
	// InBatch says that the updater asks for the VM's eviction, so that it takes a place in a batch, even if refused.
	InBatch bool
}

// Leaves says that a batch is done with the VM once it has been asked for; the others are asked again in later batches.
func (u Upgraded) Leaves() bool {
	switch u.Fate {
	case Restarts, StaysOffIfClean, StaysOff, Migrates:
		return u.InBatch
	}
	return false
}

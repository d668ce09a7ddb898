package verdict

// This file names what can become of a VM.

// Outcome is what becomes of a VM.
type Outcome string

const (
	Migrates         Outcome = "migrates"
	Restarts         Outcome = "restarts"
	RestartsWithNode Outcome = "restarts later" // once its node, or room elsewhere, is there again
	StaysOffIfClean  Outcome = "may stay off"   // if its guest shuts down cleanly
	StaysOff         Outcome = "stays off"
	Blocks           Outcome = "blocks" // the drain waits for it
	OwnerDecides     Outcome = "waits for its owner"
	Held             Outcome = "waits for its launcher" // its hotplug pod, that is
	Refused          Outcome = "stays outdated"         // on the old launcher
	Nothing          Outcome = "not touched"
	Unknown          Outcome = "unknown"
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
	ByLeftover  Cause = "leftover"  // a launcher without a VMI, or a second one
	ByQuota     Cause = "quota"     // a ResourceQuota refuses the migration's target
	ByTarget    Cause = "target"    // the migration's target does not start
	ByVolume    Cause = "volume"    // a utility volume that a migration waits for
	ByLimit     Cause = "limit"     // the cluster lets no migration run
	ByMigration Cause = "migration" // one that has not ended, or those before have failed
	ByNode      Cause = "node"      // the node is not ready
	ByGap       Cause = "not known" // a fact that could not be read
)

// Drained is the verdict on a drain of the VM's node.
type Drained struct {
	Outcome Outcome
	Why     string
	End     End
	Cause   Cause // of an End other than Ends
}

// Upgraded is the verdict on an upgrade of KubeVirt.
type Upgraded struct {
	Outcome Outcome
	Why     string
	// InBatch says that the updater asks for the VM's eviction, so that it takes a place in a batch, even if refused.
	InBatch bool
}

// Leaves says that a batch is done with the VM once it has been asked for; the others are asked again in later batches.
func (u Upgraded) Leaves() bool {
	switch u.Outcome {
	case Restarts, StaysOffIfClean, StaysOff, Migrates:
		return u.InBatch
	}
	return false
}

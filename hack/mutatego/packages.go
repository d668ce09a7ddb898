package main

// target is a package that decides, and what tests it.
type target struct {
	module, folder string   // the folder of its go.mod, its own below that
	tests          []string // the folders of the packages whose tests are asked, below the module's
	without        []string // tests that measure what a fault doesn't change, and take seconds
	held           []string // files in which no fault lives, and none may from now on
}

func (t target) name() string {
	if t.module == "." {
		return t.folder
	}
	return t.module + "/" + t.folder
}

const preview = "cmd/kubectl-drain_preview"

// large is about memory.
var large = []string{"TestADumpOf10000VMsTakesLessThan500MiB"}

// targets are the packages that decide. A file that isn't held yet is tried by its package's name only: its survivors are gaps.
var targets = []target{
	{preview, "verdict", []string{"verdict", "report", "internal/command"}, large, []string{"budget.go", "eviction.go", "outcome.go", "pace.go", "share.go", "shutdown.go", "situation.go", "strategy.go", "upgrade.go"}},
	{preview, "internal/scheduling", []string{"internal/command"}, large, nil},
	{preview, "internal/inventory", []string{"internal/command"}, large, nil},
	{preview, "internal/source", []string{"internal/source", "internal/command"}, large, nil},
	{".", "hack/update", []string{"hack/update"}, nil, nil},
	{".", "hack/package", []string{"hack/package"}, nil, nil},
	{".", "hack/push", []string{"hack/push"}, nil, nil},
	{".", "hack/diff", []string{"hack/diff"}, nil, nil},
	{".", "hack/mutate", []string{"hack/mutate"}, nil, nil},
	{".", "hack/fuzzvalues", []string{"hack/fuzzvalues"}, nil, nil},
}

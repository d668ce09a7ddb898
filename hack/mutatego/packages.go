package main

// target is a package that decides, and what tests it.
type target struct {
	module, folder string   // the folder of its go.mod, its own below that
	tests          []string // the folders of the packages whose tests are asked, below the module's
	without        []string // tests that measure what a fault doesn't change, and take seconds
	held           bool     // no fault lives, and none may from now on
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

// targets are the packages that decide. One that isn't held yet is tried by name only: its survivors are gaps.
var targets = []target{
	{preview, "verdict", []string{"verdict", "report", "internal/command"}, large, false},
	{preview, "internal/scheduling", []string{"internal/command"}, large, false},
	{preview, "internal/inventory", []string{"internal/command"}, large, false},
	{preview, "internal/source", []string{"internal/source", "internal/command"}, large, false},
	{".", "hack/update", []string{"hack/update"}, nil, false},
	{".", "hack/package", []string{"hack/package"}, nil, false},
	{".", "hack/push", []string{"hack/push"}, nil, false},
	{".", "hack/diff", []string{"hack/diff"}, nil, false},
	{".", "hack/mutate", []string{"hack/mutate"}, nil, false},
	{".", "hack/fuzzvalues", []string{"hack/fuzzvalues"}, nil, false},
}

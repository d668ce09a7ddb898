package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrInterrupted says that the context ended before git did.
var ErrInterrupted = errors.New("interrupted; what was checked out is removed")

// CheckedOut is a folder of a commit, in a temporary folder of the machine.
type CheckedOut struct {
	Name string // the commit, for the reader: what it was called, and its hash
	Dir  string
}

// CheckOut writes a folder of the commit that BASE names, of the repository at top, into a temporary folder; remove takes it
// away. An index of its own keeps git's (and what is staged there) out of it, and unlike git archive it leaves no file out.
func CheckOut(ctx context.Context, top, base, folder string) (out CheckedOut, remove func(), err error) {
	commit, err := run(ctx, top, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", base+"^{commit}")
	if errors.Is(err, ErrInterrupted) {
		return CheckedOut{}, nil, err
	}
	if err != nil {
		return CheckedOut{}, nil, fmt.Errorf("BASE: %q names no commit of this repository; fetch it, or name another with BASE=", base)
	}
	tree := commit + ":" + folder
	if _, err := run(ctx, top, nil, "rev-parse", "--verify", "--quiet", tree); err != nil {
		return CheckedOut{}, nil, fmt.Errorf("BASE: %s holds no folder %s, so there is nothing to compare with; name a commit that has the chart with BASE=", base, folder)
	}
	dir, err := os.MkdirTemp("", "base-")
	if err != nil {
		return CheckedOut{}, nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}
	for _, arguments := range [][]string{
		{"read-tree", "--prefix=" + folder + "/", tree},
		{"checkout-index", "--all", "--prefix=" + filepath.ToSlash(dir) + "/"},
	} {
		if _, err := run(ctx, top, index, arguments...); err != nil {
			remove()
			return CheckedOut{}, nil, err
		}
	}
	return CheckedOut{Name: fmt.Sprintf("%s (%.7s)", base, commit), Dir: filepath.Join(dir, folder)}, remove, nil
}

// run is Run, and a run that was interrupted says so.
func run(ctx context.Context, dir string, environment []string, arguments ...string) (string, error) {
	out, err := Run(ctx, dir, environment, arguments...)
	if ctx.Err() != nil {
		return "", ErrInterrupted
	}
	return out, err
}

// The chart of the base commit, in a temporary folder.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// side is one of the two charts that are compared.
type side struct {
	name string // for the reader
	dir  string // of the chart
}

var errInterrupted = errors.New("interrupted; what was checked out is removed")

// checkOut writes the base commit's chart, of the repository at top, into a temporary folder; remove takes the folder away. An index of
// its own keeps git's (and what is staged there) out of it, and unlike git archive it leaves no file out.
func checkOut(ctx context.Context, top string, o options) (base side, remove func(), err error) {
	commit, err := git(ctx, top, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", o.base+"^{commit}")
	if errors.Is(err, errInterrupted) {
		return side{}, nil, err
	}
	if err != nil {
		return side{}, nil, fmt.Errorf("BASE: %q names no commit of this repository; fetch it, or name another with BASE=", o.base)
	}
	tree := commit + ":" + o.chart
	if _, err := git(ctx, top, nil, "rev-parse", "--verify", "--quiet", tree); err != nil {
		return side{}, nil, fmt.Errorf("BASE: %s holds no folder %s, so there is nothing to compare with; name a commit that has the chart with BASE=", o.base, o.chart)
	}
	dir, err := os.MkdirTemp("", "diff-")
	if err != nil {
		return side{}, nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}
	for _, arguments := range [][]string{
		{"read-tree", "--prefix=" + o.chart + "/", tree},
		{"checkout-index", "--all", "--prefix=" + filepath.ToSlash(dir) + "/"},
	} {
		if _, err := git(ctx, top, index, arguments...); err != nil {
			remove()
			return side{}, nil, err
		}
	}
	return side{name: fmt.Sprintf("%s (%.7s)", o.base, commit), dir: filepath.Join(dir, o.chart)}, remove, nil
}

// git runs git in a folder and returns what it prints, trimmed.
func git(ctx context.Context, dir string, environment []string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), environment...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if ctx.Err() != nil {
		return "", errInterrupted
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

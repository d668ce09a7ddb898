// The chart as a commit has it: its blobs, to the byte. git archive and git checkout would change line ends and more by
// what the machine's git is configured to, and a work tree holds what git ignores or was told not to look at.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cozy-kubevirt/internal/git"
)

// commit is what is checked out where a chart is.
type commit struct {
	dir  string // the chart's
	hash string
	date string // in seconds since 1970
}

// head is the commit that is checked out where the chart is.
func head(chart string) (commit, error) {
	c := commit{dir: chart}
	facts, err := c.git("log", "-1", "--no-show-signature", "--format=%H %ct", "HEAD")
	if err != nil {
		return commit{}, err
	}
	c.hash, c.date, _ = strings.Cut(facts, " ")
	return c, nil
}

// git runs git on what was committed: replaced objects are the machine's own.
func (c commit) git(arguments ...string) (string, error) {
	out, err := c.bytes(arguments...)
	return strings.TrimSuffix(string(out), "\n"), err
}

func (c commit) bytes(arguments ...string) ([]byte, error) {
	return git.Output(context.Background(), c.dir, []string{"GIT_NO_REPLACE_OBJECTS=1"}, arguments...)
}

// changes is what the work tree has and the commit doesn't, as far as git is willing to see it; empty if there is nothing.
func (c commit) changes() (string, error) {
	return c.git("status", "--porcelain", "--untracked-files=all", "--ignore-submodules=none")
}

// write puts the chart's files under a folder. Git lists those below the folder that it runs in, with their names from there.
func (c commit) write(to string) error {
	list, err := c.git("ls-tree", "-r", "-z", c.hash)
	if err != nil {
		return err
	}
	if list == "" {
		return fmt.Errorf("the commit %.7s has no file in %s; commit the chart, or set ALLOW_DIRTY=1 to package the folder as it is", c.hash, c.dir)
	}
	for _, entry := range strings.Split(strings.TrimSuffix(list, "\x00"), "\x00") {
		facts, name, _ := strings.Cut(entry, "\t")
		fields := strings.Fields(facts)
		mode, kind, object := fields[0], fields[1], fields[2]
		if kind != "blob" || mode == "120000" {
			return fmt.Errorf("%s: a link or a submodule, whose content is not in the commit; commit the file itself", filepath.Join(c.dir, name))
		}
		content, err := c.bytes("cat-file", "blob", object)
		if err != nil {
			return err
		}
		target := filepath.Join(to, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, content, 0o644)); err != nil {
			return err
		}
	}
	return nil
}

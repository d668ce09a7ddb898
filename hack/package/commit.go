// The chart as a commit has it: its blobs, to the byte. git archive and git checkout would change line ends and more by
// what the machine's git is configured to, and a work tree holds what git ignores or was told not to look at.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cozy-kubevirt/internal/git"
)

// commit is where the chart stands in git.
type commit struct {
	dir    string // a folder of the repository, to run git in
	hash   string
	folder string // the chart's, from the top of the repository; empty for the top itself
}

// head is the commit that is checked out where the chart is.
func head(chart string) (commit, error) {
	c := commit{dir: chart}
	var err error
	if c.hash, err = c.git("rev-parse", "--verify", "--end-of-options", "HEAD^{commit}"); err == nil {
		c.folder, err = c.git("rev-parse", "--show-prefix")
	}
	return c, err
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

// write puts the chart's files under a folder.
func (c commit) write(to string) error {
	list, err := c.git("ls-tree", "-r", "-z", "--full-tree", c.hash+":"+strings.TrimSuffix(c.folder, "/"))
	if err != nil {
		return fmt.Errorf("the commit %.7s has no folder %s; commit the chart, or set ALLOW_DIRTY=1 to package the folder as it is: %w", c.hash, c.folder, err)
	}
	for _, entry := range strings.Split(strings.TrimSuffix(list, "\x00"), "\x00") {
		facts, name, _ := strings.Cut(entry, "\t")
		var mode, kind, object string
		if _, err := fmt.Sscan(facts, &mode, &kind, &object); err != nil {
			return fmt.Errorf("the chart has no file in the commit %.7s", c.hash)
		}
		if kind != "blob" || mode == "120000" {
			return fmt.Errorf("%s%s: a link or a submodule, whose content is not in the commit; commit the file itself", c.folder, name)
		}
		content, err := c.bytes("cat-file", "blob", object)
		if err != nil {
			return err
		}
		target := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

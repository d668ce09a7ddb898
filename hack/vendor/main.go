// Command vendor writes the chart, its suites and a Makefile as one flat folder of a platform's repository, and keeps
// that folder up to date. It checks everything first and then replaces file by file, the record of what it wrote last;
// a run that was interrupted is simply repeated. docs/vendor.md says how it is used.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"cozy-kubevirt/hack/internal/lock"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns the exit status: 0 for done, 1 for a folder that is refused, and 2 for a wrong call.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("vendor", flag.ContinueOnError)
	flags.SetOutput(stderr)
	chart := flags.String("chart", "charts/kubevirt", "folder of the chart")
	force := flags.Bool("force", false, "overwrite files that were changed in the folder, or that were there before")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: vendor [-chart folder] [-force] folder")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() != 1 {
		flags.Usage()
		return 2
	}
	if err := vendor(*chart, flags.Arg(0), *force, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

func vendor(chart, dest string, force bool, stdout, stderr io.Writer) error {
	if err := check(chart, dest); err != nil {
		return err
	}
	files, untracked, err := contents(chart)
	if err != nil {
		return fmt.Errorf("cannot read the chart; nothing was written: %w", err)
	}
	if err := os.MkdirAll(dest, 0o755); err != nil {
		return fmt.Errorf("DEST %s cannot be made; nothing was written: %w", dest, err)
	}
	unlock, err := lock.Folder(dest, "make vendor", stderr)
	if err != nil {
		return fmt.Errorf("nothing was written: %w", err)
	}
	defer unlock()
	root, err := os.OpenRoot(dest)
	if err != nil {
		return fmt.Errorf("nothing was written: %w", err)
	}
	defer func() { _ = root.Close() }()
	p, err := compare(root, files)
	if err != nil {
		return fmt.Errorf("DEST %s: nothing was written: %w", dest, err)
	}
	switch {
	case len(p.obstacles) > 0:
		return refusal(dest, "move away what stands in the way", append(p.obstacles, p.conflicts...))
	case len(p.conflicts) > 0 && !force:
		return refusal(dest, "keep elsewhere what you need of the files below, then let FORCE=1 overwrite them", p.conflicts)
	}
	if err := p.execute(root, stdout); err != nil {
		return fmt.Errorf("DEST %s: stopped on the way, run make vendor again once this is mended: %w", dest, err)
	}
	for _, name := range untracked {
		fmt.Fprintf(stdout, "git does not track it, left out: %s\n", filepath.Join(chart, name))
	}
	for _, name := range p.kept {
		fmt.Fprintf(stdout, "no longer the package's, and changed here, left alone: %s%s\n", name, effect(name))
	}
	for _, name := range p.unknown {
		fmt.Fprintf(stdout, "not ours, left alone: %s%s\n", name, effect(name))
	}
	fmt.Fprintf(stdout, "%s: %d files, %d written, %d deleted, %d unchanged\n", dest, len(files), len(p.write), len(p.remove), len(files)-len(p.write))
	return nil
}

func refusal(dest, remedy string, reasons []string) error {
	return fmt.Errorf("DEST %s: nothing was written; %s (%d):\n  %s", dest, remedy, len(reasons), strings.Join(reasons, "\n  "))
}

// effect says of a file that is not the package's how it gets mixed up with it all the same.
func effect(name string) string {
	switch folder, _, _ := strings.Cut(name, "/"); {
	case folder == "templates" || folder == "charts" || folder == "crds":
		return " (Helm takes it into the release)"
	case path.Dir(name) == "tests" && strings.HasSuffix(name, "_test.yaml"):
		return " (helm unittest runs it with ours)"
	}
	return ""
}

// check refuses a destination that cannot be right.
func check(chart, dest string) error {
	if dest == "" {
		return errors.New("DEST is not set; name the folder to write, as in: make vendor DEST=../platform/packages/system/kubevirt")
	}
	if info, err := os.Stat(dest); err == nil && !info.IsDir() {
		return fmt.Errorf("DEST %s is a file, expected a folder, or a path where there is nothing yet; nothing was written", dest)
	}
	from, err := resolved(chart)
	if err != nil {
		return err
	}
	to, err := resolved(dest)
	if err != nil {
		return fmt.Errorf("DEST %s: nothing was written; name a path where a folder is or can be: %w", dest, err)
	}
	if within(from, to) || within(to, from) {
		return fmt.Errorf("DEST %s and the chart %s lie in one another; name a folder of the platform's repository; nothing was written", dest, chart)
	}
	return nil
}

// resolved returns an absolute path without links; what does not exist yet has none.
func resolved(name string) (string, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(absolute)
	if !errors.Is(err, os.ErrNotExist) || absolute == filepath.Dir(absolute) {
		return real, err
	}
	if _, err := os.Lstat(absolute); err == nil {
		return "", errors.New("is a link to nothing")
	}
	parent, err := resolved(filepath.Dir(absolute))
	return filepath.Join(parent, filepath.Base(absolute)), err
}

func within(name, folder string) bool {
	rel, err := filepath.Rel(folder, name)
	return err == nil && filepath.IsLocal(rel)
}

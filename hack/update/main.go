// Command update re-applies the package's parameterization to a KubeVirt CR template.
//
// An engineer who hand-merges a new upstream CR may lose any of the blocks declared in blocks.go; update puts
// the lost ones back, and refuses a file with anything that it cannot put right for certain.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns the exit status: 0 for done, 1 for a file that is refused or, with -check, not up to date, and
// 2 for a wrong call.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("update", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check", false, "write nothing, print the diff and exit with 1 if there is one")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: update [-check] file")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() != 1 {
		flags.Usage()
		return 2
	}
	name := flags.Arg(0)
	done, err := update(name, *check, stdout, stderr)
	if err != nil && !errors.Is(err, errUnsynced) {
		err = fmt.Errorf("%w; nothing was written", err)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
	}
	if err != nil || !done {
		return 1
	}
	return 0
}

// update reports whether the file is up to date when it returns.
func update(name string, check bool, stdout, stderr io.Writer) (bool, error) {
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		return false, cause(err)
	}
	if !check {
		unlock, err := lockDir(target)
		if err != nil {
			return false, cause(err)
		}
		defer unlock()
	}
	info, err := os.Stat(target)
	if err != nil {
		return false, cause(err)
	}
	if !info.Mode().IsRegular() {
		return false, errors.New("is no regular file, expected a KubeVirt CR")
	}
	data, err := os.ReadFile(target)
	if err != nil {
		return false, cause(err)
	}
	r := merge(data)
	for _, f := range r.faults {
		fmt.Fprintln(stderr, f.format(name))
	}
	if check && len(r.faults) == 0 {
		fmt.Fprint(stdout, r.diff(name))
		return bytes.Equal(r.data, data), nil
	}
	for _, s := range r.statuses {
		fmt.Fprintf(stdout, "%s: %s: %s\n", name, s.block, s.text)
	}
	if len(r.faults) > 0 {
		fmt.Fprintf(stderr, "%s: faults: %d; nothing was written\n", name, len(r.faults))
		return false, nil
	}
	if bytes.Equal(r.data, data) {
		return true, nil
	}
	if err := replace(target, r.data); err != nil {
		return false, cause(err)
	}
	return true, nil
}

// cause leaves out the path, which stands at the beginning of every message.
func cause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("cannot %s: %w", path.Op, path.Err)
	}
	return err
}

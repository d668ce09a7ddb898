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
	"slices"

	"cozy-kubevirt/hack/internal/lock"

	"github.com/rogpeppe/go-internal/diff"
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
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v; nothing was written\n", name, err)
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
	data, r, err := load(target)
	if err != nil {
		return false, err
	}
	if !check && len(r.faults) == 0 && !bytes.Equal(r.data, data) {
		unlock, err := lock.Folder(filepath.Dir(target), "make update", stderr)
		if err != nil {
			return false, err
		}
		defer unlock()
		if data, r, err = load(target); err != nil { // another run may have written it meanwhile
			return false, err
		}
	}
	if len(r.faults) > 0 {
		fmt.Fprintf(stderr, "%s: nothing was written; %s\n", name, advice(r.faults))
		for _, f := range r.faults {
			fmt.Fprintln(stderr, f.format(name))
		}
	}
	if check && len(r.faults) == 0 {
		_, _ = stdout.Write(diff.Diff(name, data, name, r.data))
		return bytes.Equal(r.data, data), nil
	}
	if len(r.faults) == 0 && !bytes.Equal(r.data, data) {
		if err := replace(target, r.data); err != nil {
			return false, cause(err)
		}
	}
	for _, s := range r.statuses {
		fmt.Fprintf(stdout, "%s: %s: %s\n", name, s.block, s.text)
	}
	return len(r.faults) == 0, nil
}

// load reads the file and merges it.
func load(target string) ([]byte, result, error) {
	info, err := os.Stat(target)
	if err != nil {
		return nil, result{}, cause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, result{}, errors.New("name the file of the KubeVirt CR, this is no regular file")
	}
	data, err := os.ReadFile(target)
	if err != nil {
		return nil, result{}, cause(err)
	}
	return data, merge(data), nil
}

// advice says in one sentence what to do about the faults.
func advice(faults []fault) string {
	remedies := []string{faults[0].remedy}
	for _, f := range faults {
		if !slices.Contains(remedies, f.remedy) {
			remedies = append(remedies, f.remedy)
		}
	}
	if len(remedies) == 1 {
		return remedies[0]
	}
	return fmt.Sprintf("mend the %d faults below, each as its line says, and run make update again", len(faults))
}

// cause leaves out the path, which stands at the beginning of every message, and says what to do where it can.
func cause(err error) error {
	var path *os.PathError
	if !errors.As(err, &path) {
		return err
	}
	remedy := ""
	switch {
	case errors.Is(err, os.ErrNotExist):
		remedy = "name the file of the KubeVirt CR: "
	case errors.Is(err, os.ErrPermission):
		remedy = "make the file and its folder writable: "
	}
	return fmt.Errorf("%scannot %s: %w", remedy, path.Op, path.Err)
}

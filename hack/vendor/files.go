package main

// What the folder holds: the chart's files, and those that a package of a monorepo has besides.

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// makefile is for a runner that calls `make test` in each package, and for the platform's own targets, which take the
// release's name and namespace from it.
const makefile = `# Written by make vendor of the package cozy-kubevirt.
export NAME=kubevirt
export NAMESPACE=cozy-$(NAME)

HELM_UNITTEST ?= helm unittest

.PHONY: test
test: ## Run the package's suites
	$(HELM_UNITTEST) .

# The platform's targets, where it has them.
-include ../../../hack/package.mk
`

// needed are files, or the beginnings of paths, without which the folder would be no package.
var needed = []string{"Chart.yaml", "values.yaml", "values.schema.json", "README.md", ".helmignore", "templates/", "tests/"}

// contents returns the folder's files by their slash-separated paths: what git tracks of the chart, as it stands in the
// work tree. What git neither tracks nor ignores is left out and returned as untracked.
func contents(chart string) (files map[string][]byte, untracked []string, err error) {
	names, err := listed(chart, "--cached")
	if err != nil {
		return nil, nil, err
	}
	files = map[string][]byte{}
	root := os.DirFS(chart)
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(chart, name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted, and not committed yet
			continue
		case err != nil:
			return nil, nil, err
		case !info.Mode().IsRegular():
			return nil, nil, fmt.Errorf("%s is %s, expected a file, which is all that can be written elsewhere", filepath.Join(chart, name), kind(info))
		}
		if files[name], err = fs.ReadFile(root, name); err != nil {
			return nil, nil, err
		}
	}
	there := slices.Sorted(maps.Keys(files))
	for _, name := range needed {
		if !slices.ContainsFunc(there, func(file string) bool {
			return file == name || strings.HasSuffix(name, "/") && strings.HasPrefix(file, name)
		}) {
			return nil, nil, fmt.Errorf("%s is not there, or git does not track it; restore it, or git add it", filepath.Join(chart, name))
		}
	}
	delete(files, "README.md.gotmpl") // README.md is made from it, here
	files["Makefile"] = []byte(makefile)
	// No archive of the platform's is to hold what is only here.
	files[".helmignore"] = append(bytes.Clone(files[".helmignore"]), "/Makefile\n/"+recordName+"\n"...)
	untracked, err = listed(chart, "--others", "--exclude-standard")
	return files, untracked, err
}

// listed returns the chart's files as git ls-files lists them.
func listed(chart string, which ...string) ([]string, error) {
	out, err := exec.Command("git", append([]string{"-C", chart, "ls-files", "-z"}, which...)...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("run make vendor in a git clone, since only what git tracks is written: git ls-files: %s", bytes.TrimSpace(exit.Stderr))
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), err
}

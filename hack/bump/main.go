// Command bump moves the KubeVirt version that this repository is pinned to: everywhere, or nowhere.
//
//	go run ./hack/bump v1.9.1        (make bump KUBEVIRT_VERSION=v1.9.1)
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/google/renameio/v2"
)

// pins are the places that name the version. The first group of a pattern stays, the rest is the version.
var pins = []struct {
	file    string
	pattern *regexp.Regexp
	least   int
}{
	{"charts/kubevirt/Chart.yaml", regexp.MustCompile(`(?m)(^appVersion:[ \t]*"?|image: quay\.io/kubevirt/[a-z-]+:|the KubeVirt operator |kubevirt/releases/tag/)v[0-9][^"\s]*`), 4},
	{"tests/kubevirt/go.mod", regexp.MustCompile(`(?m)^([ \t]*(?:require )?kubevirt\.io/(?:api|client-go|kubevirt) )v\S+`), 3},
	// What the preview asks for stands there, too; which release its tests are built with is a replace line of that file.
	{"tests/kubevirt/go.v1.8.mod", regexp.MustCompile(`(?m)^([ \t]*kubevirt\.io/api )v\S+`), 1},
	{"cmd/kubectl-drain_preview/go.mod", regexp.MustCompile(`(?m)^([ \t]*kubevirt\.io/api )v\S+`), 1},
	{"go.mod", regexp.MustCompile(`(?m)^([ \t]*(?:require )?kubevirt\.io/api )v\S+`), 1},
}

const next = `
Next:
  1. Compare the replace block of kubevirt.io/kubevirt %[1]s's go.mod with the one in tests/kubevirt/go.mod, then:
     for dir in . tests/kubevirt cmd/kubectl-drain_preview; do go -C $dir mod tidy; done
  2. make contract: a red test names the promise that %[1]s no longer keeps.
  3. If the feature gates changed, review each line, then:
     (cd tests/kubevirt/contract && go test -run Registry . -update)
  4. make verify, make test, and an entry in CHANGELOG.md.
`

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: make bump KUBEVIRT_VERSION=vX.Y.Z")
		os.Exit(2)
	}
	changed, err := bump(".", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "bump:", err)
		os.Exit(1)
	}
	for _, file := range changed {
		fmt.Printf("%s: KubeVirt %s\n", file, os.Args[1])
	}
	if len(changed) == 0 {
		fmt.Printf("KubeVirt %s is pinned already\n", os.Args[1])
		return
	}
	fmt.Printf(next, os.Args[1])
}

var version = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$`)

// bump plans every change before it writes the first, so a missing pin leaves the tree as it was.
func bump(root, to string) (changed []string, err error) {
	if !version.MatchString(to) {
		return nil, fmt.Errorf("%q is not a version like v1.9.1", to)
	}
	planned := map[string][]byte{}
	for _, pin := range pins {
		path := filepath.Join(root, filepath.FromSlash(pin.file))
		before, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if found := len(pin.pattern.FindAll(before, -1)); found < pin.least {
			return nil, fmt.Errorf("%s names the KubeVirt version %d times, want %d; nothing was changed", pin.file, found, pin.least)
		}
		after := pin.pattern.ReplaceAll(before, []byte("${1}"+to))
		if !bytes.Equal(before, after) {
			planned[path] = after
			changed = append(changed, pin.file)
		}
	}
	for path, content := range planned {
		if err := renameio.WriteFile(path, content, 0o644); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

package main

// The record of what was written, which `sha256sum -c` reads too. What is not in it was never ours to delete.

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const recordName = ".vendored.sha256"

const recordHead = "# What make vendor of the package cozy-kubevirt wrote here; it overwrites and deletes nothing else.\n"

// A record holds the checksum of each file by its path.
type record map[string]string

func checksum(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

func recordOf(files map[string][]byte) record {
	r := record{}
	for name, content := range files {
		r[name] = checksum(content)
	}
	return r
}

// text is the record as it stands in the folder.
func (r record) text() []byte {
	out := []byte(recordHead)
	for _, name := range slices.Sorted(maps.Keys(r)) {
		out = fmt.Appendf(out, "%s  %s\n", r[name], name)
	}
	return out
}

var recordLine = regexp.MustCompile(`^([0-9a-f]{64})  (.+)$`)

// readRecord reads the folder's record; one that is not there is empty.
func readRecord(root *os.Root) (record, error) {
	text, obstacle, err := read(root, recordName)
	if obstacle != "" {
		err = fmt.Errorf("%s; move it away", obstacle)
	}
	if err != nil {
		return nil, err
	}
	r := record{}
	for i, line := range strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		found := recordLine.FindStringSubmatch(line)
		if found == nil || !filepath.IsLocal(found[2]) || filepath.ToSlash(filepath.Clean(found[2])) != found[2] {
			return nil, fmt.Errorf("%s:%d: found %q, expected a SHA-256 sum, two blanks and a path in this folder; restore the file from git, or delete it and use FORCE=1", recordName, i+1, line)
		}
		r[found[2]] = found[1]
	}
	return r, nil
}

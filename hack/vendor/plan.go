package main

// Compares the folder with what it is to be, and makes it so.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cozy-kubevirt/hack/internal/lock"

	"github.com/google/renameio/v2"
)

// A plan is what has to be done. Paths are slash-separated and sorted.
type plan struct {
	files     map[string][]byte
	write     []string
	remove    []string // what the package dropped, and we wrote
	kept      []string // what the package dropped, and somebody changed since we wrote it
	unknown   []string // what is not ours; a folder of which nothing is ours is named once, with a slash
	conflicts []string // what would be overwritten though we did not write it so, each with what happened to it
	obstacles []string // what cannot be overwritten, each with what it is
}

// compare plans, and writes nothing.
func compare(root *os.Root, files map[string][]byte) (*plan, error) {
	recorded, err := readRecord(root)
	if err != nil {
		return nil, err
	}
	p := &plan{files: files}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		found, obstacle, err := read(root, name)
		switch {
		case err != nil:
			return nil, err
		case obstacle != "":
			p.obstacles = append(p.obstacles, obstacle)
			continue
		case found != nil && bytes.Equal(found, files[name]):
			continue
		case found != nil && recorded[name] == "":
			p.conflicts = append(p.conflicts, name+" was there before, and is not the package's")
		case found != nil && checksum(found) != recorded[name]:
			p.conflicts = append(p.conflicts, name+" was changed since make vendor wrote it")
		}
		p.write = append(p.write, name)
	}
	slices.Sort(p.obstacles)
	p.obstacles = slices.Compact(p.obstacles) // a parent stands in the way of many
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		if _, ours := files[name]; ours {
			continue
		}
		found, obstacle, err := read(root, name)
		switch {
		case err != nil:
			return nil, err
		case found == nil && obstacle == "":
			continue
		case obstacle == "" && checksum(found) == recorded[name]:
			p.remove = append(p.remove, name)
		default:
			p.kept = append(p.kept, name)
		}
	}
	p.unknown, err = unknown(root, files, recorded)
	return p, err
}

// read returns a file of the folder, nil if it is not there. Where it cannot be one, the obstacle says what stands in
// its place, or in that of one of its folders.
func read(root *os.Root, name string) (content []byte, obstacle string, err error) {
	parents := strings.Split(path.Dir(name), "/")
	for i := range parents {
		parent := path.Join(parents[:i+1]...)
		if info, err := root.Lstat(parent); err == nil && !info.IsDir() {
			return nil, fmt.Sprintf("%s is %s, expected a folder", parent, kind(info)), nil
		}
	}
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	case !info.Mode().IsRegular():
		return nil, fmt.Sprintf("%s is %s, expected a file", name, kind(info)), nil
	}
	content, err = root.ReadFile(name)
	return append([]byte{}, content...), "", err
}

func kind(info fs.FileInfo) string {
	switch {
	case info.IsDir():
		return "a folder"
	case info.Mode()&fs.ModeSymlink != 0:
		return "a link"
	case info.Mode().IsRegular():
		return "a file"
	}
	return "neither a file nor a folder"
}

// unknown returns what is in the folder and neither in the package nor in the record.
func unknown(root *os.Root, files map[string][]byte, recorded record) ([]string, error) {
	ours := map[string]bool{recordName: true}
	for _, names := range [][]string{slices.Collect(maps.Keys(files)), slices.Collect(maps.Keys(recorded))} {
		for _, name := range names {
			for ; name != "."; name = path.Dir(name) {
				ours[name] = true
			}
		}
	}
	left, err := leftovers(root, files)
	if err != nil {
		return nil, err
	}
	for _, name := range left {
		ours[name] = true
	}
	var found []string
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || ours[name] {
			return err // a folder without files is nobody's: helm unittest leaves one
		}
		for parent := path.Dir(name); parent != "." && !ours[parent]; parent = path.Dir(parent) {
			name = parent + "/"
		}
		found = append(found, name)
		return nil
	})
	return slices.Compact(found), err
}

// leftovers returns what a killed run was writing; renameio does that at the root.
func leftovers(root *os.Root, files map[string][]byte) ([]string, error) {
	var names []string
	for name := range files {
		left, err := lock.Leftovers(root.Name(), path.Base(name))
		if err != nil {
			return nil, err
		}
		for _, l := range left {
			names = append(names, filepath.Base(l))
		}
	}
	more, err := lock.Leftovers(root.Name(), recordName)
	for _, l := range more {
		names = append(names, filepath.Base(l))
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// execute carries the plan out, and says on stdout what it does.
func (p *plan) execute(root *os.Root, stdout io.Writer) error {
	left, err := leftovers(root, p.files)
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := root.Remove(name); err != nil {
			return err
		}
	}
	for _, name := range p.write {
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := renameio.WriteFile(name, p.files[name], 0o644, renameio.WithRoot(root)); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "wrote %s\n", name)
	}
	for _, name := range p.remove {
		if err := root.Remove(name); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "deleted %s\n", name)
		for parent := path.Dir(name); parent != "." && root.Remove(parent) == nil; parent = path.Dir(parent) {
			fmt.Fprintf(stdout, "deleted %s/\n", parent)
		}
	}
	text := recordOf(p.files).text()
	if found, _, err := read(root, recordName); err != nil || bytes.Equal(found, text) {
		return err
	}
	return renameio.WriteFile(recordName, text, 0o644, renameio.WithRoot(root))
}

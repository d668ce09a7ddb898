// Package lock keeps the tools that write a folder's files from getting into each other's way. What they share beyond
// that is renameio's: a file is written beside its place, under its name with a dot before and a number behind.
package lock

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// Folder locks a folder against other runs of a tool, whose name is for the message that it prints to stderr where it
// has to wait. The kernel drops the lock of a killed process.
func Folder(folder, tool string, stderr io.Writer) (unlock func(), err error) {
	lock := flock.New(folder, flock.SetFlag(os.O_RDONLY)) // the folder itself, so that no lock file is left
	got, err := lock.TryLock()
	if err == nil && !got {
		fmt.Fprintf(stderr, "waiting for another %s in %s\n", tool, folder)
		err = lock.Lock()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the folder %s: %w", folder, err)
	}
	return func() { _ = lock.Close() }, nil
}

// Leftovers returns the names of a folder's files that a killed run was writing for the file of this name. Whoever holds
// the lock knows that no other run needs them.
func Leftovers(folder, name string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	var left []string
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), "."+filepath.Base(name))
		if ok && number != "" && strings.Trim(number, "0123456789") == "" {
			left = append(left, filepath.Join(folder, e.Name()))
		}
	}
	return left, err
}

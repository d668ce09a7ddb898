// Package whole writes files whole or not at all. hack/update has a writer of its own, which also locks, syncs and
// follows links.
package whole

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes content beside the target and renames it, so that nobody sees half of it. On an error the target is as
// it was. The mode is the file's, whatever the umask.
func Write(target string, content []byte, mode fs.FileMode) error {
	beside, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".")
	if err != nil {
		return err
	}
	defer os.Remove(beside.Name())
	if _, err = beside.Write(content); err == nil {
		err = beside.Chmod(mode)
	}
	if closed := beside.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(beside.Name(), target)
}

// Replace is Write for a file that is there; its mode stays.
func Replace(target string, content []byte) error {
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	return Write(target, content, info.Mode().Perm())
}

package main

// Replaces a file whole or not at all: whenever the process is killed, the file is the old one or the new one.

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"cozy-kubevirt/hack/internal/lock"
	"github.com/google/renameio/v2"
)

// replace writes data to the target, which is no symlink, and keeps its mode and owner. The caller holds the
// lock of the directory.
func replace(target string, data []byte) error {
	// A rename would replace a file that is read-only; nobody who made it so wants that.
	writable, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := writable.Stat()
	if err := errors.Join(err, writable.Close()); err != nil {
		return err
	}
	left, err := lock.Leftovers(filepath.Dir(target), filepath.Base(target))
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil {
			return err
		}
	}

	// A signal waits for the moment that this takes, so that it leaves nothing behind.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	temp, err := renameio.NewPendingFile(target, renameio.WithTempDir(filepath.Dir(target)), renameio.WithExistingPermissions())
	if err != nil {
		return err
	}
	if _, err := temp.Write(data); err != nil {
		return errors.Join(err, temp.Cleanup())
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		_ = temp.Chown(int(owner.Uid), int(owner.Gid)) // root keeps the file's owner; others cannot give files away
	}
	if err := temp.CloseAtomicallyReplace(); err != nil {
		return errors.Join(err, temp.Cleanup())
	}
	return nil
}

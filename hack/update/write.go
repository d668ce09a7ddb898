package main

// Replaces a file whole or not at all: whenever the process is killed, the file is the old one or the new one.

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// lockDir makes runs in one directory wait for each other, and clears away what a killed run has left there:
// whoever holds the lock knows that no other run needs it. The kernel drops the lock of a killed process.
func lockDir(target string) (unlock func(), err error) {
	dir, err := os.Open(filepath.Dir(target))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", dir.Name(), err), dir.Close())
	}
	unlock = func() { _ = dir.Close() }
	if err := os.Remove(tempName(target)); err != nil && !errors.Is(err, os.ErrNotExist) {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// tempName is where the new file is written first: beside the target, since a rename does not cross file
// systems, and with a leading dot, since Helm renders whatever else stands among the templates.
func tempName(target string) string {
	return filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".make-update")
}

// replace writes data to the target, which is no symlink, and keeps its mode and owner. The caller holds the
// lock of the directory.
func replace(target string, data []byte) (err error) {
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	// A rename would replace a file that is read-only; nobody who made it so wants that.
	writable, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err := writable.Close(); err != nil {
		return err
	}

	name := tempName(target)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	go func() {
		if s, ok := (<-signals).(syscall.Signal); ok {
			_ = os.Remove(name)
			os.Exit(128 + int(s))
		}
	}()

	temp, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && !errors.Is(err, errUnsynced) {
			err = errors.Join(err, os.Remove(name))
		}
	}()
	if err := fill(temp, data, info); err != nil {
		return errors.Join(err, temp.Close())
	}
	if err := temp.Close(); err != nil {
		return err
	}
	if err := os.Rename(name, target); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(target)); err != nil {
		return fmt.Errorf("%w: %w", errUnsynced, err)
	}
	return nil
}

// errUnsynced comes after the rename: a power failure might still bring back the old file.
var errUnsynced = errors.New("is written, but its directory cannot be synced")

func fill(temp *os.File, data []byte, info os.FileInfo) error {
	if _, err := temp.Write(data); err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		_ = temp.Chown(int(owner.Uid), int(owner.Gid)) // root keeps the file's owner; others cannot give files away
	}
	if err := temp.Chmod(info.Mode()); err != nil {
		return err
	}
	return temp.Sync()
}

func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

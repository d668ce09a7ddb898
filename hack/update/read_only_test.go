// What may not be written: refused where there is something to write, and success where there is nothing to do.
package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// unprivileged runs the command as somebody whom a file's mode binds, which it does not root.
func unprivileged(t *testing.T, args ...string) (string, error) {
	t.Helper()
	data := bytesOf(t, binary(t))
	program := filepath.Join(anybodys(t), "update")
	if err := os.WriteFile(program, data, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

const nobody = 65534

// anybodys is a folder that everybody may enter, which those of t.TempDir are not.
func anybodys(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "update")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.Chmod(dir, 0o700)
		_ = os.RemoveAll(dir)
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestWhatMayNotBeWrittenIsRefusedOnlyIfThereIsSomethingToWrite(t *testing.T) {
	for _, c := range []struct {
		name         string
		text         []byte
		file, folder os.FileMode
		refused      bool
	}{
		{"nothing to do, a read-only file in a read-only folder", shipped(t), 0o444, 0o555, false},
		{"something to do in a read-only file", lostText(t), 0o444, 0o777, true},
		{"something to do in a read-only folder", lostText(t), 0o666, 0o555, true},
	} {
		dir := anybodys(t)
		path := filepath.Join(dir, "cr.yaml")
		if err := errors.Join(os.WriteFile(path, c.text, 0o600), os.Chmod(path, c.file), os.Chmod(dir, c.folder)); err != nil {
			t.Fatal(err)
		}
		out, err := unprivileged(t, path)
		if refused := err != nil; refused != c.refused || !bytes.Equal(bytesOf(t, path), c.text) {
			t.Errorf("%s: %v, %s", c.name, err, out)
		}
		if c.refused && !strings.Contains(out, "make the file and its folder writable: ") {
			t.Errorf("%s: %s", c.name, out)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("%s: it leaves %v, %v", c.name, left, err)
		}
	}
}

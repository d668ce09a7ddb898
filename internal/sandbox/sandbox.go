// Package sandbox keeps the files and servers of a test process together and makes sure that nothing is left of them,
// however the process ends: a panic, a test timeout, ^C and kill -9 included.
//
// Importing it is what sets the sandbox up. envtest asks for its cache when it is initialised, which is before any
// function of a test runs; Go initialises packages in the order of their import paths as far as their own imports
// allow (https://go.dev/ref/spec#Program_initialization), and this one, which imports the standard library only, comes
// before sigs.k8s.io/controller-runtime.
package sandbox

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// pidFile is where a server's process id stands, in a folder of the sandbox.
const pidFile = "pids"

// cleanup waits until its input ends, which it does when this process is over, in whatever way. Once the sandbox has
// another name no server starts any more (see Server), so that none is missed. A folder that was removed in order has no
// process ids any more; a server that is just being killed may still write.
const cleanup = `
cat
mv "$1" "$1.over"
for ids in "$1.over"/*/` + pidFile + `; do
  [ -f "$ids" ] && kill -9 $(cat "$ids")
done
for try in 1 2 3 4 5; do
  rm -rf "$1.over" && break
  sleep 1
done
`

var (
	folder  string
	cleaner *exec.Cmd
	over    io.Closer
	failure error
)

func init() { failure = open() }

func open() error {
	var err error
	if folder, err = os.MkdirTemp("", "sandbox-"); err != nil {
		return err
	}
	for _, variable := range []string{"TMPDIR", "XDG_CACHE_HOME"} { // envtest and Helm keep caches, too
		if err := os.Setenv(variable, folder); err != nil {
			return err
		}
	}
	cleaner = exec.Command("sh", "-c", cleanup, "sh", folder)
	cleaner.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C goes to the terminal's process group
	if over, err = cleaner.StdinPipe(); err != nil {
		return err
	}
	return cleaner.Start()
}

// Within runs main, removes the sandbox and returns main's exit status.
func Within(main func() int) int {
	if failure != nil {
		fmt.Fprintln(os.Stderr, "no sandbox:", failure)
		return 1
	}
	status := main()
	_ = over.Close()
	_ = cleaner.Wait()
	return status
}

// Folder makes a folder in the sandbox.
func Folder(pattern string) (string, error) { return os.MkdirTemp(folder, pattern) }

// Server returns the path of a script in one of the sandbox's folders that runs a binary and is stopped with the
// sandbox, if it runs then.
func Server(folder, binary string) (string, error) {
	if _, err := os.Stat(binary); err != nil {
		return "", fmt.Errorf("%w (make tools builds it)", err)
	}
	absolute, err := filepath.Abs(binary)
	if err != nil {
		return "", err
	}
	script := filepath.Join(folder, filepath.Base(binary))
	text := fmt.Sprintf("#!/bin/sh\necho $$ >>%[1]s && [ -e %[1]s ] || exit 1\nexec %[2]s \"$@\"\n",
		quoted(filepath.Join(folder, pidFile)), quoted(absolute))
	return script, os.WriteFile(script, []byte(text), 0o700)
}

// quoted is a text as a word of the shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

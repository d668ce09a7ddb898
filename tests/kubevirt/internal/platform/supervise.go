package platform

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// This file makes sure that nothing is left behind, however the run ends: a panic, a test timeout and ^C included.

const sandboxVariable = "REHEARSAL_SANDBOX"

// Supervised runs main in a child of this process that keeps all its files, caches included, in one temporary folder.
// When the child is gone, the servers that it may have left are stopped and the folder is removed. It returns the
// exit status.
func Supervised(main func(sandbox string) int) int {
	if sandbox := os.Getenv(sandboxVariable); sandbox != "" {
		return main(sandbox)
	}
	sandbox, err := os.MkdirTemp("", "rehearsal-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(sandbox)
	defer killServers(sandbox)

	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	child := exec.Command(self, os.Args[1:]...)
	// envtest and Helm keep caches: in the sandbox, too.
	child.Env = append(os.Environ(), sandboxVariable+"="+sandbox, "TMPDIR="+sandbox, "XDG_CACHE_HOME="+sandbox)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := child.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		for s := range signals {
			_ = child.Process.Signal(s)
		}
	}()
	_ = child.Wait()
	if code := child.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 1
}

// recorded returns the path of a script that runs the binary and leaves its process id in the platform's folder.
func recorded(folder, binary string) (string, error) {
	if _, err := os.Stat(binary); err != nil {
		return "", fmt.Errorf("%w (make tools builds it)", err)
	}
	absolute, err := filepath.Abs(binary)
	if err != nil {
		return "", err
	}
	script := filepath.Join(folder, filepath.Base(binary))
	text := fmt.Sprintf("#!/bin/sh\necho $$ >>'%s'\nexec '%s' \"$@\"\n", filepath.Join(folder, pidFile), absolute)
	return script, os.WriteFile(script, []byte(text), 0o700)
}

const pidFile = "pids"

// killServers stops what a platform left that did not stop in order; one that did has no folder any more.
func killServers(sandbox string) {
	files, _ := filepath.Glob(filepath.Join(sandbox, "*", pidFile))
	for _, file := range files {
		pids, _ := os.ReadFile(file)
		for _, line := range strings.Fields(string(pids)) {
			if pid, err := strconv.Atoi(line); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

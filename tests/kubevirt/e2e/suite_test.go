package e2e

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// This file runs the suite as make e2e does.

// ran is what the suite said, and how it ended.
type ran struct {
	output   string // all of it
	verdicts string // the lines that it ends with
	passed   bool
}

// suite runs tests/e2e against the cluster of a kubeconfig, with what is set as VARIABLE=value.
func suite(t *testing.T, kubeconfig string, settings ...string) ran {
	t.Helper()
	kubectl, err := filepath.Abs(fromEnv("KUBECTL", "kubectl"))
	require.NoError(t, err)
	run := exec.CommandContext(t.Context(), "make", "-s", "-C", root, "e2e")
	run.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECTL="+kubectl, "KUBECACHEDIR="+t.TempDir(),
		"VM=", "STORAGE_CLASS=", "REQUIRE_BRANCHES=")
	run.Env = append(run.Env, settings...)
	var stdout bytes.Buffer
	all := &lockedBuffer{}
	run.Stdout, run.Stderr = io.MultiWriter(&stdout, all), all
	if err = run.Run(); err != nil {
		exit := &exec.ExitError{}
		require.ErrorAs(t, err, &exit, "the suite cannot be run: %s", all.String())
	}
	_, verdicts, _ := strings.Cut(stdout.String(), "\nThe answers, by their branch:\n")
	return ran{output: all.String(), verdicts: strings.TrimSpace(verdicts), passed: err == nil}
}

// lockedBuffer is a buffer that standard output and standard error are both copied to, at the same time.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (s *lockedBuffer) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buffer.Write(text)
}

func (s *lockedBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buffer.String()
}

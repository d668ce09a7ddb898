package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// This file checks the form of the suite's own files.

func TestChainsawFindsNothingWrongWithTheSuite(t *testing.T) {
	for kind, pattern := range map[string]string{"test": "*/chainsaw-test.yaml", "configuration": ".chainsaw.yaml"} {
		for _, file := range suiteFiles(t, pattern) {
			quiet(t, fromEnv("CHAINSAW", "chainsaw"), "lint", kind, "--file", file)
		}
	}
}

// Shellcheck is not a Go program, so it runs where it is installed.
func TestTheSuitesScriptsAreInForm(t *testing.T) {
	scripts := suiteFiles(t, "*.sh")
	for _, script := range scripts {
		quiet(t, "bash", "-n", script)
	}
	quiet(t, fromEnv("SHFMT", "shfmt"), append([]string{"-d", "-i", "2", "-ci"}, scripts...)...)
	if shellcheck, err := exec.LookPath("shellcheck"); err == nil {
		quiet(t, shellcheck, append([]string{"--external-sources", "--source-path=SCRIPTDIR"}, scripts...)...)
	}
}

func suiteFiles(t *testing.T, pattern string) []string {
	files, err := filepath.Glob(filepath.Join(root, "tests", "e2e", pattern))
	require.NoError(t, err)
	require.NotEmpty(t, files, "tests/e2e holds %s", pattern)
	return files
}

func quiet(t *testing.T, command string, args ...string) {
	t.Helper()
	output, err := exec.Command(command, args...).CombinedOutput()
	assert.NoError(t, err, "%s %v:\n%s", command, args, output)
}

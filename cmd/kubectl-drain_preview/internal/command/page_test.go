package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// docs/preview.md shows the output for one of the dumps, to the letter.
func TestThePageShowsWhatIsPrinted(t *testing.T) {
	path := filepath.Join("..", "..", "..", "..", "docs", "preview.md")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	before, shown, found := strings.Cut(string(raw), "```console\n$ kubectl drain-preview node-a\n")
	require.True(t, found, "docs/preview.md shows the output of kubectl drain-preview node-a")
	shown, after, _ := strings.Cut(shown, "```\n")

	out, _, _ := run("", "--complete", "-f", filepath.Join("testdata", "every-kind.yaml"), "node-a")
	if *update {
		text := before + "```console\n$ kubectl drain-preview node-a\n" + out + "```\n" + after
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		shown = out
	}
	assert.Equal(t, out, shown, "mend it with: go -C cmd/kubectl-drain_preview test ./internal/command -update")
}

package whole

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFileIsReplacedWithItsModeAndNothingIsLeftBeside(t *testing.T) {
	target := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"first", "second"} {
		require.NoError(t, Write(target, []byte(text), 0o640))
		content, err := os.ReadFile(target)
		require.NoError(t, err)
		assert.Equal(t, text, string(content))
	}
	info, err := os.Stat(target)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode())
	assertAlone(t, target)
}

func TestAReplacedFileKeepsItsModeAndMustBeThere(t *testing.T) {
	target := filepath.Join(t.TempDir(), "file")
	require.ErrorIs(t, Replace(target, []byte("text")), os.ErrNotExist)
	require.NoError(t, Write(target, []byte("first"), 0o600))
	require.NoError(t, Replace(target, []byte("second")))
	content, err := os.ReadFile(target)
	require.NoError(t, err)
	assert.Equal(t, "second", string(content))
	info, err := os.Stat(target)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestATargetThatCannotBeReplacedIsLeftAsItWas(t *testing.T) {
	target := filepath.Join(t.TempDir(), "folder")
	require.NoError(t, os.MkdirAll(filepath.Join(target, "inside"), 0o755))
	require.Error(t, Write(target, []byte("text"), 0o644))
	assert.DirExists(t, filepath.Join(target, "inside"))
	assertAlone(t, target)
}

func assertAlone(t *testing.T, target string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(target))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "a temporary file is left")
}

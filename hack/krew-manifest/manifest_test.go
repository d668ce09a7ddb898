package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const platform = `spec:
  version: {{ .TagName }}
  platforms:
  - bin: demo
    {{addURIAndSha "https://example.org/{{ .TagName }}/demo_{{ .TagName }}.tar.gz" .TagName }}
`

func TestAnArchivesAddressAndChecksumAreFilledIn(t *testing.T) {
	source, archives := write(t, ".krew.yaml", platform), filepath.Dir(write(t, "demo_v1.2.3.tar.gz", "content"))
	var filled strings.Builder
	require.NoError(t, fill(&filled, source, "v1.2.3", archives))
	var manifest map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(filled.String()), &manifest), filled.String())
	assert.Equal(t, map[string]any{"spec": map[string]any{"version": "v1.2.3", "platforms": []any{map[string]any{
		"bin": "demo", "uri": "https://example.org/v1.2.3/demo_v1.2.3.tar.gz", "sha256": fmt.Sprintf("%x", sha256.Sum256([]byte("content"))),
	}}}}, manifest)
}

func TestAnArchiveThatIsNotThereIsNamedAndNothingIsWritten(t *testing.T) {
	var filled strings.Builder
	err := fill(&filled, write(t, ".krew.yaml", platform), "v1.2.3", t.TempDir())
	assert.ErrorContains(t, err, "https://example.org/v1.2.3/demo_v1.2.3.tar.gz")
	assert.Empty(t, filled.String())
}

func TestATagThatKrewDoesNotTakeForAVersionIsRefused(t *testing.T) {
	for _, tag := range []string{"", "1.2.3", "v1", "vv1.2.3", "latest"} {
		err := fill(&strings.Builder{}, write(t, ".krew.yaml", platform), tag, t.TempDir())
		assert.ErrorContains(t, err, fmt.Sprintf("-tag %q", tag))
	}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/repo"
)

func TestAnIndexIsDatedByItsArchivesAndTheSameWheneverItIsMade(t *testing.T) {
	folder := t.TempDir()
	packageChart(t, folder, "1.0.0", 1_700_000_000)
	packageChart(t, folder, "1.1.0", 1_800_000_000)
	file, err := index(folder, "https://example.org/charts", "")
	require.NoError(t, err)
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	_, err = index(folder, "https://example.org/charts", "")
	require.NoError(t, err)
	second, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(first), string(second))

	found, err := repo.LoadIndexFile(file)
	require.NoError(t, err)
	newest, err := found.Get("demo", "")
	require.NoError(t, err)
	assert.Equal(t, "1.1.0", newest.Version)
	assert.Equal(t, []string{"https://example.org/charts/demo-1.1.0.tgz"}, newest.URLs)
	assert.Equal(t, time.Unix(1_800_000_000, 0).UTC(), newest.Created.UTC())
	assert.Equal(t, time.Unix(1_800_000_000, 0).UTC(), found.Generated.UTC())
}

func TestOtherVersionsOfTheRepositoryAreKept(t *testing.T) {
	before, now := t.TempDir(), t.TempDir()
	packageChart(t, before, "1.0.0", 1_700_000_000)
	published, err := index(before, "https://example.org/charts", "")
	require.NoError(t, err)
	packageChart(t, now, "1.1.0", 1_800_000_000)
	file, err := index(now, "https://example.org/charts", published)
	require.NoError(t, err)
	found, err := repo.LoadIndexFile(file)
	require.NoError(t, err)
	require.Len(t, found.Entries["demo"], 2)
	assert.Equal(t, "1.1.0", found.Entries["demo"][0].Version)
	assert.Equal(t, "1.0.0", found.Entries["demo"][1].Version)
}

func TestAVersionThatIsPublishedWithOtherContentIsRefused(t *testing.T) {
	before, now := t.TempDir(), t.TempDir()
	packageChart(t, before, "1.0.0", 1_700_000_000)
	published, err := index(before, "", "")
	require.NoError(t, err)
	packageChart(t, now, "1.0.0", 1_800_000_000)
	_, err = index(now, "", published)
	assert.ErrorContains(t, err, "demo 1.0.0 with other content")
	assert.NoFileExists(t, filepath.Join(now, "index.yaml"))
}

func TestWhatCannotBeIndexedIsRefused(t *testing.T) {
	_, err := index(t.TempDir(), "", "")
	assert.ErrorContains(t, err, "holds no packaged chart")
	folder := t.TempDir()
	packageChart(t, folder, "1.0.0", 1_700_000_000)
	for _, address := range []string{"charts", "https://user:secret@example.org", "https://"} {
		_, err := index(folder, address, "")
		require.ErrorContains(t, err, "URL: expected the address")
		assert.NotContains(t, err.Error(), "secret")
	}
	_, err = index(folder, "", filepath.Join(folder, "nowhere.yaml"))
	assert.ErrorContains(t, err, "nowhere.yaml")
}

// packageChart makes an archive as make package does, with every file dated.
func packageChart(t *testing.T, folder, version string, date int64) {
	t.Helper()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	packed := tar.NewWriter(zipped)
	text := "apiVersion: v2\nname: demo\nversion: " + version + "\n"
	require.NoError(t, packed.WriteHeader(&tar.Header{Name: "demo/Chart.yaml", Size: int64(len(text)), Mode: 0o644, ModTime: time.Unix(date, 0)}))
	_, err := packed.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, packed.Close())
	require.NoError(t, zipped.Close())
	require.NoError(t, os.WriteFile(filepath.Join(folder, "demo-"+version+".tgz"), archive.Bytes(), 0o600))
}

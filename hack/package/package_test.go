package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/downloader"
)

func TestTwoClonesOfOneCommitGiveTheSameBytes(t *testing.T) {
	origin := repository(t)
	var archives [][]byte
	for _, umask := range []int{0o022, 0o077} {
		clone := filepath.Join(t.TempDir(), "clone")
		run(t, filepath.Dir(clone), "git", "clone", "--quiet", origin, clone)
		// Files get the time of the checkout; a clone made later has later ones.
		require.NoError(t, os.Chtimes(filepath.Join(clone, "chart/values.yaml"), time.Now(), time.Unix(int64(umask)*1e6, 0)))
		before := syscall.Umask(umask)
		archive, err := bundle(options{chart: filepath.Join(clone, "chart"), out: filepath.Join(clone, "_out"), version: "1.2.3", allowDirty: true})
		syscall.Umask(before)
		require.NoError(t, err)
		assert.Equal(t, "demo-1.2.3.tgz", filepath.Base(archive))
		archives = append(archives, read(t, archive))
	}
	assert.Equal(t, sha256.Sum256(archives[0]), sha256.Sum256(archives[1]))
}

func TestSourceDateEpochIsWhatTheFilesAreDated(t *testing.T) {
	dir := repository(t)
	pack := func(epoch string) []byte {
		t.Setenv("SOURCE_DATE_EPOCH", epoch)
		archive, err := bundle(options{chart: filepath.Join(dir, "chart"), out: t.TempDir()})
		require.NoError(t, err)
		return read(t, archive)
	}
	assert.Equal(t, pack("1700000000"), pack("1700000000"))
	assert.NotEqual(t, pack("1700000000"), pack("1700000001"))
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	_, err := bundle(options{chart: filepath.Join(dir, "chart"), out: t.TempDir()})
	assert.ErrorContains(t, err, "SOURCE_DATE_EPOCH")
}

func TestTheArchiveIsAChartOfThatVersionWithItsChecksumBeside(t *testing.T) {
	archive, err := bundle(options{chart: filepath.Join(repository(t), "chart"), out: t.TempDir(), version: "1.2.3-rc.1+build.5"})
	require.NoError(t, err)
	chart, err := loader.LoadFile(archive)
	require.NoError(t, err)
	assert.Equal(t, "1.2.3-rc.1+build.5", chart.Metadata.Version)
	assert.Equal(t, fmt.Sprintf("%x  %s\n", sha256.Sum256(read(t, archive)), filepath.Base(archive)), string(read(t, archive+".sha256")))
	assert.NoFileExists(t, archive+".prov")
}

func TestAVersionThatIsNotSemVerIsRefused(t *testing.T) {
	dir := repository(t)
	for _, version := range []string{"1", "1.2", "v1.2.3", "1.2.3.4", "latest", "01.2.3"} {
		out := t.TempDir()
		_, err := bundle(options{chart: filepath.Join(dir, "chart"), out: out, version: version})
		assert.ErrorContains(t, err, version)
		assertEmpty(t, out)
	}
}

func TestATreeWithUncommittedChangesIsRefusedUnlessAllowed(t *testing.T) {
	dir := repository(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "chart/values.yaml"), []byte("a: 2\n"), 0o644))
	o := options{chart: filepath.Join(dir, "chart"), out: t.TempDir()}
	_, err := bundle(o)
	require.ErrorContains(t, err, "chart/values.yaml")
	assertEmpty(t, o.out)
	o.allowDirty = true
	_, err = bundle(o)
	assert.NoError(t, err)
}

func TestAnArchiveIsSignedSoThatHelmVerifiesIt(t *testing.T) {
	dir := t.TempDir()
	entity, err := openpgp.NewEntity("release", "", "release@example.org", nil)
	require.NoError(t, err)
	secret, public := filepath.Join(dir, "secring.gpg"), filepath.Join(dir, "pubring.gpg")
	var keys bytes.Buffer
	require.NoError(t, entity.SerializePrivate(&keys, nil))
	require.NoError(t, os.WriteFile(secret, keys.Bytes(), 0o600))
	keys.Reset()
	require.NoError(t, entity.Serialize(&keys))
	require.NoError(t, os.WriteFile(public, keys.Bytes(), 0o600))

	o := options{chart: filepath.Join(repository(t), "chart"), out: t.TempDir(), signKey: "release", keyring: secret}
	archive, err := bundle(o)
	require.NoError(t, err)
	_, err = downloader.VerifyChart(archive, public)
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(archive, append(read(t, archive), 0), 0o644))
	_, err = downloader.VerifyChart(archive, public)
	assert.Error(t, err, "a changed archive must not verify")

	o.keyring = ""
	_, err = bundle(o)
	assert.ErrorContains(t, err, "SIGN_KEYRING")
}

// repository makes a git repository with a small chart in it, committed at a fixed time.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"chart/Chart.yaml":        "apiVersion: v2\nname: demo\nversion: 0.1.0\n",
		"chart/values.yaml":       "a: 1\n",
		"chart/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.a | quote }}\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	run(t, dir, "git", "init", "--quiet")
	run(t, dir, "git", "add", ".")
	run(t, dir, "git", "-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "--quiet", "--message", "a chart", "--date", "2026-01-01T00:00:00Z")
	return dir
}

func run(t *testing.T, dir, name string, arguments ...string) {
	t.Helper()
	command := exec.Command(name, arguments...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return content
}

func assertEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries, "nothing may be half written")
}

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
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
		archive, err := bundle(options{chart: filepath.Join(clone, "chart"), out: filepath.Join(clone, "_out"), version: "1.2.3"}, io.Discard)
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
		archive, err := bundle(options{chart: filepath.Join(dir, "chart"), out: t.TempDir()}, io.Discard)
		require.NoError(t, err)
		return read(t, archive)
	}
	assert.Equal(t, pack("1700000000"), pack("1700000000"))
	assert.NotEqual(t, pack("1700000000"), pack("1700000001"))
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	_, err := bundle(options{chart: filepath.Join(dir, "chart"), out: t.TempDir()}, io.Discard)
	assert.ErrorContains(t, err, "SOURCE_DATE_EPOCH")
}

func TestTheArchiveIsAChartOfThatVersionWithItsChecksumBeside(t *testing.T) {
	archive, err := bundle(options{chart: filepath.Join(repository(t), "chart"), out: t.TempDir(), version: "1.2.3-rc.1+build.5"}, io.Discard)
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
		_, err := bundle(options{chart: filepath.Join(dir, "chart"), out: out, version: version}, io.Discard)
		assert.ErrorContains(t, err, version)
		assertEmpty(t, out)
	}
}

func TestATreeWithUncommittedChangesIsRefusedUnlessAllowed(t *testing.T) {
	dir := repository(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "chart/values.yaml"), []byte("a: 2\n"), 0o644))
	assertRefused(t, dir, "chart/values.yaml")
	_, err := bundle(options{chart: filepath.Join(dir, "chart"), out: t.TempDir(), allowDirty: true}, io.Discard)
	assert.NoError(t, err)
}

// What git does not show does not get in: there is no refusal to hope for, so that the archive is what the commit says.
func TestOnlyWhatIsCommittedIsPackagedWhateverGitShows(t *testing.T) {
	pristine, err := bundle(options{chart: filepath.Join(repository(t), "chart"), out: t.TempDir()}, io.Discard)
	require.NoError(t, err)
	values, extra := "chart/values.yaml", "chart/templates/extra.yaml"
	for name, hide := range map[string]func(t *testing.T, dir string){
		"a file that git ignores": func(t *testing.T, dir string) {
			add(t, dir, extra, "extra: true\n")
			add(t, dir, ".git/info/exclude", "extra.yaml\n")
		},
		"a change that git assumes is none": func(t *testing.T, dir string) {
			add(t, dir, values, "a: 2\n")
			run(t, dir, "git", "update-index", "--assume-unchanged", values)
		},
		"a change in what git is told to skip": func(t *testing.T, dir string) {
			add(t, dir, values, "a: 2\n")
			run(t, dir, "git", "update-index", "--skip-worktree", values)
		},
		"a file that is gone from what git is told to skip": func(t *testing.T, dir string) {
			run(t, dir, "git", "update-index", "--skip-worktree", values)
			require.NoError(t, os.Remove(filepath.Join(dir, values)))
		},
		"a filter of this machine": func(t *testing.T, dir string) {
			add(t, dir, ".git/info/attributes", "*.yaml filter=shout eol=crlf export-ignore\n")
			run(t, dir, "git", "config", "filter.shout.smudge", "tr a-z A-Z")
		},
		"another object in the place of a committed one": func(t *testing.T, dir string) {
			add(t, dir, "other", "a: 2\n")
			run(t, dir, "sh", "-c", "git replace $(git rev-parse HEAD:chart/values.yaml) $(git hash-object -w other) && rm other")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t)
			hide(t, dir)
			archive, err := bundle(options{chart: filepath.Join(dir, "chart"), out: t.TempDir()}, io.Discard)
			require.NoError(t, err)
			assert.Equal(t, contents(t, pristine), contents(t, archive))
		})
	}
}

func TestAFileThatIsNotTrackedIsRefusedHoweverGitIsConfigured(t *testing.T) {
	dir := repository(t)
	add(t, dir, "chart/templates/new.yaml", "new: true\n")
	run(t, dir, "git", "config", "status.showUntrackedFiles", "no")
	assertRefused(t, dir, "chart/templates/new.yaml")
}

func TestALinkInTheCommitIsRefused(t *testing.T) {
	dir := repository(t)
	require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(dir, "chart/link.txt")))
	commitAll(t, dir)
	assertRefused(t, dir, "chart/link.txt")
}

func TestAllowDirtyPackagesTheFolderAsItIsAndSaysSo(t *testing.T) {
	dir := repository(t)
	add(t, dir, "chart/values.yaml", "a: 2\n")
	add(t, dir, "chart/ignored.yaml", "b: 1\n")
	add(t, dir, ".git/info/exclude", "ignored.yaml\n")
	var said bytes.Buffer
	archive, err := bundle(options{chart: filepath.Join(dir, "chart"), out: t.TempDir(), allowDirty: true}, &said)
	require.NoError(t, err)
	assert.Contains(t, said.String(), "ALLOW_DIRTY=1")
	found := contents(t, archive)
	assert.Equal(t, "a: 2\n", found["values.yaml"])
	assert.Equal(t, "b: 1\n", found["ignored.yaml"])

	said.Reset()
	_, err = bundle(options{chart: filepath.Join(repository(t), "chart"), out: t.TempDir()}, &said)
	require.NoError(t, err)
	assert.Empty(t, said.String(), "the commit is packaged without a word")
}

// A folder in the place of a file can't be replaced: so the archive is missed whenever what belongs to it can't be written.
func TestAnArchiveIsThereOnlyWithWhatBelongsToIt(t *testing.T) {
	secret, _ := keyring(t)
	for _, suffix := range []string{".sha256", ".prov"} {
		o := options{chart: filepath.Join(repository(t), "chart"), out: t.TempDir(), signKey: "release", keyring: secret}
		archive, err := bundle(o, io.Discard)
		require.NoError(t, err)
		require.NoError(t, os.Remove(archive+suffix))
		add(t, o.out, filepath.Base(archive)+suffix+"/file", "")
		_, err = bundle(o, io.Discard)
		require.Error(t, err, suffix)
		assert.NoFileExists(t, archive, suffix)
	}
}

func TestAProvenanceOfAnEarlierArchiveDoesNotStay(t *testing.T) {
	secret, _ := keyring(t)
	o := options{chart: filepath.Join(repository(t), "chart"), out: t.TempDir(), signKey: "release", keyring: secret}
	archive, err := bundle(o, io.Discard)
	require.NoError(t, err)
	require.FileExists(t, archive+".prov")
	o.signKey = ""
	_, err = bundle(o, io.Discard)
	require.NoError(t, err)
	assert.NoFileExists(t, archive+".prov")
}

func TestAnArchiveIsSignedSoThatHelmVerifiesIt(t *testing.T) {
	secret, public := keyring(t)
	o := options{chart: filepath.Join(repository(t), "chart"), out: t.TempDir(), signKey: "release", keyring: secret}
	archive, err := bundle(o, io.Discard)
	require.NoError(t, err)
	_, err = downloader.VerifyChart(archive, public)
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(archive, append(read(t, archive), 0), 0o644))
	_, err = downloader.VerifyChart(archive, public)
	assert.Error(t, err, "a changed archive must not verify")

	o.keyring = ""
	_, err = bundle(o, io.Discard)
	assert.ErrorContains(t, err, "SIGN_KEYRING")
}

// keyring makes a key "release", and returns the files of its secret and its public part.
func keyring(t *testing.T) (secret, public string) {
	t.Helper()
	dir := t.TempDir()
	entity, err := openpgp.NewEntity("release", "", "release@example.org", nil)
	require.NoError(t, err)
	secret, public = filepath.Join(dir, "secring.gpg"), filepath.Join(dir, "pubring.gpg")
	var keys bytes.Buffer
	require.NoError(t, entity.SerializePrivate(&keys, nil))
	require.NoError(t, os.WriteFile(secret, keys.Bytes(), 0o600))
	keys.Reset()
	require.NoError(t, entity.Serialize(&keys))
	require.NoError(t, os.WriteFile(public, keys.Bytes(), 0o600))
	return secret, public
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
		add(t, dir, name, text)
	}
	run(t, dir, "git", "init", "--quiet")
	commitAll(t, dir)
	return dir
}

func commitAll(t *testing.T, dir string) {
	t.Helper()
	run(t, dir, "git", "add", ".")
	run(t, dir, "git", "-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "--quiet", "--message", "a chart", "--date", "2026-01-01T00:00:00Z")
}

func add(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// contents are an archive's files, as it holds them, by name.
func contents(t *testing.T, archive string) map[string]string {
	t.Helper()
	chart, err := loader.LoadFile(archive)
	require.NoError(t, err)
	found := map[string]string{}
	for _, file := range chart.Raw {
		found[file.Name] = string(file.Data)
	}
	return found
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

// assertRefused says that the chart of a repository is not packaged, that the reason names a file, and that nothing is written.
func assertRefused(t *testing.T, dir, file string) {
	t.Helper()
	out := t.TempDir()
	_, err := bundle(options{chart: filepath.Join(dir, "chart"), out: out}, io.Discard)
	require.ErrorContains(t, err, file)
	assertEmpty(t, out)
}

func assertEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries, "nothing may be half written")
}

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/downloader"
)

// TestMain is the command itself where a test starts it.
func TestMain(m *testing.M) {
	if os.Getenv("IS_THE_COMMAND") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestTheCommandPrintsThePathOrTheReasonAndFails(t *testing.T) {
	secret, _ := keyring(t)
	dir, out := repository(t), t.TempDir()
	add(t, dir, "chart/values.yaml", "a: 2\n")
	command := func(more ...string) (said, problems string, err error) {
		process := exec.Command(os.Args[0], append([]string{"-chart", filepath.Join(dir, "chart"), "-out", out}, more...)...)
		process.Dir, process.Env = t.TempDir(), append(os.Environ(), "IS_THE_COMMAND=1")
		var stdout, stderr bytes.Buffer
		process.Stdout, process.Stderr = &stdout, &stderr
		err = process.Run()
		return stdout.String(), stderr.String(), err
	}
	said, problems, err := command("-allow-dirty", "-version", "1.2.3", "-sign-key", "release", "-keyring", secret)
	require.NoError(t, err, problems)
	assert.Equal(t, filepath.Join(out, "demo-1.2.3.tgz")+"\n", said)
	assert.FileExists(t, filepath.Join(out, "demo-1.2.3.tgz.prov"))

	said, problems, err = command()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 1, exit.ExitCode())
	assert.Empty(t, said)
	assert.Contains(t, problems, "package: the tree has changes")
	assert.Contains(t, problems, "chart/values.yaml")
}

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
	assert.Equal(t, pack("1767225600"), pack(""), "without it, the time of the commit")
	for _, date := range []struct{ epoch, says string }{
		{"yesterday", "SOURCE_DATE_EPOCH"},
		{"99999999999", "5138-11-16"}, // no archive holds it
	} {
		t.Setenv("SOURCE_DATE_EPOCH", date.epoch)
		_, err := bundle(options{chart: filepath.Join(dir, "chart"), out: t.TempDir()}, io.Discard)
		assert.ErrorContains(t, err, date.says)
	}
}

func TestTheArchiveIsAChartOfThatVersionWithItsChecksumBeside(t *testing.T) {
	archive, err := bundle(options{chart: filepath.Join(repository(t), "chart"), out: t.TempDir(), version: "1.2.3-rc.1+build.5"}, io.Discard)
	require.NoError(t, err)
	chart, err := loader.LoadFile(archive)
	require.NoError(t, err)
	assert.Equal(t, "1.2.3-rc.1+build.5", chart.Metadata.Version)
	unzipped, err := gzip.NewReader(bytes.NewReader(read(t, archive)))
	require.NoError(t, err)
	assert.Equal(t, "Helm", unzipped.Comment, "by which Helm's archives are known")
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

func TestWhatIsNoWholeChartInACommitIsRefusedByName(t *testing.T) {
	long := strings.Repeat("long", 100)
	for name, c := range map[string]struct {
		does, says string // to the repository, in a shell
	}{
		"a folder outside of a repository":         {"rm -rf .git", "not a git repository"},
		"a repository without a commit":            {"rm -rf .git && git init --quiet", "HEAD"},
		"a repository that git can't read":         {"echo broken >.git/index", "git status"},
		"a chart that is not committed":            {"git rm -r --quiet --cached chart && $COMMIT && echo chart >.git/info/exclude", "no file in"},
		"a link":                                   {"ln -s /etc/hostname chart/link.txt && git add . && $COMMIT", "chart/link.txt"},
		"a submodule":                              {"mkdir chart/sub && git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),chart/sub && $COMMIT", "chart/sub"},
		"a folder whose list is missing":           {"tree=$(git rev-parse HEAD:chart) && rm -f .git/objects/${tree%${tree#??}}/${tree#??}", "git ls-tree"},
		"a file whose content is missing":          {"file=$(git rev-parse HEAD:chart/values.yaml) && rm -f .git/objects/${file%${file#??}}/${file#??}", "git cat-file"},
		"a file whose name no file system holds":   {"$LONG,chart/" + long + " && $COMMIT && git update-index --skip-worktree chart/" + long, long},
		"a folder whose name no file system holds": {"$LONG,chart/" + long + "/a && $COMMIT && git update-index --skip-worktree chart/" + long + "/a", long},
		"a chart that Helm can't read":             {"git rm --quiet chart/Chart.yaml && $COMMIT", "Chart.yaml"},
		"a chart that Helm can't write":            {"echo broken >chart/values.schema.json && git add . && $COMMIT", "values.schema.json"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := repository(t)
			run(t, dir, "sh", "-ec", strings.NewReplacer(
				"$COMMIT", "git -c user.name=test -c user.email=test@example.org commit --quiet --message more",
				"$LONG", "git update-index --add --cacheinfo 100644,$(git rev-parse HEAD:chart/values.yaml)",
			).Replace(c.does))
			assertRefused(t, dir, c.says)
		})
	}
}

func TestARepositoryWhoseTopIsTheChartIsRefusedWhileItIsEmpty(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "git", "init", "--quiet", "chart")
	run(t, filepath.Join(dir, "chart"), "git", "-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "--quiet", "--allow-empty", "--message", "nothing")
	assertRefused(t, dir, "has no file in")
	add(t, dir, "chart/Chart.yaml", "apiVersion: v2\nname: demo\nversion: 0.1.0\n")
	commitAll(t, filepath.Join(dir, "chart"))
	_, err := bundle(options{chart: filepath.Join(dir, "chart"), out: t.TempDir()}, io.Discard)
	assert.NoError(t, err)
}

func TestWhereNothingCanBeWrittenNothingIsAndTheFolderIsNamed(t *testing.T) {
	dir, out := repository(t), t.TempDir()
	o := options{chart: filepath.Join(dir, "chart"), out: filepath.Join(dir, "chart/values.yaml/out")}
	_, err := bundle(o, io.Discard)
	var refused *os.PathError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, filepath.Join(dir, "chart/values.yaml"), refused.Path)
	add(t, out, "demo-0.1.0.tgz/file", "in the place of the archive")
	o.out = out
	_, err = bundle(o, io.Discard)
	require.ErrorContains(t, err, filepath.Join(out, "demo-0.1.0.tgz"))
	assert.NoFileExists(t, filepath.Join(out, "demo-0.1.0.tgz.sha256"))

	work := t.TempDir()
	t.Chdir(work)
	t.Setenv("TMPDIR", work)
	_, err = bundle(options{chart: o.chart, out: t.TempDir()}, io.Discard)
	require.NoError(t, err)
	assertEmpty(t, work)
	t.Setenv("TMPDIR", filepath.Join(work, "missing"))
	_, err = bundle(o, io.Discard)
	require.ErrorContains(t, err, filepath.Join(work, "missing"))
}

func TestAnArchiveThatIsNoneIsNotRewritten(t *testing.T) {
	zipped := func(write func(io.Writer)) string {
		var out bytes.Buffer
		zipper := gzip.NewWriter(&out)
		write(zipper)
		require.NoError(t, zipper.Close())
		return out.String()
	}
	dir := t.TempDir()
	add(t, dir, "no gzip", "a text of more than ten bytes")
	add(t, dir, "no tar", zipped(func(to io.Writer) { fmt.Fprint(to, strings.Repeat("text", 200)) }))
	add(t, dir, "half a file", zipped(func(to io.Writer) {
		assert.NoError(t, tar.NewWriter(to).WriteHeader(&tar.Header{Name: "a", Size: 10, Mode: 0o644}))
	}))
	for name, want := range map[string]error{"no gzip": gzip.ErrHeader, "no tar": tar.ErrHeader, "half a file": io.ErrUnexpectedEOF, "missing": os.ErrNotExist} {
		_, err := reproducible(filepath.Join(dir, name), time.Unix(0, 0))
		assert.ErrorIs(t, err, want, name)
	}
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

}

func TestWhatCanNotBeSignedIsNotPackaged(t *testing.T) {
	secret, public := keyring(t)
	locked := filepath.Join(t.TempDir(), "locked.gpg")
	entity, err := openpgp.NewEntity("release", "", "release@example.org", nil)
	require.NoError(t, err)
	require.NoError(t, entity.PrivateKey.Encrypt([]byte("opens it")))
	var key bytes.Buffer
	require.NoError(t, entity.SerializePrivateWithoutSigning(&key, nil))
	require.NoError(t, os.WriteFile(locked, key.Bytes(), 0o600))
	for name, c := range map[string]struct{ key, keyring, passphrase, says string }{
		"no key ring":          {"release", "", "", "SIGN_KEYRING is not"},
		"no such key ring":     {"release", secret + ".missing", "", "SIGN_KEYRING " + secret + ".missing"},
		"a public key":         {"release", public, "", "SIGN_KEY release"},
		"a wrong passphrase":   {"release", locked, "doesn't", "SIGN_KEY release"},
		"the right passphrase": {"release", locked, "opens it", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SIGN_PASSPHRASE", c.passphrase)
			o := options{chart: filepath.Join(repository(t), "chart"), out: t.TempDir(), signKey: c.key, keyring: c.keyring}
			_, err := bundle(o, io.Discard)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
			assertEmpty(t, o.out)
		})
	}
	for archive, content := range map[string]string{filepath.Join(t.TempDir(), "demo.tgz"): "no chart", filepath.Join(t.TempDir(), "missing/demo.tgz"): ""} {
		_, err := sign(archive, []byte(content), options{signKey: "release", keyring: secret})
		assert.Error(t, err, archive)
	}
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
	run(t, dir, "env", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z", "git", "-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "--quiet", "--message", "a chart")
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

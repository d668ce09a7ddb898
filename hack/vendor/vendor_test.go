package main

// Writes the folder as a platform's engineer would, with all that can be in the way there.

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
)

const shipped = "../../charts/kubevirt"

// called runs the command in process.
func called(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(args, &out, &errs)
	return status, out.String(), errs.String()
}

// small is a chart with few files, which the test may change.
func small(t *testing.T) string {
	t.Helper()
	chart := filepath.Join(t.TempDir(), "chart")
	for _, name := range []string{"Chart.yaml", "values.yaml", "values.schema.json", "README.md", ".helmignore", "templates/cr.yaml", "tests/cr_test.yaml", "tests/values/odd.yaml", "ci/full-values.yaml"} {
		write(t, filepath.Join(chart, name), "# "+name+"\n")
	}
	git(t, chart, "init", "--quiet")
	git(t, chart, "add", ".")
	return chart
}

func git(t *testing.T, dir string, arguments ...string) {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, arguments...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

func text(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(content)
}

// vendored writes the chart into a new folder.
func vendored(t *testing.T, chart string) string {
	t.Helper()
	dest := filepath.Join(t.TempDir(), "packages", "system", "kubevirt")
	status, _, errs := called("-chart", chart, dest)
	require.Zero(t, status, errs)
	return dest
}

// state is every file of a folder with its content and time.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && entry.Name() != ".git" {
			return err
		}
		if entry.IsDir() {
			return fs.SkipDir
		}
		info, err := entry.Info()
		files[name] = info.ModTime().String() + text(t, name)
		return err
	}))
	return files
}

// age dates a folder's files back, so that a file that is written again can be told from one that is not.
func age(t *testing.T, dir string) {
	t.Helper()
	past := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for name := range state(t, dir) {
		require.NoError(t, os.Chtimes(name, past, past))
	}
}

var passed = regexp.MustCompile(`Test Suites: ([1-9][0-9]*) passed, ([0-9]+) total`)

func TestTheFoldersOwnSuitesPassAsTheRepositorysRunnerCallsThem(t *testing.T) {
	unittest, err := filepath.Abs("../../bin/helm-unittest")
	require.NoError(t, err)
	if named := os.Getenv("HELM_UNITTEST"); named != "" {
		unittest = named
	}
	require.FileExists(t, unittest, "run make tools")
	dest := vendored(t, shipped)
	suites, err := filepath.Glob(shipped + "/tests/*_test.yaml")
	require.NoError(t, err)
	for range 2 {
		runner := exec.Command("make", "-C", dest, "test", "HELM_UNITTEST="+unittest)
		runner.Env = append(os.Environ(), "MAKEFLAGS=", "MFLAGS=")
		out, err := runner.CombinedOutput()
		require.NoError(t, err, "%s", out)
		found := passed.FindSubmatch(out)
		require.NotNil(t, found, "%s", out)
		assert.Equal(t, strconv.Itoa(len(suites)), string(found[1]))
		assert.Equal(t, string(found[1]), string(found[2]))

		// Once more after a change of the package, which was written to the folder again.
		chart := filepath.Join(t.TempDir(), "chart")
		require.NoError(t, os.CopyFS(chart, os.DirFS(shipped)))
		write(t, filepath.Join(chart, "tests", "added_test.yaml"), "suite: added\ntemplates: [templates/kubevirt-cr.yaml]\ntests:\n- it: renders\n  asserts:\n  - isKind: {of: KubeVirt}\n")
		git(t, chart, "init", "--quiet")
		git(t, chart, "add", ".")
		suites = append(suites, "added_test.yaml")
		status, said, errs := called("-chart", chart, dest)
		require.Zero(t, status, errs)
		assert.NotContains(t, said, "not ours", "the folder that helm unittest leaves is empty")
	}
}

func TestTheMakefileExportsTheReleaseAndItsNamespace(t *testing.T) {
	dest := vendored(t, small(t))
	write(t, filepath.Join(dest, "../../../hack/package.mk"), "show:\n\t@echo $$NAME in $$NAMESPACE\n")
	show := exec.Command("make", "-s", "-C", dest, "show")
	show.Env = append(os.Environ(), "MAKEFLAGS=", "MFLAGS=")
	out, err := show.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "kubevirt in cozy-kubevirt\n", string(out))
}

func TestTheRecordIsWhatSha256sumChecks(t *testing.T) {
	dest := vendored(t, small(t))
	sums := exec.Command("sha256sum", "--check", "--strict", recordName)
	sums.Dir = dest
	out, err := sums.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, len(state(t, dest))-1, strings.Count(string(out), ": OK"))
}

func TestASecondRunTouchesOnlyWhatChanged(t *testing.T) {
	chart := small(t)
	dest := vendored(t, chart)
	age(t, dest)
	before := state(t, dest)
	status, out, errs := called("-chart", chart, dest)
	require.Zero(t, status, errs)
	assert.Equal(t, before, state(t, dest))
	assert.Equal(t, dest+": 10 files, 0 written, 0 deleted, 10 unchanged\n", out)

	write(t, filepath.Join(chart, "values.yaml"), "# changed\n")
	status, out, errs = called("-chart", chart, dest)
	require.Zero(t, status, errs)
	assert.Equal(t, "wrote values.yaml\n"+dest+": 10 files, 1 written, 0 deleted, 9 unchanged\n", out)
	after := state(t, dest)
	for _, name := range []string{"values.yaml", recordName} {
		assert.NotEqual(t, before[filepath.Join(dest, name)], after[filepath.Join(dest, name)], name)
		delete(before, filepath.Join(dest, name))
		delete(after, filepath.Join(dest, name))
	}
	assert.Equal(t, before, after)
}

func TestAFileThatIsNotOursIsNamedAndLeftAlone(t *testing.T) {
	chart := small(t)
	dest := vendored(t, chart)
	for _, name := range []string{"images/a/Dockerfile", "images/b/Dockerfile", "templates/platform.yaml", "OWNERS"} {
		write(t, filepath.Join(dest, name), "theirs\n")
	}
	age(t, dest)
	before := state(t, dest)
	status, out, errs := called("-chart", chart, "-force", dest)
	require.Zero(t, status, errs)
	assert.Equal(t, before, state(t, dest))
	assert.Contains(t, out, "not ours, left alone: OWNERS\nnot ours, left alone: images/\nnot ours, left alone: templates/platform.yaml (Helm takes it into the release)\n")
}

func TestASuiteThatIsNotOursIsSaidToRunWithOurs(t *testing.T) {
	chart := small(t)
	dest := vendored(t, chart)
	write(t, filepath.Join(dest, "tests/older_test.yaml"), "theirs\n")
	_, out, _ := called("-chart", chart, dest)
	assert.Contains(t, out, "not ours, left alone: tests/older_test.yaml (helm unittest runs it with ours)\n")
}

func TestAFileThatThePackageDropsIsDeletedWithItsEmptyFolder(t *testing.T) {
	chart := small(t)
	dest := vendored(t, chart)
	require.NoError(t, os.RemoveAll(filepath.Join(chart, "tests", "values")))
	status, out, errs := called("-chart", chart, dest)
	require.Zero(t, status, errs)
	assert.NoDirExists(t, filepath.Join(dest, "tests", "values"))
	assert.FileExists(t, filepath.Join(dest, "tests", "cr_test.yaml"))
	assert.Contains(t, out, "deleted tests/values/odd.yaml\ndeleted tests/values/\n")
	assert.NotContains(t, text(t, filepath.Join(dest, recordName)), "odd.yaml")
}

func TestADroppedFileThatSomebodyChangedIsNamedAndKept(t *testing.T) {
	for name, change := range map[string]func(file string){
		"edited":                func(file string) { write(t, file, "edited\n") },
		"a folder in its place": func(file string) { require.NoError(t, os.Remove(file)); write(t, filepath.Join(file, "a"), "theirs\n") },
		"a link in its place":   func(file string) { require.NoError(t, os.Remove(file)); require.NoError(t, os.Symlink("x", file)) },
	} {
		t.Run(name, func(t *testing.T) {
			chart := small(t)
			write(t, filepath.Join(chart, "tests/values/odd.yaml"), "")
			dest := vendored(t, chart)
			dropped := filepath.Join(dest, "tests/values/odd.yaml")
			change(dropped)
			require.NoError(t, os.Remove(filepath.Join(chart, "tests/values/odd.yaml")))
			status, out, errs := called("-chart", chart, "-force", dest)
			require.Zero(t, status, errs)
			assert.Contains(t, out, "no longer the package's, and changed here, left alone: tests/values/odd.yaml\n")
			_, err := os.Lstat(dropped)
			require.NoError(t, err)

			status, out, errs = called("-chart", chart, dest)
			require.Zero(t, status, errs)
			assert.Contains(t, out, "not ours, left alone: tests/values/\n")
		})
	}
}

func TestWhatSomebodyChangedIsRefusedWholeAndOverwrittenWithForce(t *testing.T) {
	for name, c := range map[string]struct {
		change func(chart, dest string)
		want   string
	}{
		"a file of ours": {func(_, dest string) { write(t, filepath.Join(dest, "templates/cr.yaml"), "edited\n") },
			"templates/cr.yaml was changed since make vendor wrote it"},
		"a file that was there before": {func(chart, dest string) {
			write(t, filepath.Join(dest, "templates/new.yaml"), "theirs\n")
			write(t, filepath.Join(chart, "templates/new.yaml"), "ours\n")
			git(t, chart, "add", ".")
		}, "templates/new.yaml was there before, and is not the package's"},
	} {
		t.Run(name, func(t *testing.T) {
			chart := small(t)
			dest := vendored(t, chart)
			c.change(chart, dest)
			write(t, filepath.Join(chart, "Chart.yaml"), "# the next version\n")
			before := state(t, dest)
			status, out, errs := called("-chart", chart, dest)
			assert.Equal(t, 1, status)
			assert.Empty(t, out)
			first, rest, _ := strings.Cut(errs, "\n")
			assert.Contains(t, first, "nothing was written; keep elsewhere what you need of the files below, then let FORCE=1 overwrite them (1):")
			assert.Equal(t, "  "+c.want+"\n", rest)
			assert.Equal(t, before, state(t, dest))

			status, _, errs = called("-chart", chart, "-force", dest)
			require.Zero(t, status, errs)
			assert.Equal(t, contentsOf(t, vendored(t, chart)), contentsOf(t, dest), "not what a new folder has")
		})
	}
}

func TestAFolderThatWasThereWithoutARecordIsRefused(t *testing.T) {
	chart := small(t)
	dest := t.TempDir()
	write(t, filepath.Join(dest, "Makefile"), "theirs\n")
	write(t, filepath.Join(dest, "values.yaml"), "theirs\n")
	write(t, filepath.Join(dest, "tests/kubevirt_cr_test.yaml"), "theirs\n")
	status, _, errs := called("-chart", chart, dest)
	assert.Equal(t, 1, status)
	_, rest, _ := strings.Cut(errs, "\n")
	assert.Equal(t, "  Makefile was there before, and is not the package's\n  values.yaml was there before, and is not the package's\n", rest)
	assert.Len(t, state(t, dest), 3)
}

// made runs make vendor in this repository, as a maintainer does.
func made(t *testing.T, environment []string, arguments ...string) ([]byte, error) {
	t.Helper()
	command := exec.Command("make", append([]string{"-C", "../..", "vendor"}, arguments...)...)
	command.Env = append(os.Environ(), "MAKEFLAGS=", "MFLAGS=", "MAKELEVEL=", "CHART=charts/kubevirt", "DEST=", "FORCE=")
	command.Env = append(command.Env, environment...)
	return command.CombinedOutput()
}

func TestAPathMayHoldWhatTheShellWouldInterpret(t *testing.T) {
	name := "a folder; touch `id` $(HOME) 'x' \" #"
	for from, call := range map[string]func(dest string) ([]byte, error){
		"the environment":  func(dest string) ([]byte, error) { return made(t, []string{"DEST=" + dest}) },
		"the command line": func(dest string) ([]byte, error) { return made(t, nil, "DEST="+dest) },
	} {
		folder := t.TempDir()
		out, err := call(filepath.Join(folder, name))
		require.NoError(t, err, "%s: %s", from, out)
		assert.FileExists(t, filepath.Join(folder, name, "Chart.yaml"), from)
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		assert.Len(t, entries, 1, from)
	}
}

func TestMakeNeedsADestinationAndForcesOnlyWhereToldTo(t *testing.T) {
	out, err := made(t, nil)
	require.Error(t, err)
	assert.Contains(t, string(out), "DEST is not set; name the folder to write")

	dest := t.TempDir()
	for _, force := range []string{"", "0", "1"} {
		write(t, filepath.Join(dest, "Makefile"), "theirs\n")
		out, err := made(t, nil, "DEST="+dest, "FORCE="+force)
		assert.Equal(t, force == "1", err == nil, "FORCE=%s: %s", force, out)
		assert.Equal(t, force != "1", text(t, filepath.Join(dest, "Makefile")) == "theirs\n", "FORCE=%s: %s", force, out)
	}
}

func TestALinkToAFolderIsWrittenThrough(t *testing.T) {
	chart := small(t)
	folder := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(folder, link))
	status, _, errs := called("-chart", chart, link)
	require.Zero(t, status, errs)
	assert.Equal(t, contentsOf(t, vendored(t, chart)), contentsOf(t, folder))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&fs.ModeSymlink)
}

func TestAnArchiveOfTheFolderHoldsWhatOursHolds(t *testing.T) {
	ours, err := loader.LoadDir(shipped)
	require.NoError(t, err)
	theirs, err := loader.LoadDir(vendored(t, shipped))
	require.NoError(t, err)
	assert.NotEmpty(t, ours.Raw)
	assert.Equal(t, ours.Raw, theirs.Raw)
}

func TestADestinationThatCannotBeRightIsRefused(t *testing.T) {
	chart := small(t)
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	into := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(filepath.Join(chart, "templates"), into))
	dangling := filepath.Join(t.TempDir(), "dangling")
	require.NoError(t, os.Symlink("nowhere", dangling))
	before := state(t, filepath.Dir(chart))
	for dest, want := range map[string]string{
		"":                                    "DEST is not set",
		file:                                  "is a file, expected a folder",
		filepath.Join(file, "below"):          "nothing was written",
		chart:                                 "lie in one another",
		filepath.Join(chart, "templates/new"): "lie in one another",
		filepath.Dir(chart):                   "lie in one another",
		filepath.Join(into, "new"):            "lie in one another",
		dangling:                              "is a link to nothing",
	} {
		status, _, errs := called("-chart", chart, "-force", dest)
		assert.Equal(t, 1, status, dest)
		assert.Contains(t, errs, want)
	}
	assert.Equal(t, before, state(t, filepath.Dir(chart)))
	for _, args := range [][]string{{}, {"a", "b"}, {"-no-such-flag"}} {
		status, _, errs := called(args...)
		assert.Equal(t, 2, status)
		assert.Contains(t, errs, "usage: vendor")
	}
}

func TestAllThatStandsInTheWayIsNamedAtOnceAndNeverForced(t *testing.T) {
	chart := small(t)
	dest := t.TempDir()
	require.NoError(t, os.Symlink("elsewhere", filepath.Join(dest, "README.md")))
	write(t, filepath.Join(dest, "values.yaml/file"), "theirs\n")
	write(t, filepath.Join(dest, "tests"), "theirs\n")
	write(t, filepath.Join(dest, "Makefile"), "theirs\n")
	for _, args := range [][]string{{"-chart", chart, dest}, {"-chart", chart, "-force", dest}} {
		status, out, errs := called(args...)
		assert.Equal(t, 1, status)
		assert.Empty(t, out)
		assert.Equal(t, "DEST "+dest+": nothing was written; move away what stands in the way (4):\n"+
			"  README.md is a link, expected a file\n  tests is a file, expected a folder\n"+
			"  values.yaml is a folder, expected a file\n  Makefile was there before, and is not the package's\n", errs)
		entries, err := os.ReadDir(dest)
		require.NoError(t, err)
		assert.Len(t, entries, 4)
	}
}

func TestNothingIsWrittenOrDeletedOutsideTheFolder(t *testing.T) {
	chart := small(t)
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, filepath.Join(outside, "cr.yaml"), "theirs\n")
	t.Run("through a link", func(t *testing.T) {
		dest := t.TempDir()
		require.NoError(t, os.Symlink(outside, filepath.Join(dest, "templates")))
		status, _, errs := called("-chart", chart, "-force", dest)
		assert.Equal(t, 1, status)
		assert.Contains(t, errs, "\n  templates is a link, expected a folder\n")
	})
	t.Run("through a record that is a link", func(t *testing.T) {
		dest := t.TempDir()
		require.NoError(t, os.Symlink(filepath.Join(outside, "cr.yaml"), filepath.Join(dest, recordName)))
		status, _, errs := called("-chart", chart, "-force", dest)
		assert.Equal(t, 1, status)
		assert.Contains(t, errs, recordName+" is a link, expected a file; move it away")
	})
	t.Run("by a record that somebody wrote", func(t *testing.T) {
		dest := vendored(t, chart)
		write(t, filepath.Join(dest, recordName), checksum([]byte("theirs\n"))+"  ../outside/cr.yaml\n")
		status, _, errs := called("-chart", chart, "-force", dest)
		assert.Equal(t, 1, status)
		assert.Contains(t, errs, recordName+":1: found ")
	})
	assert.Equal(t, "theirs\n", text(t, filepath.Join(outside, "cr.yaml")))
}

// A run that is interrupted after any number of files leaves a folder with which the next one copes.
func TestAnInterruptedRunIsRepeated(t *testing.T) {
	chart := small(t)
	old := vendored(t, chart)
	write(t, filepath.Join(chart, "Chart.yaml"), "# the next version\n")
	write(t, filepath.Join(chart, "templates/cr.yaml"), "# the next version\n")
	require.NoError(t, os.RemoveAll(filepath.Join(chart, "tests/values")))
	whole := contentsOf(t, vendored(t, chart))
	steps := []func(dest string) error{
		func(dest string) error { return os.WriteFile(filepath.Join(dest, ".cr.yaml123"), []byte("ha"), 0o600) },
		func(dest string) error {
			return os.WriteFile(filepath.Join(dest, "Chart.yaml"), []byte("# the next version\n"), 0o644)
		},
		func(dest string) error {
			return os.WriteFile(filepath.Join(dest, "templates/cr.yaml"), []byte("# the next version\n"), 0o644)
		},
		func(dest string) error { return os.Remove(filepath.Join(dest, "tests/values/odd.yaml")) },
	}
	for done := range len(steps) + 1 {
		dest := filepath.Join(t.TempDir(), "dest")
		require.NoError(t, os.CopyFS(dest, os.DirFS(old)))
		for _, step := range steps[:done] {
			require.NoError(t, step(dest))
		}
		status, out, errs := called("-chart", chart, dest)
		require.Zero(t, status, errs)
		assert.NotContains(t, out, "not ours")
		assert.Equal(t, whole, contentsOf(t, dest))
	}
	first := t.TempDir() // a first run, which has no record yet
	write(t, filepath.Join(first, "Chart.yaml"), "# the next version\n")
	status, _, errs := called("-chart", chart, first)
	require.Zero(t, status, errs)
	assert.Equal(t, whole, contentsOf(t, first))
}

// A limit on the size of files stands for all that can fail between the first file and the last.
func TestARunThatFailsOnTheWaySaysSoAndLeavesTheRecordForTheNext(t *testing.T) {
	chart := small(t)
	dest := vendored(t, chart)
	before := contentsOf(t, dest)
	write(t, filepath.Join(chart, "Chart.yaml"), "# the next version\n")
	write(t, filepath.Join(chart, "values.yaml"), strings.Repeat("# the next version\n", 1000))

	var unlimited syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &unlimited))
	limited := unlimited
	limited.Cur = 4096
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limited))
	status, out, errs := called("-chart", chart, dest)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &unlimited))

	assert.Equal(t, 1, status)
	assert.Equal(t, "wrote Chart.yaml\n", out)
	assert.Contains(t, errs, "run make vendor again")
	after := contentsOf(t, dest)
	assert.Equal(t, "# the next version\n", after["Chart.yaml"])
	after["Chart.yaml"] = before["Chart.yaml"]
	assert.Equal(t, before, after)

	status, _, errs = called("-chart", chart, dest)
	require.Zero(t, status, errs)
	assert.Equal(t, contentsOf(t, vendored(t, chart)), contentsOf(t, dest))
}

// contentsOf is every file of a folder by its path in it.
func contentsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for name := range state(t, dir) {
		rel, err := filepath.Rel(dir, name)
		require.NoError(t, err)
		files[rel] = text(t, name)
	}
	return files
}

func TestAChartThatCannotBeReadWritesNothing(t *testing.T) {
	for _, lost := range []string{"Chart.yaml", "templates", "tests"} {
		chart := small(t)
		require.NoError(t, os.RemoveAll(filepath.Join(chart, lost)))
		dest := filepath.Join(t.TempDir(), "dest")
		status, _, errs := called("-chart", chart, dest)
		assert.Equal(t, 1, status)
		assert.Contains(t, errs, "nothing was written")
		assert.NoDirExists(t, dest)
	}
}

func TestWhatGitDoesNotTrackStaysAtHome(t *testing.T) {
	chart := small(t)
	write(t, filepath.Join(chart, ".gitignore"), "/tests/__snapshot__/\n")
	git(t, chart, "add", ".")
	for _, name := range []string{"templates/.cr.yaml123", "templates/cr.yaml~", "tests/__snapshot__/x", "secret.yaml"} {
		write(t, filepath.Join(chart, name), "")
	}
	write(t, filepath.Join(chart, "README.md.gotmpl"), "")
	write(t, filepath.Join(chart, "crds/added.yaml"), "")
	git(t, chart, "add", "README.md.gotmpl", "crds")
	dest := filepath.Join(t.TempDir(), "dest")
	status, out, errs := called("-chart", chart, dest)
	require.Zero(t, status, errs)
	names := slices.Sorted(maps.Keys(contentsOf(t, dest)))
	assert.Equal(t, []string{".gitignore", ".helmignore", recordName, "Chart.yaml", "Makefile", "README.md", "ci/full-values.yaml", "crds/added.yaml", "templates/cr.yaml", "tests/cr_test.yaml", "tests/values/odd.yaml", "values.schema.json", "values.yaml"}, names)
	for _, name := range []string{"secret.yaml", "templates/.cr.yaml123", "templates/cr.yaml~"} {
		assert.Contains(t, out, "git does not track it, left out: "+filepath.Join(chart, name)+"\n")
	}
	assert.NotContains(t, out, "__snapshot__")
}

func TestAChartOutsideOfGitIsRefused(t *testing.T) {
	chart := small(t)
	require.NoError(t, os.RemoveAll(filepath.Join(chart, ".git")))
	dest := filepath.Join(t.TempDir(), "dest")
	status, _, errs := called("-chart", chart, dest)
	assert.Equal(t, 1, status)
	assert.Contains(t, errs, "run make vendor in a git clone")
	assert.NoDirExists(t, dest)
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test binary is also the worker that it starts.
func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	if os.Getenv(workerVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const fixture = "testdata/chart"

func places(all []judged) []string {
	var found []string
	for _, j := range all {
		found = append(found, fmt.Sprintf("%s:%d %s", j.File, j.Line, j.Kind))
	}
	return found
}

func TestFindsExactlyWhatTheSuiteLeavesOpen(t *testing.T) {
	found, err := mutate(fixture, "tests/*_test.yaml", 2, func(int, int) {})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"templates/config.yaml:7 drop-default",
		"templates/config.yaml:7 change-scalar",
		"templates/config.yaml:8 delete-line",
		"templates/config.yaml:8 change-scalar",
		"templates/config.yaml:8 change-scalar",
		"values.schema.json:4 drop-property",
		"values.schema.json:4 drop-type",
		"values.schema.json:4 widen-type",
		"values.schema.json:4 widen-type",
		"values.schema.json:4 drop-maximum",
		"values.schema.json:4 off-by-one",
		"values.schema.json:5 drop-type",
		"values.schema.json:5 widen-type",
		"values.schema.json:5 widen-type",
		"values.schema.json:5 unanchor-pattern",
		"values.schema.json:5 unanchor-pattern",
	}, places(found.Survivors))
	assert.Equal(t, []string{
		"templates/config.yaml:6 delete-line",
		"values.schema.json:2 drop-type",
		"values.schema.json:2 widen-type",
		"values.yaml:2 delete-line",
	}, places(found.Equivalent))
	assert.Positive(t, found.Killed)
	assert.Equal(t, found.Mutants, found.Killed+len(found.Survivors))
	for _, j := range found.Survivors {
		assert.NotEmpty(t, j.Witness, "%s:%d %s", j.File, j.Line, j.Kind)
	}
}

// copyOf is the fixture in a folder of its own, without the lines that hold one of the given texts and
// with more lines at the end of the suite.
func copyOf(t *testing.T, more string, without ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "chart")
	require.NoError(t, os.CopyFS(dir, os.DirFS(fixture)))
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var kept strings.Builder
		for line := range strings.Lines(string(data)) {
			if !slices.ContainsFunc(without, func(text string) bool { return strings.Contains(line, text) }) {
				kept.WriteString(line)
			}
		}
		if strings.HasSuffix(path, "_test.yaml") {
			kept.WriteString(more)
		}
		return os.WriteFile(path, []byte(kept.String()), 0o644)
	}))
	return dir
}

func TestExitsZeroOnceNothingIsLeftOpen(t *testing.T) {
	dir := copyOf(t, "", "loose")
	require.NoError(t, os.Remove(filepath.Join(dir, "values.schema.json")))
	// Without a schema "1" is rendered, and without a default there is none to pin.
	edit(t, filepath.Join(dir, "tests/config_test.yaml"), "      - failedTemplate:\n          errorPattern: \"at '/extra'\"\n", "      - equal: {path: data.extra, value: 1}\n")
	edit(t, filepath.Join(dir, "templates/config.yaml"), " | default 3", "")
	var out, problems strings.Builder
	assert.Equal(t, 0, run([]string{dir}, &out, &problems), out.String()+problems.String())
	assert.Regexp(t, `^mutate: killed (\d+) of \d+ by 4 cases in 1 suite files`, out.String())
}

func edit(t *testing.T, path, before, after string) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(data), before)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(data), before, after, 1)), 0o644))
}

func TestExitsOneAndShowsTheChangeOfASurvivor(t *testing.T) {
	var out, problems strings.Builder
	assert.Equal(t, 1, run([]string{fixture}, &out, &problems), problems.String())
	assert.Contains(t, out.String(), "testdata/chart/templates/config.yaml:8: survived change-scalar\n-  loose: a\n+  loose: mutant\n")
	assert.NotContains(t, out.String(), ": equivalent")
}

func TestListsEquivalentChangesWithTheirReasonOnRequest(t *testing.T) {
	var out, problems strings.Builder
	assert.Equal(t, 1, run([]string{"-v", fixture}, &out, &problems), problems.String())
	assert.Contains(t, out.String(), "config.yaml:6: equivalent delete-line\n-  {{- /* A comment renders nothing. */}}\n  the same template once parsed")
	assert.Contains(t, out.String(), "by config_test.yaml: takes something extra")
}

func TestPrintsTheReportAsJSON(t *testing.T) {
	var out, problems strings.Builder
	assert.Equal(t, 1, run([]string{"-json", fixture}, &out, &problems), problems.String())
	var read report
	require.NoError(t, json.Unmarshal([]byte(out.String()), &read))
	assert.Equal(t, read.Mutants, read.Killed+len(read.Survivors))
	assert.Equal(t, "templates/config.yaml", read.Survivors[0].File)
}

func TestRefusesAChartWhoseSuitesCannotNoticeAnything(t *testing.T) {
	red := "  - it: is red\n    asserts:\n      - equal: {path: data.loose, value: b}\n"
	tests := map[string]struct{ dir, args, want string }{
		"that has none":                 {copyOf(t, ""), "-suites=tests/*_none.yaml", "no case to run"},
		"that is red":                   {copyOf(t, red), "-v", "a case fails on the chart as it is, alone at least, so it can notice nothing: config_test.yaml: is red"},
		"that has an unknown assertion": {copyOf(t, "  - it: is wrong\n    asserts:\n      - equals: {path: a, value: b}\n"), "-v", "Assertion type `equals` is invalid"},
		"that does not exist":           {"testdata/none", "-v", "testdata/none"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out, problems strings.Builder
			assert.Equal(t, 2, run([]string{test.args, test.dir}, &out, &problems))
			assert.Contains(t, problems.String(), test.want)
			assert.Empty(t, out.String())
		})
	}
}

func TestWritesNothingIntoTheChart(t *testing.T) {
	dir := copyOf(t, "")
	before := tree(t, dir)
	_, err := mutate(dir, "tests/*_test.yaml", 1, func(int, int) {})
	require.NoError(t, err)
	assert.Equal(t, before, tree(t, dir))
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			var data []byte
			data, err = os.ReadFile(path)
			files[path] = string(data)
		} else {
			files[path] = "a folder"
		}
		return err
	}))
	return files
}

func TestAnswersAnUnknownFlagWithTheHelp(t *testing.T) {
	var out, problems strings.Builder
	assert.Equal(t, 2, run([]string{"-nonsense"}, &out, &problems))
	assert.Contains(t, problems.String(), "What is not:")
}

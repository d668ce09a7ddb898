package targets_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tests is what a stand-in for gotestsum does that ran some tests, of which some were skipped: it writes the report.
func tests(run, skipped int) string {
	entry := ""
	if skipped > 0 {
		entry = `<testcase name="TestX"><skipped message="no"/></testcase>`
	}
	return fmt.Sprintf(`for a; do [ "$last" != --junitfile ] || echo '<testsuites tests="%d">%s</testsuites>' >"$a"; last=$a; done
`, run, entry)
}

func TestARunThatRanNoTestOrSkippedOneFails(t *testing.T) {
	for name, c := range map[string]struct {
		does, says string
		fails      bool
	}{
		"a test ran":         {does: tests(1, 0)},
		"no test ran":        {does: tests(0, 0), says: "no test was run", fails: true},
		"a test was skipped": {does: tests(2, 1), says: "a test was skipped", fails: true},
		"no report came":     {does: "", says: "no report", fails: true},
		"a test failed":      {does: tests(1, 0) + "exit 1", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := stubbed(t, hostileFolder)
			// What an earlier run left must not speak for this one.
			require.NoError(t, os.MkdirAll(filepath.Join(r.dir, "_out"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(r.dir, "_out/junit-name.xml"), []byte(`<testsuites tests="9"></testsuites>`), 0o600))
			stub(t, filepath.Join(r.dir, "bin/gotestsum"), c.does)
			said, err := r.try(t, nil, "hack/gotest.sh", "name", "hack", "./x")
			assert.Equal(t, c.fails, err != nil, said)
			assert.Contains(t, said, c.says)
		})
	}
}

func TestARehearsalOfNoScenarioFailsAndNamesThoseThatThereAre(t *testing.T) {
	for _, run := range []string{"typo", "TestStaysUp", "staysup", "^$", "drain/typo", hostile} {
		r := stubbed(t, "repository")
		stub(t, filepath.Join(r.dir, "bin/gotestsum"), tests(1, 0))
		said, err := r.try(t, []string{"RUN=" + run}, "hack/rehearsal.sh")
		assert.Error(t, err, run)
		assert.Contains(t, said, "no scenario has that name", run)
		assert.NoFileExists(t, filepath.Join(r.out, "calls"), "nothing is run")
		r.assertNothingTouched(t)
	}
}

func TestARehearsalRunsTheScenariosThatRunNamesInAnyCase(t *testing.T) {
	r := stubbed(t, "repository")
	stub(t, filepath.Join(r.dir, "bin/gotestsum"), tests(1, 0))
	r.must(t, []string{"RUN=DRAIN"}, "hack/rehearsal.sh")
	calls := r.called(t)
	require.Len(t, calls, 1)
	assert.Contains(t, calls[0], "(?i:DRAIN)")
}

func TestAUnitRunOfNoSuiteOrNoCaseFails(t *testing.T) {
	for name, says := range map[string]string{
		"no suite": `Test Suites: 0 passed, 0 total\nTests: 0 passed, 0 total\n`,
		"no case":  `Test Suites: 1 passed, 1 total\nTests: 0 passed, 0 total\n`,
		"silence":  ``,
	} {
		r := stubbed(t, "repository")
		stub(t, filepath.Join(r.dir, "bin/helm-unittest"), "printf '"+says+"'")
		said, err := r.try(t, []string{"HELM_UNITTEST=" + filepath.Join(r.dir, "bin/helm-unittest")}, "hack/unit.sh")
		assert.Error(t, err, name)
		assert.Contains(t, said, "no suite was run", name)
	}
}

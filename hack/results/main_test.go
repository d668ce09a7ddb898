package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheTableCountsAndNamesWhatFailed(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	goTests := write("junit-render.xml", `<testsuites tests="3"><testsuite name="tests/render" time="1.5">
		<testcase name="TestGood" time="1"/>
		<testcase name="TestBad"><failure message="Failed"/></testcase>
		<testcase name="TestIdle"><skipped message="not today"/></testcase>
	</testsuite><testsuite name="other" time="0.25"><testcase name="TestFine"/></testsuite></testsuites>`)
	unit := write("junit-unit.xml", `<testsuites><testsuite name="policy" time="0"><testcase name="ships the policy"/></testsuite></testsuites>`)

	out := &strings.Builder{}
	require.NoError(t, summarize(out, []string{goTests, unit}))
	assert.Contains(t, out.String(), "| render | 4 | 1 | 1 | 1.8 s |\n| unit | 1 | 0 | 0 | 0.0 s |\n")
	assert.Contains(t, out.String(), "- render: TestBad\n")
}

func TestWhatIsNoReportIsRefusedByName(t *testing.T) {
	text := filepath.Join(t.TempDir(), "junit-text.xml")
	require.NoError(t, os.WriteFile(text, []byte("all fine"), 0o600))
	assert.ErrorContains(t, summarize(&strings.Builder{}, []string{text}), text)
	assert.Error(t, summarize(&strings.Builder{}, nil), "no report at all")
}

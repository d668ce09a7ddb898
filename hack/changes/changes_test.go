package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const changelog = `# Changelog

- not an entry: it stands above the sections' headings
`

const sections = `# Changelog

## [Unreleased]

### Changed

- **Breaking: ` + "`a`" + ` is 2.** It was 1, and
  that was wrong. What it costs:
  - a restart
  - another
- See [the docs](docs/a.md) for "b": it
  is new. Really.

### Security

- A hole in v1.9.0 is closed

## [0.1.0] - 2026-01-01

### Added

- The old.
`

var want = []change{
	{"changed", "Breaking: a is 2."},
	{"changed", `See the docs for "b": it is new.`},
	{"security", "A hole in v1.9.0 is closed"},
}

const chart = "name: demo\nannotations:\n  artifacthub.io/license: Apache-2.0\n  artifacthub.io/changes: |\n    - kind: added\n      description: Old\n  artifacthub.io/links: |\n    - name: a\nkeywords: [a]\n"

func TestTheFirstSentenceOfEveryEntryOfTheNewestSectionIsAChange(t *testing.T) {
	changes, err := newest(sections)
	require.NoError(t, err)
	assert.Equal(t, want, changes)
}

func TestAChangelogThatCannotBeReadIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"no section":       {"# Changelog\n", "holds no entry"},
		"an empty section": {"## [Unreleased]\n\n## [0.1.0]\n\n### Added\n\n- The old.\n", "holds no entry"},
		"another heading":  {"## [Unreleased]\n\n### Improved\n\n- A.\n", `line 3: "Improved" is not a heading`},
		"no heading":       {changelog, "line 3: an entry that stands under no ### heading"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newest(test.text)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestTheAnnotationIsReplacedAndNothingElse(t *testing.T) {
	log, file, helm := write(t, sections), write(t, chart), write(t, helmNotes)
	require.NoError(t, run(log, file, helm, false))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, _ := strings.Cut(chart, "    - kind: added\n      description: Old\n")
	assert.True(t, strings.HasPrefix(string(text), before), "%s", text)
	assert.True(t, strings.HasSuffix(string(text), rest), "%s", text)
	var metadata struct{ Annotations map[string]string }
	require.NoError(t, yaml.Unmarshal(text, &metadata))
	var changes []change
	require.NoError(t, yaml.Unmarshal([]byte(metadata.Annotations["artifacthub.io/changes"]), &changes))
	assert.Equal(t, want, changes)
	assert.Len(t, metadata.Annotations, 3)

	require.NoError(t, run(log, file, helm, false))
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(text), string(again), "a second run changes nothing")
	assert.NoError(t, run(log, file, helm, true))
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	assert.Len(t, left, 1, "a temporary file is left")
}

func TestACheckWritesNothingAndSaysWhatIsMissing(t *testing.T) {
	file := write(t, chart)
	err := run(write(t, sections), file, write(t, helmNotes), true)
	assert.ErrorContains(t, err, "description: 'Breaking: a is 2.'")
	text, readErr := os.ReadFile(file)
	require.NoError(t, readErr)
	assert.Equal(t, chart, string(text))
}

func TestAChartWithoutTheAnnotationIsRefused(t *testing.T) {
	for _, text := range []string{"name: demo\n", chart + annotation} {
		err := run(write(t, sections), write(t, text), write(t, helmNotes), false)
		assert.ErrorContains(t, err, `expected the line "  artifacthub.io/changes: |" once`)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

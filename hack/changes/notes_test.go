package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const helmNotes = "Installed.\n" + warningBegins + warningEnds + "Bye.\n"

const releases = `# Changelog

## [Unreleased]

### Added

- Something new.

## [1.2.0] - 2026-01-01

### Added

- A: it
  is new.

### Changed

- **Breaking: ` + "`a`" + ` is 2.** What it costs:
  - a restart
- B.
- **Breaking: ` + "`{{b}}`" + ` is gone.**

## [1.1.0]
`

func TestWhatBreaksComesFirstInTheNotesOfARelease(t *testing.T) {
	var notes strings.Builder
	require.NoError(t, printNotes(&notes, write(t, releases), "1.2.0", false))
	before, after, found := strings.Cut(notes.String(), "### Added\n")
	require.True(t, found, notes.String())
	assert.Regexp(t, "^### Breaking.*\n\n- \\*\\*Breaking: `a` is 2.\\*\\* What it costs:\n  - a restart\n- \\*\\*Breaking: `{{b}}` is gone.\\*\\*\n\n$", before)
	assert.Equal(t, "\n- A: it\n  is new.\n\n### Changed\n\n- B.\n", after)
}

func TestAReleaseThatBreaksNothingHasNoWordOfIt(t *testing.T) {
	var notes strings.Builder
	require.NoError(t, printNotes(&notes, write(t, strings.ReplaceAll(releases, "Breaking: ", "")), "1.2.0", false))
	assert.NotContains(t, notes.String(), "Breaking")
	assert.Contains(t, notes.String(), "a restart")
}

func TestNotesOfAVersionWithoutASectionAreRefusedUnlessItIsToCome(t *testing.T) {
	var notes strings.Builder
	assert.ErrorContains(t, printNotes(&notes, write(t, releases), "1.3.0", false), "no section ## [1.3.0]")
	assert.ErrorContains(t, printNotes(&notes, write(t, releases), "1.1.0", true), "holds no entry")
	assert.ErrorContains(t, printNotes(&notes, write(t, releases), "1.2", false), "no section ## [1.2]")
	assert.Empty(t, notes.String())
	require.NoError(t, printNotes(&notes, write(t, releases), "1.3.0", true))
	assert.Equal(t, "### Added\n\n- Something new.\n", notes.String())
}

func TestHelmTellsWhoUpgradesWhatBreaksAndNothingElseIsTouched(t *testing.T) {
	_, newer, _ := strings.Cut(releases, "- Something new.\n") // so that 1.2.0 is the newest
	log, file := write(t, "# Changelog\n"+newer), write(t, helmNotes)
	require.NoError(t, run(log, write(t, chart), file, false))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(text), "Installed.\n"+warningBegins+"{{- if .Release.IsUpgrade }}\n"), string(text))
	assert.Contains(t, string(text), "\n- a is 2.\n- { {b}} is gone.\n{{- end }}\n"+warningEnds+"Bye.\n")

	require.NoError(t, os.WriteFile(log, []byte(strings.ReplaceAll("# Changelog\n"+newer, "Breaking: ", "")), 0o600))
	annotated := write(t, chart)
	require.NoError(t, run(log, annotated, file, false))
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, helmNotes, string(text), "a version that breaks nothing takes it away")

	require.NoError(t, os.WriteFile(file, []byte("Installed.\n"+warningBegins+"- old\n"+warningEnds), 0o600))
	assert.ErrorContains(t, run(log, annotated, file, true), "what breaks is not what")
}

func TestNotesWithoutThePlaceOfWhatBreaksAreRefused(t *testing.T) {
	for _, text := range []string{"Installed.\n", warningBegins, warningEnds} {
		err := run(write(t, sections), write(t, chart), write(t, text), false)
		assert.ErrorContains(t, err, "expected the lines {{- /* What breaks")
	}
}

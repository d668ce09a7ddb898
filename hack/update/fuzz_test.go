package main

// Lets Go's fuzzer play the engineer: any series of edits of the template must end in the template's bytes, in a
// refusal, or in a file that the oracle finds sound.

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// edited applies edits, three bytes each (what, where, and how far), to the template. The texts are what the
// edits may bring in.
func edited(lines []string, edits []byte, text string) []string {
	for ; len(edits) >= 3 && len(lines) > 1; edits = edits[3:] {
		what, at, by := int(edits[0])%(len(damages)+5), int(edits[1])%len(lines), int(edits[2])
		other := by % len(lines)
		switch l := lines[at]; what - len(damages) {
		case 0: // moved
			lines = slices.Insert(slices.Concat(lines[:at], lines[at+1:]), by%(len(lines)-1), l)
		case 1: // copied elsewhere
			lines = slices.Insert(slices.Clone(lines), other, l)
		case 2: // several lines deleted
			lines = slices.Concat(lines[:at], lines[min(at+1+by%10, len(lines)):])
		case 3: // free text inserted
			lines = slices.Insert(slices.Clone(lines), at, strings.Split(text, "\n")...)
		case 4: // free text inserted into a line
			column := by % (len(l) + 1)
			lines = slices.Clone(lines)
			lines[at] = l[:column] + text + l[column:]
		default:
			lines = damages[what].to(lines, at)
		}
	}
	return lines
}

func FuzzEditsOfTheTemplateAreRestoredRefusedOrLeftAlone(f *testing.F) {
	whole := shipped(f)
	for _, text := range []string{"", "# {{", "{{- /* */}}", "'", "key: |", "- &a x", "---", "evictionStrategy: None", "*/}}", "      - {{ . | quote }}", "\r", "{", "? a", "!!map", "  a: 'b\n  # c'"} {
		for what := range len(damages) + 5 {
			f.Add([]byte{byte(what), 46, 10}, text)
			f.Add([]byte{byte(what), 23, 50, byte(what + 1), 38, 4, 13, 38, 3}, text)
		}
	}
	for _, b := range blocks {
		f.Add([]byte{14, 40, 0, 14, 49, 0}, b.text[1:])
	}
	f.Fuzz(func(t *testing.T, edits []byte, text string) {
		if len(edits) > 30 || len(text) > 1000 {
			return
		}
		lines := edited(strings.Split(strings.TrimSuffix(string(whole), "\n"), "\n"), edits, text)
		input := []byte(strings.Join(lines, "\n") + "\n")
		r := merge(input)
		if len(r.faults) > 0 || bytes.Equal(r.data, whole) {
			return
		}
		output := r.data
		if bytes.Contains(input, []byte("\r\n")) {
			return // kept as they are: TestLineEndsAndAMissingLastLineEndAreKept
		}
		if err := unsound(t, input, output); err != nil {
			t.Errorf("accepted, but %v\ninput:\n%s\noutput:\n%s", err, input, output)
		}
	})
}

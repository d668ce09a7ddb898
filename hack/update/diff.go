package main

// Prints what an update would change as a unified diff. The edits are known, so nothing has to be compared.

import (
	"fmt"
	"slices"
	"strings"
)

// An edit is a line that stays (' '), goes ('-') or comes ('+').
type edit struct {
	kind byte
	text string
}

// without returns the file that the edits lead to, or with '+' left out the one they come from.
func (r *result) without(kind byte) []byte {
	var lines []string
	for _, e := range r.edits {
		if e.kind != kind {
			lines = append(lines, e.text)
		}
	}
	return r.src.join(lines)
}

const context = 3

// diff formats the edits; without a change it is empty.
func (r *result) diff(name string) string {
	edits := slices.Clone(r.edits)
	unended := map[int]bool{} // lines without a line end
	if !r.src.final {
		was, is := lastWithout(edits, '+'), lastWithout(edits, '-')
		if was != is && edits[was].kind == ' ' { // what was the last line gets its line end now
			edits = slices.Replace(edits, was, was+1, edit{'-', edits[was].text}, edit{'+', edits[was].text})
			is++
		}
		unended[was], unended[is] = true, true
	}
	var out strings.Builder
	for from := 0; from < len(edits); {
		if edits[from].kind == ' ' {
			from++
			continue
		}
		to, still := from, 0 // the hunk ends before a stretch that is longer than two contexts
		for end := from; end < len(edits) && still <= 2*context; end++ {
			if still++; edits[end].kind != ' ' {
				to, still = end+1, 0
			}
		}
		first, end := max(from-context, 0), min(to+context, len(edits))
		var before, after, oldLines, newLines int
		for i, e := range edits[:end] {
			if e.kind != '+' {
				if oldLines++; i < first {
					before++
				}
			}
			if e.kind != '-' {
				if newLines++; i < first {
					after++
				}
			}
		}
		if out.Len() == 0 {
			fmt.Fprintf(&out, "--- %s\n+++ %s\n", name, name)
		}
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", span(before, oldLines), span(after, newLines))
		for i := first; i < end; i++ {
			fmt.Fprintf(&out, "%c%s", edits[i].kind, edits[i].text)
			if unended[i] {
				out.WriteString("\n\\ No newline at end of file\n")
			} else {
				out.WriteString(r.src.eol)
			}
		}
		from = end
	}
	return out.String()
}

// lastWithout returns the index of the last edit that is not of the kind.
func lastWithout(edits []edit, kind byte) int {
	i := len(edits) - 1
	for i > 0 && edits[i].kind == kind {
		i--
	}
	return i
}

// span is a hunk's range of lines; a range of none is named by the line before it.
func span(before, end int) string {
	if end == before {
		return fmt.Sprintf("%d,0", before)
	}
	return fmt.Sprintf("%d,%d", before+1, end-before)
}

// What breaks comes first: in the notes of a release, and in what Helm tells after an upgrade.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

const breaking = "Breaking: "

// printNotes prints a version's section with the entries that break something before all others.
func printNotes(w io.Writer, changelog, version string, unreleased bool) error {
	log, err := os.ReadFile(changelog)
	if err != nil {
		return err
	}
	section, found := sectionOf(string(log), version)
	if !found && unreleased {
		section, found = sectionOf(string(log), "Unreleased")
	}
	if !found {
		return fmt.Errorf("%s has no section ## [%s]; rename Unreleased to it, and date it", changelog, version)
	}
	if !strings.Contains(section, "\n- ") {
		return fmt.Errorf("%s: the section of %s holds no entry", changelog, version)
	}
	first, rest := split(section)
	if first != "" {
		first = "### Breaking: read this before you upgrade\n\n" + first + "\n"
	}
	_, err = io.WriteString(w, first+rest)
	return err
}

// sectionOf is what stands under a version's heading.
func sectionOf(changelog, version string) (string, bool) {
	var section strings.Builder
	inside, found := false, false
	for line := range strings.Lines(changelog) {
		if strings.HasPrefix(line, "## ") {
			inside = strings.HasPrefix(line, "## ["+version+"]")
			found = found || inside
			continue
		}
		if inside {
			section.WriteString(line)
		}
	}
	return strings.Trim(section.String(), "\n") + "\n", found
}

// split takes the entries that break something out of a section.
func split(section string) (breaks, rest string) {
	var broken, others strings.Builder
	to := &others
	for line := range strings.Lines(section) {
		switch {
		case strings.HasPrefix(line, "- **"+breaking):
			to = &broken
		case strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "":
			to = &others
		}
		to.WriteString(line)
	}
	return broken.String(), others.String()
}

// The block of NOTES.txt that this command writes stands between these lines.
const (
	warningBegins = "{{- /* What breaks, from CHANGELOG.md by make docs: */}}\n"
	warningEnds   = "{{- /* The end of what breaks. */}}\n"
)

// warn replaces the block of NOTES.txt and nothing else.
func warn(notes string, changes []change) (string, error) {
	before, rest, begins := strings.Cut(notes, warningBegins)
	_, after, ends := strings.Cut(rest, warningEnds)
	if !begins || !ends {
		return "", errors.New("expected the lines " + strings.TrimSpace(warningBegins) + " and " + strings.TrimSpace(warningEnds) + "; add them, and run make docs")
	}
	return before + warningBegins + warning(changes) + warningEnds + after, nil
}

// warning is what Helm tells who upgrades; nothing if nothing breaks.
func warning(changes []change) string {
	var lines strings.Builder
	for _, c := range changes {
		if text, breaks := strings.CutPrefix(c.Description, breaking); breaks {
			if strings.Contains(text, "{{") { // it would be run
				text = strings.ReplaceAll(text, "{{", "{ {")
			}
			fmt.Fprintf(&lines, "- %s\n", text)
		}
	}
	if lines.Len() == 0 {
		return ""
	}
	return "{{- if .Release.IsUpgrade }}\n\nWhat this version breaks; the notes of the release say what it costs:\n" + lines.String() + "{{- end }}\n"
}

// Package plain takes from text that others wrote (names, owners' kinds, conditions, a server's messages) what a terminal or a
// reader would take for something else than text.
package plain

import (
	"fmt"
	"strings"
	"unicode"
)

// Text writes what cannot be printed as an escape: the escape character as kubectl does (^[, k8s.io/cli-runtime,
// printers/terminal.go), and the rest as Go would.
func Text(text string) string {
	if !strings.ContainsFunc(text, unprintable) {
		return text
	}
	written := &strings.Builder{}
	for _, c := range text {
		switch {
		case c == '\x1b':
			written.WriteString("^[")
		case unprintable(c):
			written.WriteString(strings.Trim(fmt.Sprintf("%+q", c), "'"))
		default:
			written.WriteRune(c)
		}
	}
	return written.String()
}

// unprintable are also the characters that turn the direction of writing, or have no width.
func unprintable(c rune) bool { return !unicode.IsPrint(c) || unicode.Is(unicode.Cf, c) }

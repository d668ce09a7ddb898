package main

// Reads the file into lines and tells apart what is a comment, what is a template directive and what is YAML.

import (
	"bytes"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A fault is one thing that is wrong with the file. A newcomer must be able to act on it.
type fault struct {
	line    int    // 0 for the file as a whole
	subject string // what is concerned: a block, an anchor, a constant, …
	problem string // what was found, and what was expected
	remedy  string // what to do
}

func (f fault) format(name string) string {
	at := name
	if f.line > 0 {
		at += ":" + strconv.Itoa(f.line)
	}
	return fmt.Sprintf("%s: %s: %s; %s", at, f.subject, f.problem, f.remedy)
}

// show quotes a line for a message, in such a way that blanks at its ends can be seen.
func show(text string) string {
	if strconv.CanBackquote(text) && !strings.Contains(text, "\t") {
		return "`" + text + "`"
	}
	return strconv.Quote(text)
}

// A line of the file.
type line struct {
	text      string // without the line end
	plain     string // the same with template comments blanked
	no        int    // its number in the file
	inside    bool   // it begins inside a template comment
	directive bool   // it holds a template directive that is no comment
}

// comment reports whether the line holds nothing but a comment; inside a string it may only look like one.
func (l *line) comment() bool {
	plain := strings.TrimSpace(l.plain)
	return strings.HasPrefix(plain, "#") || plain == "" && strings.TrimSpace(l.text) != ""
}

// blank reports whether the line is empty or a comment.
func (l *line) blank() bool { return strings.TrimSpace(l.plain) == "" || l.comment() }

// commented is what stands in a comment line, without the comment's own signs.
func (l *line) commented() string {
	text := strings.TrimSpace(strings.TrimLeft(l.text, "# "))
	for _, opening := range []string{"{{- /*", "{{/*"} {
		text = strings.TrimPrefix(text, opening)
	}
	return strings.TrimSpace(strings.TrimSuffix(text, "*/}}"))
}

// A source is the file as read, with what is needed to write it back to the byte.
type source struct {
	lines []line
	eol   string
	final bool // the last line has a line end
}

// join writes lines the way the source was written.
func (s *source) join(lines []string) []byte {
	text := strings.Join(lines, s.eol)
	if s.final {
		text += s.eol
	}
	return []byte(text)
}

// What YAML 1.1 or an editor reads as a line end, and the other does not: with one of them in the file, the line
// numbers of the YAML parser would not be the file's.
const strangeLineEnds = "\r\v\f\u0085\u2028\u2029\x1c\x1d\x1e"

// read splits the data into lines. With faults the source is of no use.
func read(data []byte) (*source, []fault) {
	whole := func(problem, remedy string) []fault {
		return []fault{{subject: "file", problem: problem, remedy: remedy}}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, whole("is empty, expected a KubeVirt CR", "restore the file from git or merge upstream's CR into it")
	}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return nil, whole("begins with a byte order mark, which Helm would render before the first block", "save it as UTF-8 without one")
	}
	src := &source{eol: "\n", final: bytes.HasSuffix(data, []byte("\n"))}
	text := string(data)
	if at := strings.Index(text, "\r\n"); at >= 0 {
		if crlf, lf := strings.Count(text, "\r\n"), strings.Count(text, "\n"); crlf != lf {
			return nil, whole(fmt.Sprintf("%d of its %d lines end in CRLF and the others in LF", crlf, lf), "use one of the two throughout")
		}
		src.eol = "\r\n"
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	text = strings.TrimSuffix(text, "\n")
	var faults []fault
	for i, l := range strings.Split(text, "\n") {
		if !utf8.ValidString(l) {
			faults = append(faults, fault{i + 1, "file", "the line is not UTF-8", fmt.Sprintf("save the file as UTF-8, beginning with line %d", i+1)})
		}
		if at := strings.IndexFunc(l, func(r rune) bool { return strings.ContainsRune(strangeLineEnds, r) }); at >= 0 {
			end, _ := utf8.DecodeRuneInString(l[at:])
			faults = append(faults, fault{i + 1, "file", fmt.Sprintf("the line holds the character %U, which some programs read as a line end", end), fmt.Sprintf("delete the character %U from line %d", end, i+1)})
		}
		src.lines = append(src.lines, line{text: l, no: i + 1})
	}
	if faults == nil {
		faults = src.markTemplate(text)
	}
	return src, faults
}

// markTemplate finds the template comments and directives, by the rules of Go's templates. Text between
// the lines of a comment that is not closed would be swallowed, so that is reported before anything else.
func (s *source) markTemplate(text string) []fault {
	starts := make([]int, len(s.lines)) // the offset of each line
	for i := 1; i < len(starts); i++ {
		starts[i] = starts[i-1] + len(s.lines[i-1].text) + 1
	}
	number := func(at int) int { return sort.SearchInts(starts, at+1) }
	var faults []fault
	comment := func(at int, problem, remedy string) {
		faults = append(faults, fault{number(at), "template comment", problem, remedy})
	}
	plain := []byte(text)
	for at := 0; ; {
		open := strings.Index(text[at:], "{{")
		if open < 0 {
			break
		}
		open += at
		body := text[open+2:]
		if len(body) > 1 && body[0] == '-' && strings.ContainsRune(" \t\n", rune(body[1])) {
			body = body[2:]
		}
		if !strings.HasPrefix(body, "/*") {
			s.lines[number(open)-1].directive = true
			end := strings.Index(body, "}}")
			if end < 0 {
				break
			}
			at = len(text) - len(body) + end + 2
			continue
		}
		start := len(text) - len(body) + 2
		end := strings.Index(text[start:], "*/")
		if end < 0 {
			comment(open, "is never closed", "close it with */}}")
			break
		}
		if nested := strings.Index(text[start:start+end], "{{"); nested >= 0 {
			rest := strings.TrimLeft(text[start+nested:start+end], "{- ")
			if strings.HasPrefix(rest, "/*") {
				comment(open, fmt.Sprintf("is not closed before the next one opens in line %d", number(start+nested)), "close it with */}}")
				break
			}
		}
		end += start + 2
		switch rest := text[end:]; {
		case strings.HasPrefix(rest, "}}"):
			end += 2
		case len(rest) > 3 && strings.ContainsRune(" \t\n", rune(rest[0])) && rest[1:4] == "-}}":
			comment(open, "ends in -}}, which joins the lines before and after it", "end it with */}}")
			end += 4
		default:
			comment(end, "has something between */ and }}", "close it with */}}")
			return faults
		}
		if rest, _, _ := strings.Cut(text[end:], "\n"); strings.TrimSpace(rest) != "" {
			// Taking the comment out would move this text to another column, or join it to what is before.
			comment(open, "is followed by "+show(strings.TrimSpace(rest))+" on its line", "put the comment on a line of its own")
		}
		for i := open; i < end; i++ {
			if text[i] == '\n' {
				s.lines[number(i)].inside = true
			} else {
				plain[i] = ' '
			}
		}
		at = end
	}
	for i, l := range strings.Split(string(plain), "\n") {
		s.lines[i].plain = strings.TrimRight(l, " ")
		if strings.Contains(l, "*/}}") || strings.Contains(l, "*/ -}}") {
			faults = append(faults, fault{i + 1, "template comment", "is closed here and opened nowhere", "restore the line that opens it with {{- /*, or delete this one"})
		}
	}
	return faults
}

package main

import (
	"regexp"
	"slices"
	"strings"
)

// line is a line of a template or a values file.
type line struct {
	start, end, next int
	indent           int
	text             string
	// within is set where the line begins inside an action, such as in a comment of several lines.
	within bool
}

func lines(source string, found []action) []line {
	var all []line
	for start := 0; start < len(source); {
		end, next := len(source), len(source)
		if i := strings.IndexByte(source[start:], '\n'); i >= 0 {
			end, next = start+i, start+i+1
		}
		text := source[start:end]
		all = append(all, line{
			start: start, end: end, next: next, text: text,
			indent: len(text) - len(strings.TrimLeft(text, " ")),
			within: slices.ContainsFunc(found, func(a action) bool { return a.start < start && start < a.end }),
		})
		start = next
	}
	return all
}

var (
	// keyValue is a key with a scalar on its line: key, colon and blanks, scalar.
	keyValue = regexp.MustCompile(`^(\s*(?:- )?(?:[\w./-]+|"[^"]*"|\{\{[^}]*\}\}):\s+)(\S.*)$`)
	listItem = regexp.MustCompile(`^(\s*- )([^:]*)$`)
	comment  = regexp.MustCompile(`\s+#.*$`)
	action1  = regexp.MustCompile(`^'?\{\{.*\}\}'?$`)
	integer  = regexp.MustCompile(`^\d+$`)
)

// lineMutations lists the changes of a file of lines: of any text each line can go; of YAML also scalars
// change, items and blocks go, items swap, and lines move to the left.
func lineMutations(source string, found []action, isYAML bool) []mutation {
	var made []mutation
	all := lines(source, found)
	for i, l := range all {
		body := strings.TrimSpace(l.text)
		if body == "" {
			continue
		}
		made = append(made, mutation{"delete-line", l.start, l.next, ""})
		if !isYAML || l.within || strings.HasPrefix(body, "{{- ") && !strings.Contains(body, "}}:") || strings.HasPrefix(body, "#") {
			continue
		}
		if l.indent >= 2 {
			made = append(made, mutation{"dedent", l.start, l.start + 2, ""})
		}
		parts := keyValue.FindStringSubmatch(l.text)
		if parts == nil {
			parts = listItem.FindStringSubmatch(l.text)
		}
		if parts != nil {
			value := parts[2]
			if !strings.HasPrefix(value, "'") && !strings.HasPrefix(value, `"`) {
				value = comment.ReplaceAllString(value, "")
			}
			start := l.start + len(parts[1])
			for _, other := range scalars(strings.TrimRight(value, " ")) {
				made = append(made, mutation{"change-scalar", start, start + len(strings.TrimRight(value, " ")), other})
			}
		}
		if last := block(all, i); last > i && balanced(source[l.start:all[last].next]) {
			kind := "delete-block"
			if strings.HasPrefix(body, "- ") {
				kind = "delete-item"
			}
			made = append(made, mutation{kind, l.start, all[last].next, ""})
		}
		if strings.HasPrefix(body, "- ") {
			if last := block(all, i); last+1 < len(all) && balanced(source[l.start:all[last].next]) {
				other := all[last+1]
				end := all[block(all, last+1)].next
				second := source[other.start:end]
				if !other.within && other.indent == l.indent && strings.HasPrefix(strings.TrimSpace(other.text), "- ") && balanced(second) {
					made = append(made, mutation{"swap-items", l.start, end, second + source[l.start:all[last].next]})
				}
			}
		}
	}
	return made
}

// block returns the last line of what is nested under a line.
func block(all []line, first int) int {
	last := first
	for i := first + 1; i < len(all); i++ {
		if strings.TrimSpace(all[i].text) == "" {
			continue
		}
		isItem := strings.HasPrefix(strings.TrimSpace(all[i].text), "- ")
		sameLevel := all[i].indent == all[first].indent && isItem && !strings.HasPrefix(strings.TrimSpace(all[first].text), "- ")
		if !all[i].within && all[i].indent <= all[first].indent && !sameLevel {
			break
		}
		last = i
	}
	return last
}

// balanced says whether a piece of a template opens and closes the same blocks, so that what is left
// without it is still a template.
func balanced(source string) bool {
	depth := 0
	for _, a := range actions(source) {
		switch {
		case a.is("if", "with", "range", "define", "block"):
			depth++
		case a.is("end"):
			depth--
		case a.is("else") && depth == 0:
			return false
		}
		if depth < 0 {
			return false
		}
	}
	return depth == 0 && strings.Count(source, "{{") == strings.Count(source, "}}")
}

// scalars returns what a scalar of YAML is changed into.
func scalars(value string) []string {
	plain := strings.Trim(value, `"'`)
	switch {
	case value == "null" || value == "~":
		return []string{"mutant"}
	case value == "{}" || value == "[]":
		return []string{"null"}
	case value == "true":
		return []string{"false", "null"}
	case value == "false":
		return []string{"true", "null"}
	case integer.MatchString(value):
		return append(offByOne(value), "null")
	case value == "|" || value == ">" || strings.HasPrefix(value, "|-") || strings.HasPrefix(value, ">-"):
		return nil
	case action1.MatchString(value):
		return []string{"mutant", "null"}
	case plain == "true":
		return []string{`"false"`, "true", "null"}
	case plain == "false":
		return []string{`"true"`, "false", "null"}
	case plain == "":
		return []string{"mutant", "null"}
	}
	others := []string{"mutant", "null"}
	if !strings.Contains(value, "{{") && len(value) < 20 {
		others = append(others, offByOne(value)...)
	}
	return others
}

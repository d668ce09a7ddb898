package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A mutation replaces a stretch of a file.
type mutation struct {
	kind       string
	start, end int
	text       string
}

// action is one {{ … }} of a template. Its words are what stands between the braces.
type action struct {
	start, end int
	words      []word
}

func (a action) is(names ...string) bool {
	return len(a.words) > 0 && slices.Contains(names, a.words[0].text)
}

// word is a token of an action: a name, a field, a variable, a literal, a bracket, a bar.
type word struct {
	start, end int
	text       string
}

var (
	actionText = regexp.MustCompile("(?s)\\{\\{-?\\s*/\\*.*?\\*/\\s*-?\\}\\}|\\{\\{(?:\"(?:\\\\.|[^\"\\\\])*\"|`[^`]*`|[^\"`])*?\\}\\}")
	wordText   = regexp.MustCompile("\"(?:\\\\.|[^\"\\\\])*\"|`[^`]*`|:=|[()|=,]|[^\\s()|=,:\"`]+")
)

// actions finds the actions of a template; a comment is an action without words.
func actions(source string) []action {
	var found []action
	for _, at := range actionText.FindAllStringIndex(source, -1) {
		made := action{start: at[0], end: at[1]}
		inner := strings.TrimSuffix(strings.TrimSuffix(source[at[0]:at[1]], "}}"), " -")
		inner = strings.TrimPrefix(strings.TrimPrefix(inner, "{{"), "-")
		if !strings.HasPrefix(strings.TrimSpace(inner), "/*") {
			offset := at[0] + strings.Index(source[at[0]:at[1]], inner)
			for _, w := range wordText.FindAllStringIndex(inner, -1) {
				made.words = append(made.words, word{offset + w[0], offset + w[1], inner[w[0]:w[1]]})
			}
		}
		found = append(found, made)
	}
	return found
}

// pipeline is a list of commands joined by bars; a command is a list of operands, of which one may be a
// pipeline in brackets.
type pipeline struct {
	start, end int
	commands   []command
}

type command struct {
	start, end int
	operands   []operand
}

type operand struct {
	word
	inner *pipeline
}

// parsePipeline reads words up to the bracket that closes it, and returns the rest.
func parsePipeline(words []word) (*pipeline, []word) {
	p := &pipeline{}
	var current command
	finish := func() {
		if len(current.operands) > 0 {
			current.start, current.end = current.operands[0].start, current.operands[len(current.operands)-1].end
			p.commands = append(p.commands, current)
		}
		current = command{}
	}
	for len(words) > 0 && words[0].text != ")" {
		head := words[0]
		words = words[1:]
		switch head.text {
		case "|":
			finish()
		case "(":
			inner, rest := parsePipeline(words)
			if len(rest) == 0 {
				return p, nil
			}
			head.end = rest[0].end
			words = rest[1:]
			// What touches the bracket belongs to it, such as the field in (.Values.a).b.
			if len(words) > 0 && words[0].start == head.end && strings.HasPrefix(words[0].text, ".") {
				head.end = words[0].end
				words = words[1:]
			}
			current.operands = append(current.operands, operand{head, inner})
		default:
			current.operands = append(current.operands, operand{head, nil})
		}
	}
	finish()
	if len(p.commands) > 0 {
		p.start, p.end = p.commands[0].start, p.commands[len(p.commands)-1].end
	}
	return p, words
}

// templateMutations lists every change of a template's actions and of the text between them.
func templateMutations(name, source string) []mutation {
	var all []mutation
	found := actions(source)
	all = append(all, lineMutations(source, found, !strings.HasSuffix(name, ".txt"))...)
	for _, a := range found {
		all = append(all, actionMutations(source, a)...)
	}
	return all
}

func actionMutations(source string, a action) []mutation {
	words := a.words
	keyword := ""
	if a.is("else") && len(words) > 1 {
		words = words[1:]
	}
	switch {
	case len(words) == 0 || slices.Contains([]string{"end", "else", "break", "continue"}, words[0].text):
		return nil
	case slices.Contains([]string{"if", "with", "range", "define", "block", "template"}, words[0].text):
		keyword = words[0].text
		words = words[1:]
	}
	if slices.Contains([]string{"define", "block", "template"}, keyword) {
		words = words[1:] // the name
	}
	for i, w := range words {
		if w.text == ":=" || w.text == "=" {
			words = words[i+1:]
			break
		}
	}
	p, _ := parsePipeline(words)
	if len(p.commands) == 0 {
		return nil
	}
	whole := source[p.start:p.end]
	replace := func(kind, text string) mutation { return mutation{kind, p.start, p.end, text} }
	var all []mutation
	switch keyword {
	case "if":
		all = append(all, replace("negate-condition", "not ("+whole+")"))
	case "with":
		// A range over one item runs its body whatever the item is: a with without its question.
		for _, w := range a.words {
			if w.text == "with" && w.start < p.start {
				once := "range" + source[w.end:p.start] + "list (" + whole + ")"
				all = append(all, mutation{"drop-with", w.start, p.end, once}, replace("empty-with", `""`))
				break
			}
		}
	case "range":
		all = append(all, replace("empty-range", "list"))
	}
	first, last := p.commands[0].operands[0].text, p.commands[len(p.commands)-1].operands[0].text
	if keyword == "" && (first == "fail" || last == "fail") {
		all = append(all, replace("drop-fail", `""`))
	}
	return append(all, pipelineMutations(source, p)...)
}

// unwrapped are the functions of one argument that a mutation takes away, and its kind.
var unwrapped = map[string]string{
	"int64": "drop-int64", "int": "drop-int64", "float64": "drop-int64", "quote": "drop-quote", "squote": "drop-quote",
	"not": "negate-condition", "lower": "drop-function", "upper": "drop-function", "trim": "drop-function", "toString": "drop-function", "nospace": "drop-function",
}

var otherName = map[string]string{"eq": "ne", "ne": "eq", "gt": "ge", "ge": "gt", "lt": "le", "le": "lt", "and": "or", "or": "and"}

func pipelineMutations(source string, p *pipeline) []mutation {
	var all []mutation
	for i, c := range p.commands {
		name := c.operands[0].text
		if i > 0 {
			kind := unwrapped[name]
			switch {
			case name == "default":
				kind = "drop-default"
			case kind == "" || kind == "negate-condition":
				kind = "drop-function"
			}
			all = append(all, mutation{kind, p.commands[i-1].end, c.end, ""})
		} else if kind := unwrapped[name]; kind != "" && len(c.operands) == 2 {
			all = append(all, mutation{kind, c.start, c.operands[1].start, ""})
		}
		if other := otherName[name]; other != "" {
			all = append(all, mutation{"swap-operator", c.start, c.operands[0].end, other})
		}
		arguments := c.operands[1:]
		switch name {
		case "ternary", "list":
			for j := 1; j < len(arguments); j++ {
				a, b := arguments[j-1], arguments[j]
				all = append(all, mutation{"swap-items", a.start, b.end, source[b.start:b.end] + source[a.end:b.start] + source[a.start:a.end]})
			}
		}
		if name == "list" {
			for j, argument := range arguments {
				all = append(all, mutation{"delete-item", c.operands[j].end, argument.end, ""})
			}
		}
		if name == "dict" {
			for j := 0; j+1 < len(arguments); j += 2 {
				all = append(all, mutation{"delete-item", c.operands[j].end, arguments[j+1].end, ""})
			}
		}
		for j, o := range c.operands {
			switch {
			case o.inner != nil:
				all = append(all, pipelineMutations(source, o.inner)...)
			case j == 1 && name == "include": // another name is no change of behaviour but a broken template
			case (name == "nindent" || name == "indent") && j == 1:
				if n, err := strconv.Atoi(o.text); err == nil && n >= 2 {
					all = append(all, mutation{"dedent", o.start, o.end, strconv.Itoa(n - 2)})
				}
			default:
				for _, other := range literals(o.text) {
					all = append(all, mutation{"change-scalar", o.start, o.end, other})
				}
			}
		}
	}
	return all
}

var (
	digits = regexp.MustCompile(`\d+`)
	number = regexp.MustCompile(`^-?\d`)
)

// literals returns what a literal of an action is changed into: another string, the next number, the
// other boolean. What is no literal has none.
func literals(text string) []string {
	switch {
	case text == "true":
		return []string{"false"}
	case text == "false":
		return []string{"true"}
	case strings.HasPrefix(text, `"`), strings.HasPrefix(text, "`"):
		others := []string{`"mutant"`}
		if len(text) < 20 {
			others = append(others, offByOne(text)...)
		}
		return others
	case number.MatchString(text):
		return offByOne(text)
	}
	return nil
}

// offByOne is the text with each of its numbers one higher, one at a time.
func offByOne(text string) []string {
	var others []string
	for _, at := range digits.FindAllStringIndex(text, -1) {
		n, err := strconv.ParseInt(text[at[0]:at[1]], 10, 64)
		if err != nil || strings.HasPrefix(text[at[0]:], "0x") {
			continue
		}
		others = append(others, text[:at[0]]+strconv.FormatInt(n+1, 10)+text[at[1]:])
	}
	return others
}

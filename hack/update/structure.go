package main

// Reads the skeleton as YAML and finds keys by their path, so that a comment, a string or a key of the same
// name elsewhere is never taken for an anchor.

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// An entry is a key of a mapping or an item of a list.
type entry struct {
	path   string
	key    *yaml.Node // nil for an item
	value  *yaml.Node
	parent *yaml.Node
	end    int // the index of the first entry that follows the value
}

// line is the skeleton line on which the entry begins, from 1.
func (e *entry) line() int {
	if e.key != nil {
		return e.key.Line
	}
	return e.value.Line
}

// A tree is a skeleton and its structure.
type tree struct {
	lines    []line
	root     *yaml.Node
	entries  []entry // in document order
	byPath   map[string][]int
	inScalar []bool // by line: it continues a string of several lines
	doubled  []doubled
}

// doubled is a key that its mapping has already, with the skeleton lines of both.
type doubled struct {
	path         string
	first, again int
}

// parse reads the lines as one YAML document.
func parse(lines []line, hints map[string]hint) (*tree, []fault) {
	t := &tree{lines: lines, byPath: map[string][]int{}, inScalar: make([]bool, len(lines)+1)}
	begun := false
	plain := make([]string, len(lines))
	for i, l := range lines {
		marker := strings.HasPrefix(l.plain, "---") || strings.HasPrefix(l.plain, "...")
		if marker && begun {
			return nil, []fault{{l.no, "file", "a second YAML document may begin here, expected one KubeVirt CR", "delete this line, and what follows if it is no part of the CR"}}
		}
		begun = begun || !l.blank()
		plain[i] = l.plain
	}
	var document yaml.Node
	read := func(n int) error { return yaml.Unmarshal([]byte(strings.Join(plain[:n], "\n")+"\n"), &document) }
	if err := read(len(plain)); err != nil {
		// The parser names the beginning of what it could not read. The line that spoils it says more.
		at := 1 + sort.Search(len(plain)-1, func(n int) bool { return read(n+1) != nil })
		problem := err.Error()
		problem = problem[strings.LastIndex(problem, ": ")+2:]
		return nil, append([]fault{{t.number(at), "file", fmt.Sprintf("%s makes no valid YAML with the lines above it (%s)", show(lines[at-1].text), problem),
			"compare the line and the one above it with the last good version (git diff)"}}, lostLines(lines, hints)...)
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return nil, []fault{{subject: "file", problem: "holds no YAML mapping, expected a KubeVirt CR", remedy: "restore the file from git or merge upstream's CR into it"}}
	}
	t.root = document.Content[0]
	t.walk(t.root, "", -1)
	return t, nil
}

// number translates a skeleton line into the file's.
func (t *tree) number(line int) int {
	if len(t.lines) == 0 {
		return 0
	}
	return t.lines[min(max(line, 1), len(t.lines))-1].no
}

// A hint is where a required line stood, as the whole blocks beside it show.
type hint struct {
	line  int
	words string
}

// lostLines names the anchors and constants of which the text has no trace, for files that cannot be parsed.
func lostLines(lines []line, hints map[string]hint) []fault {
	var faults []fault
	has := func(path string) int {
		key, _, _ := strings.Cut(shippedLines(path)[0], ":")
		i := slices.IndexFunc(lines, func(l line) bool { return strings.HasPrefix(l.plain, key+":") })
		if i < 0 {
			return 0
		}
		return lines[i].no
	}
	for _, path := range requiredPaths() {
		if has(path) > 0 {
			continue
		}
		at, problem := 1, "is missing from the file"
		if dot := strings.LastIndex(path, "."); dot >= 0 {
			at = max(has(path[:dot]), 1)
		}
		if h, ok := hints[path]; ok {
			at = h.line
		}
		faults = append(faults, fault{at, subject(path), problem, restore(path, hints)})
	}
	return faults
}

func (t *tree) walk(node *yaml.Node, path string, indent int) {
	add := func(e entry, indent int) {
		i := len(t.entries)
		t.entries = append(t.entries, e)
		t.byPath[e.path] = append(t.byPath[e.path], i)
		t.walk(e.value, e.path, indent)
		t.entries[i].end = len(t.entries)
	}
	switch node.Kind {
	case yaml.MappingNode:
		seen := map[string]int{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			name := key.Value
			if strings.ContainsAny(name, ".[") || key.Kind != yaml.ScalarNode {
				name = strconv.Quote(name) // no such key is part of a path that anything is looked for at
			}
			if path != "" {
				name = path + "." + name
			}
			if first := seen[name]; first > 0 {
				t.doubled = append(t.doubled, doubled{name, first, key.Line})
			} else {
				seen[name] = key.Line
			}
			t.walk(key, name+"?", key.Column-1)
			add(entry{path: name, key: key, value: value, parent: node}, key.Column-1)
		}
	case yaml.SequenceNode:
		for _, value := range node.Content {
			name := path + "[]"
			if value.Kind == yaml.ScalarNode {
				name = path + "[" + value.Value + "]"
			}
			add(entry{path: name, value: value, parent: node}, node.Column-1)
		}
	case yaml.ScalarNode:
		t.markScalar(node, indent)
	}
}

// markScalar marks the lines that continue a string of several lines: what looks like a comment there is none.
func (t *tree) markScalar(node *yaml.Node, indent int) {
	switch {
	case node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		for i := node.Line; i < len(t.lines); i++ {
			text := t.lines[i].plain
			trimmed := strings.TrimLeft(text, " ")
			if trimmed != "" && len(text)-len(trimmed) <= indent {
				break
			}
			t.inScalar[i] = true
		}
	case node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		quote := byte('"')
		if node.Style&yaml.SingleQuotedStyle != 0 {
			quote = '\''
		}
		opened := false
		for i := node.Line - 1; i < len(t.lines); i++ {
			text := t.lines[i].plain
			if i == node.Line-1 {
				text = string([]rune(text)[node.Column-1:])
			} else {
				t.inScalar[i] = true
			}
			for at := 0; at < len(text); at++ {
				switch {
				case text[at] == '\\' && quote == '"' && opened:
					at++
				case text[at] != quote:
				case !opened:
					opened = true
				case quote == '\'' && strings.HasPrefix(text[at+1:], "'"):
					at++
				default:
					return
				}
			}
		}
	}
}

// comment reports whether the skeleton line with this index is a comment and nothing else.
func (t *tree) comment(i int) bool { return t.lines[i].comment() && !t.inScalar[i] }

// lastLine returns the index of the line after the last one of the entry's value.
func (t *tree) lastLine(e *entry) int {
	next := len(t.lines)
	if e.end < len(t.entries) {
		next = t.entries[e.end].line() - 1
	}
	for next > e.line() && (t.comment(next-1) || strings.TrimSpace(t.lines[next-1].plain) == "") {
		next--
	}
	return next
}

// find returns the entries at a path.
func (t *tree) find(path string) []*entry {
	var found []*entry
	for _, i := range t.byPath[path] {
		found = append(found, &t.entries[i])
	}
	return found
}

// elsewhere returns a key with the same name as the path's.
func (t *tree) elsewhere(path string) *entry {
	for i := range t.entries {
		if e := &t.entries[i]; e.key != nil && e.key.Value == path[strings.LastIndex(path, ".")+1:] {
			return e
		}
	}
	return nil
}

// requiredPaths are the anchors and constants, each once, parents first.
func requiredPaths() []string {
	var paths []string
	add := func(path string) {
		for at := 0; at <= len(path); at++ {
			if (at == len(path) || path[at] == '.') && at > 0 && !slices.Contains(paths, path[:at]) {
				paths = append(paths, path[:at])
			}
		}
	}
	for _, b := range blocks {
		add(b.anchor)
	}
	for _, c := range constants {
		add(c.path)
	}
	return paths
}

// subject names a required path in messages.
func subject(path string) string {
	anchors := func(b block) bool { return strings.HasPrefix(b.anchor+".", path+".") }
	if slices.ContainsFunc(blocks, anchors) {
		return "anchor " + path
	}
	return "constant " + path
}

// restore tells how to bring back a required path.
func restore(path string, hints map[string]hint) string {
	var lines []string
	for _, l := range shippedLines(path) {
		lines = append(lines, show(l))
	}
	where := " at the outermost level"
	if dot := strings.LastIndex(path, "."); dot >= 0 {
		where = " under " + show(shippedLines(path[:dot])[0])
	}
	if h, ok := hints[path]; ok {
		where += ", " + h.words
	}
	if len(lines) > 1 {
		return "restore the lines " + strings.Join(lines, ", ") + where
	}
	return "restore the line " + lines[0] + where
}

// check reports what is wrong with the structure as such: not our CR, keys that stand twice, and required
// paths that are missing, at another indentation or not of the kind that the blocks need.
func (t *tree) check(needs map[string][]string, hints map[string]hint) (faults []fault, sound map[string]*entry) {
	report := func(line int, subject, problem, remedy string) {
		faults = append(faults, fault{t.number(line), subject, problem, remedy})
	}
	identity := []struct{ key, want string }{{"apiVersion", "kubevirt.io/v1"}, {"kind", "KubeVirt"}}
	wrong := 0
	for _, id := range identity {
		at, got := 1, "missing"
		if e := t.find(id.key); len(e) > 0 {
			if at, got = e[0].line(), show(e[0].value.Value); e[0].value.Value == id.want {
				continue
			}
		}
		wrong++
		report(at, "file", id.key+" is "+got+", expected "+show(id.want), "is this the KubeVirt CR? Then restore the line "+show(id.key+": "+id.want))
	}
	if wrong == len(identity) {
		return faults, nil
	}
	for _, d := range t.doubled {
		report(d.again, "key "+d.path, fmt.Sprintf("stands a second time, the first is in line %d%s", t.number(d.first), because(needs[d.path])), "delete one of the two")
	}
	sound = map[string]*entry{}
	for _, path := range requiredPaths() {
		if _, ok := needs[path]; !ok {
			continue
		}
		parent := &entry{value: t.root}
		if dot := strings.LastIndex(path, "."); dot >= 0 {
			if parent = sound[path[:dot]]; parent == nil {
				if t.elsewhere(path) != nil {
					continue // it is all there, and reported for the parent
				}
				parent = &entry{}
			}
		}
		found := t.find(path)
		if len(found) == 0 {
			at, problem := 1, "is missing"
			if parent.key != nil {
				at = parent.line()
				problem += fmt.Sprintf(" under %s", show(strings.TrimSpace(t.lines[at-1].text)))
			}
			if e := t.elsewhere(path); e != nil {
				problem += fmt.Sprintf(" (the one in line %d is %s)", t.number(e.line()), e.path)
			}
			f := fault{t.number(at), subject(path), problem + because(needs[path]), restore(path, hints)}
			if h, ok := hints[path]; ok {
				f.line = h.line
			}
			faults = append(faults, f)
			continue
		}
		e := found[0]
		if len(found) > 1 {
			continue // reported as a key that stands twice
		}
		own := t.lines[e.line()-1]
		indent := 2 * strings.Count(path, ".")
		switch {
		case e.parent.Style&yaml.FlowStyle != 0 || strings.TrimSpace(string([]rune(own.plain)[:e.key.Column-1])) != "":
			report(e.line(), subject(path), "does not begin its line, "+show(own.text)+because(needs[path]), "write one key a line")
		case e.key.Column-1 != indent:
			report(e.line(), subject(path), fmt.Sprintf("is indented by %d, expected %d%s", e.key.Column-1, indent, because(needs[path])), "indent the file by two blanks a level")
		case e.value.Anchor != "" || e.value.Style&yaml.TaggedStyle != 0:
			report(e.line(), subject(path), "has a YAML anchor or tag, "+show(own.text), "delete it, and write the value out wherever the anchor was used")
		default:
			sound[path] = e
		}
	}
	return faults, sound
}

// because names the blocks that need a path.
func because(needs []string) string {
	switch n := len(needs); n {
	case 0:
		return ""
	case 1:
		return ", and gives block " + needs[0] + " its place"
	default:
		return ", and gives the blocks " + strings.Join(needs[:n-1], ", ") + " and " + needs[n-1] + " their place"
	}
}

// checkConstants compares the constants of the policy.
func (t *tree) checkConstants(sound map[string]*entry) []fault {
	var faults []fault
	for _, c := range constants {
		e := sound[c.path]
		if e == nil {
			continue // reported as missing or doubled
		}
		items := []*yaml.Node{e.value}
		ok := e.value.Kind == yaml.ScalarNode
		if c.list {
			items, ok = e.value.Content, e.value.Kind == yaml.SequenceNode
		}
		var got []string
		for _, item := range items {
			got = append(got, item.Value)
			ok = ok && item.Kind == yaml.ScalarNode && item.ShortTag() == c.tag
		}
		if ok && slices.Equal(got, c.value) {
			continue
		}
		value := strings.Join(got, ", ")
		if value == "" {
			value = "nothing"
		} else if slices.Equal(got, c.value) {
			value += " of another type"
		}
		faults = append(faults, fault{t.number(e.line()), "constant " + c.path, fmt.Sprintf("is %s, the package ships %s", value, strings.Join(c.value, ", ")),
			restore(c.path, nil) + " (a VM opts out by spec.template.spec.evictionStrategy, the cluster's policy stays)"})
	}
	return faults
}

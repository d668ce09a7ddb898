package source

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// This file turns YAML in the block style that kubectl prints into JSON, and of that only the fields that are needed. It
// hands the library each scalar that is not plain to see, and whatever it does not expect it leaves to the library
// altogether: it is here because parsing all of a large dump takes the library ten times as long as a person waits.

// block reads the lines of one object.
type block struct {
	line   []byte // the current line without its indentation and its end; nil after the last
	column int    // of its first character
	raw    []byte // the whole line
	rest   []byte // the lines after it
	json   []byte // what has been read
	odd    bool   // something is not in the block style
}

// readBlock reads the fields to keep of a mapping; nil keeps all. It gives up, and ok is false, on any other style.
func readBlock(text []byte, keep fields) (object []byte, ok bool) {
	b := &block{rest: text, json: make([]byte, 0, len(text)/4)}
	b.next()
	b.mapping(b.column, keep)
	return b.json, !b.odd && b.line == nil && len(b.json) > len("{}")
}

// next goes to the next line that is neither empty nor a comment.
func (b *block) next() {
	for len(b.rest) > 0 {
		end := bytes.IndexByte(b.rest, '\n') + 1
		if end == 0 {
			end = len(b.rest)
		}
		b.raw, b.rest = b.rest[:end], b.rest[end:]
		b.line = bytes.TrimRight(b.raw, " \r\n")
		b.column = 0
		for b.column < len(b.line) && b.line[b.column] == ' ' {
			b.column++
		}
		if b.line = b.line[b.column:]; len(b.line) > 0 && b.line[0] != '#' {
			return
		}
	}
	b.line, b.raw, b.column = nil, nil, -1
}

func (b *block) isItem() bool {
	return len(b.line) > 0 && b.line[0] == '-' && (len(b.line) == 1 || b.line[1] == ' ')
}

// mapping reads the keys that start in a column.
func (b *block) mapping(column int, keep fields) {
	b.open('{')
	for b.line != nil && b.column == column && !b.isItem() && !b.odd {
		key, value, found := bytes.Cut(b.line, []byte(":"))
		if !found || !plainKey(key) || len(value) > 0 && value[0] != ' ' {
			b.odd = true
			break
		}
		below, wanted := keep[string(key)]
		if keep != nil && (!wanted || below != nil && len(below) == 0) {
			b.skip(column)
			continue
		}
		b.text(key)
		b.json = append(b.json, ':')
		b.value(bytes.TrimLeft(value, " "), below)
		b.json = append(b.json, ',')
	}
	b.close('}')
	b.odd = b.odd || b.line != nil && b.column > column
}

func (b *block) open(bracket byte) { b.json = append(b.json, bracket) }

func (b *block) close(bracket byte) {
	if last := len(b.json) - 1; b.json[last] == ',' {
		b.json = b.json[:last]
	}
	b.json = append(b.json, bracket)
}

// text writes a string.
func (b *block) text(text []byte) {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(string(text)) // a string can always be written
			b.json = append(b.json, quoted...)
			return
		}
	}
	b.json = append(append(append(b.json, '"'), text...), '"')
}

// skip passes over a key and what is below it: deeper lines, and the items of a list that may start right below the key.
func (b *block) skip(column int) {
	for b.next(); b.line != nil && (b.column > column || b.column == column && b.isItem()); b.next() {
	}
}

// value reads what stands after a key and below it.
func (b *block) value(inline []byte, keep fields) {
	column := b.column
	if len(inline) > 0 {
		b.scalar(inline, column)
		return
	}
	b.next()
	switch {
	case b.isItem() && b.column >= column:
		b.list(b.column, keep)
	case b.line != nil && b.column > column:
		b.mapping(b.column, keep)
	default:
		b.json = append(b.json, "null"...)
	}
}

// list reads the items whose dashes are in a column. What follows a dash is read as a line of its own, further right.
func (b *block) list(column int, keep fields) {
	b.open('[')
	for b.line != nil && b.column == column && b.isItem() && !b.odd {
		after := bytes.TrimLeft(b.line[1:], " ")
		b.column += len(b.line) - len(after)
		b.line = after
		switch {
		case len(after) == 0 || b.isItem():
			b.odd = true
		case bytes.Contains(after, []byte(": ")) || after[len(after)-1] == ':':
			b.mapping(b.column, keep)
		default:
			simple := b.simpleScalar(after)
			b.next()
			b.odd = b.odd || !simple || b.line != nil && b.column > column
		}
		b.json = append(b.json, ',')
	}
	b.close(']')
	b.odd = b.odd || b.line != nil && b.column > column
}

// scalar reads a value that starts on its key's line, and may go on below it.
func (b *block) scalar(inline []byte, column int) {
	from := b.rest
	b.next()
	if (b.line == nil || b.column <= column) && b.simpleScalar(inline) {
		return
	}
	for b.line != nil && b.column > column {
		b.next()
	}
	to := len(from) - len(b.rest) - len(b.raw)
	entry := append(append([]byte("v: "), inline...), '\n')
	read, err := yaml.YAMLToJSON(append(entry, from[:to]...))
	value, isOne := bytes.CutPrefix(read, []byte(`{"v":`))
	if err != nil || !isOne {
		b.odd = true
		return
	}
	b.json = append(b.json, bytes.TrimSuffix(value, []byte("}"))...)
}

// simpleScalar reads a scalar that means the same to every reader of YAML. It says false, and reads nothing, of any other.
func (b *block) simpleScalar(text []byte) bool {
	if first, last := text[0], text[len(text)-1]; first == '"' || first == '\'' {
		if len(text) < 2 || first != last || bytes.ContainsAny(text[1:len(text)-1], `"'\`) {
			return false
		}
		b.text(text[1 : len(text)-1])
		return true
	}
	switch string(text) {
	case "{}", "[]", "true", "false", "null", "0":
		b.json = append(b.json, text...)
		return true
	}
	if _, err := strconv.ParseUint(string(text), 10, 63); err == nil && text[0] != '0' {
		b.json = append(b.json, text...)
		return true
	}
	if !plainText(text) {
		return false
	}
	b.text(text)
	return true
}

// plainText says whether a scalar is text and nothing else: it starts with a letter, or has more dots than a number or
// more dashes than a date; it is no word that YAML 1.1 takes for a boolean or null, and holds nothing that means anything.
func plainText(text []byte) bool {
	switch strings.ToLower(string(text)) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	digit := '0' <= text[0] && text[0] <= '9'
	noNumber := bytes.Count(text, []byte(".")) > 1 || bytes.Count(text, []byte("-")) > 3
	if !letter(text[0]) && !(digit && noNumber) {
		return false
	}
	return !bytes.Contains(text, []byte(": ")) && !bytes.Contains(text, []byte(" #")) && text[len(text)-1] != ':'
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// plainKey says whether a key needs no YAML to be read.
func plainKey(key []byte) bool {
	for _, c := range key {
		if !letter(c) && (c < '0' || c > '9') && c != '.' && c != '/' && c != '-' && c != '_' {
			return false
		}
	}
	return len(key) > 0
}

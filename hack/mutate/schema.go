package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// element is a value of a JSON text with the stretch of it that it takes.
type element struct {
	start, end int
	members    []member
	items      []element
	text       string
}

// member is a key of an object with its value.
type member struct {
	key   string
	start int
	value element
}

// parseJSON reads a JSON text with positions, which encoding/json does not keep.
func parseJSON(source string) (root element, err error) {
	if !json.Valid([]byte(source)) {
		return root, fmt.Errorf("not valid JSON")
	}
	root, _ = parseElement(source, skip(source, 0))
	return root, nil
}

func skip(source string, at int) int {
	for strings.IndexByte(" \t\r\n:,", source[at]) >= 0 {
		at++
	}
	return at
}

// parseElement relies on the text being valid.
func parseElement(source string, at int) (element, int) {
	e := element{start: at}
	switch source[at] {
	case '{':
		for at = skip(source, at+1); source[at] != '}'; at = skip(source, at) {
			key, after := parseElement(source, at)
			name, _ := strconv.Unquote(key.text)
			var value element
			value, at = parseElement(source, skip(source, after))
			e.members = append(e.members, member{name, key.start, value})
		}
		at++
	case '[':
		for at = skip(source, at+1); source[at] != ']'; at = skip(source, at) {
			var item element
			item, at = parseElement(source, at)
			e.items = append(e.items, item)
		}
		at++
	case '"':
		for at++; source[at] != '"'; at++ {
			if source[at] == '\\' {
				at++
			}
		}
		at++
	default:
		for at < len(source) && strings.IndexByte(" \t\r\n,]}", source[at]) < 0 {
			at++
		}
	}
	e.end, e.text = at, source[e.start:at]
	return e, at
}

// constraints are the keywords that go as a whole. title, description, examples, default and the like
// say nothing about what is accepted.
var constraints = []string{
	"additionalProperties", "allOf", "anyOf", "const", "contains", "dependencies", "enum", "exclusiveMaximum", "exclusiveMinimum",
	"format", "if", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum",
	"multipleOf", "not", "oneOf", "pattern", "patternProperties", "propertyNames", "required", "type", "uniqueItems",
}

// wider is what a mutation lets in beside a type: what people write, or YAML reads, in its place.
var wider = map[string][]string{
	"string": {"boolean", "number"}, "integer": {"number", "boolean"}, "number": {"string"}, "boolean": {"string"}, "array": {"string"}, "object": {"array"},
}

// schemaMutations lists the changes of a schema that accept more, and a few that accept less.
func schemaMutations(source string) ([]mutation, error) {
	root, err := parseJSON(source)
	if err != nil {
		return nil, err
	}
	return schemaAt(source, root), nil
}

func schemaAt(source string, schema element) []mutation {
	var all []mutation
	for i, m := range schema.members {
		value := m.value
		if slices.Contains(constraints, m.key) {
			start, end := cut(len(schema.members), i, func(i int) (int, int) {
				return schema.members[i].start, schema.members[i].value.end
			}, schema)
			all = append(all, mutation{"drop-" + m.key, start, end, ""})
		}
		switch m.key {
		case "required", "enum":
			all = append(all, dropEach("drop-"+m.key+"-entry", value)...)
		case "type":
			all = append(all, typeMutations(value)...)
		case "pattern":
			inner := value.text[1 : len(value.text)-1]
			if rest, ok := strings.CutPrefix(inner, "^"); ok {
				all = append(all, mutation{"unanchor-pattern", value.start, value.end, `"` + rest + `"`})
			}
			if rest, ok := strings.CutSuffix(inner, "$"); ok {
				all = append(all, mutation{"unanchor-pattern", value.start, value.end, `"` + rest + `"`})
			}
		case "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "exclusiveMinimum", "exclusiveMaximum":
			if n, err := strconv.ParseInt(value.text, 10, 64); err == nil {
				for _, other := range []int64{n - 1, n + 1} {
					if other >= 0 || strings.HasSuffix(m.key, "imum") {
						all = append(all, mutation{"off-by-one", value.start, value.end, strconv.FormatInt(other, 10)})
					}
				}
			}
		case "properties", "definitions", "$defs", "patternProperties", "dependencies":
			if m.key != "definitions" && m.key != "$defs" {
				for j := range value.members {
					start, end := cut(len(value.members), j, func(j int) (int, int) {
						return value.members[j].start, value.members[j].value.end
					}, value)
					all = append(all, mutation{"drop-property", start, end, ""})
				}
			}
			for _, child := range value.members {
				all = append(all, schemaAt(source, child.value)...)
			}
		case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames":
			all = append(all, schemaAt(source, value)...)
		case "allOf", "anyOf", "oneOf":
			for _, child := range value.items {
				all = append(all, schemaAt(source, child)...)
			}
		}
	}
	return all
}

// cut returns the stretch to remove so that the i-th of n parts goes and the commas still fit.
func cut(n, i int, part func(int) (int, int), whole element) (int, int) {
	start, end := part(i)
	switch {
	case n == 1:
		return whole.start + 1, whole.end - 1
	case i < n-1:
		next, _ := part(i + 1)
		return start, next
	default:
		_, before := part(i - 1)
		return before, end
	}
}

func dropEach(kind string, list element) []mutation {
	var all []mutation
	for i := range list.items {
		start, end := cut(len(list.items), i, func(i int) (int, int) { return list.items[i].start, list.items[i].end }, list)
		all = append(all, mutation{kind, start, end, ""})
	}
	return all
}

// typeMutations let in one more type, and each of several types no more.
func typeMutations(value element) []mutation {
	var types []string
	if len(value.items) == 0 {
		types = []string{value.text}
	}
	for _, item := range value.items {
		types = append(types, item.text)
	}
	var all []mutation
	var added []string
	for _, declared := range types {
		for _, other := range wider[strings.Trim(declared, `"`)] {
			quoted := `"` + other + `"`
			if slices.Contains(types, quoted) || slices.Contains(added, quoted) || other == "number" && slices.Contains(types, `"string"`) && slices.Contains(types, `"number"`) {
				continue
			}
			added = append(added, quoted)
			all = append(all, mutation{"widen-type", value.start, value.end, "[" + strings.Join(append(slices.Clone(types), quoted), ", ") + "]"})
		}
	}
	if len(value.items) > 1 {
		all = append(all, dropEach("narrow-type", value)...)
	}
	return all
}

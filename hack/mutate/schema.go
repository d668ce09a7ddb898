package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

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
	root, err := hujson.Parse([]byte(source))
	if err != nil {
		return nil, err
	}
	if !root.IsStandard() {
		return nil, errors.New("the schema has comments or trailing commas, which Helm does not read")
	}
	return schemaAt(root), nil
}

func schemaAt(schema hujson.Value) []mutation {
	object, isObject := schema.Value.(*hujson.Object)
	if !isObject { // true and false are schemas, too
		return nil
	}
	var all []mutation
	for i, m := range object.Members {
		key := m.Name.Value.(hujson.Literal).String()
		if slices.Contains(constraints, key) {
			all = append(all, dropped("drop-"+key, schema, i))
		}
		switch key {
		case "required", "enum":
			all = append(all, dropEach("drop-"+key+"-entry", m.Value)...)
		case "type":
			all = append(all, typeMutations(m.Value)...)
		case "pattern":
			quoted := source(m.Value)
			inner := quoted[1 : len(quoted)-1]
			if rest, ok := strings.CutPrefix(inner, "^"); ok {
				all = append(all, replaced("unanchor-pattern", m.Value, `"`+rest+`"`))
			}
			if rest, ok := strings.CutSuffix(inner, "$"); ok {
				all = append(all, replaced("unanchor-pattern", m.Value, `"`+rest+`"`))
			}
		case "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "exclusiveMinimum", "exclusiveMaximum":
			if n, err := strconv.ParseInt(source(m.Value), 10, 64); err == nil {
				for _, other := range []int64{n - 1, n + 1} {
					if other >= 0 || strings.HasSuffix(key, "imum") {
						all = append(all, replaced("off-by-one", m.Value, strconv.FormatInt(other, 10)))
					}
				}
			}
		case "properties", "definitions", "$defs", "patternProperties", "dependencies":
			if key != "definitions" && key != "$defs" {
				all = append(all, dropEach("drop-property", m.Value)...)
			}
			for _, child := range parts(m.Value) {
				all = append(all, schemaAt(child.value)...)
			}
		case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames":
			all = append(all, schemaAt(m.Value)...)
		case "allOf", "anyOf", "oneOf":
			for _, child := range parts(m.Value) {
				all = append(all, schemaAt(child.value)...)
			}
		}
	}
	return all
}

// part is a member of an object or an item of a list: its value, and where the whole of it starts.
type part struct {
	start int
	value hujson.Value
}

func parts(whole hujson.Value) []part {
	var all []part
	switch whole := whole.Value.(type) {
	case *hujson.Object:
		for _, m := range whole.Members {
			all = append(all, part{m.Name.StartOffset, m.Value})
		}
	case *hujson.Array:
		for _, item := range whole.Elements {
			all = append(all, part{item.StartOffset, item})
		}
	}
	return all
}

// source is a value as it is written, without the blanks around it.
func source(value hujson.Value) string {
	value.BeforeExtra, value.AfterExtra = nil, nil
	return value.String()
}

func replaced(kind string, value hujson.Value, text string) mutation {
	return mutation{kind, value.StartOffset, value.EndOffset, text}
}

// dropped removes the i-th part so that the commas still fit.
func dropped(kind string, whole hujson.Value, i int) mutation {
	all := parts(whole)
	switch {
	case len(all) == 1:
		return mutation{kind, whole.StartOffset + 1, whole.EndOffset - 1, ""}
	case i < len(all)-1:
		return mutation{kind, all[i].start, all[i+1].start, ""}
	default:
		return mutation{kind, all[i-1].value.EndOffset, all[i].value.EndOffset, ""}
	}
}

func dropEach(kind string, whole hujson.Value) []mutation {
	var all []mutation
	for i := range parts(whole) {
		all = append(all, dropped(kind, whole, i))
	}
	return all
}

// typeMutations let in one more type, and each of several types no more.
func typeMutations(value hujson.Value) []mutation {
	types := []string{source(value)}
	if items := parts(value); len(items) > 0 {
		types = nil
		for _, item := range items {
			types = append(types, source(item.value))
		}
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
			all = append(all, replaced("widen-type", value, "["+strings.Join(append(slices.Clone(types), quoted), ", ")+"]"))
		}
	}
	if len(types) > 1 {
		all = append(all, dropEach("narrow-type", value)...)
	}
	return all
}

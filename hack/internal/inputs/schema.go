package inputs

import (
	"encoding/json"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// node is one place of a schema, with the keywords that say what fits there.
type node struct{ *jsonschema.Schema }

// at is the schema that holds for a place: a reference leads to it.
func at(schema *jsonschema.Schema) node {
	for schema.Ref != nil {
		schema = schema.Ref
	}
	return node{schema}
}

// children are the places below: of an object by key, where a pattern's key starts with keyFrom, of a list its item.
func (n node) children() map[string]node {
	below := map[string]node{}
	for key, schema := range n.Properties {
		below[key] = at(schema)
	}
	for pattern, schema := range n.PatternProperties {
		below[keyFrom+pattern.String()] = at(schema)
	}
	if item, ok := n.item(); ok {
		below["0"] = item
	}
	return below
}

func (n node) item() (node, bool) {
	schema := n.Items2020
	if before, ok := n.Items.(*jsonschema.Schema); ok { // until draft 2020-12
		schema = before
	}
	if schema == nil {
		return node{}, false
	}
	return at(schema), true
}

// types lists what the place may hold but null: a valid document is rather one that says something.
func (n node) types() []string {
	if n.Types == nil {
		return nil
	}
	return slices.DeleteFunc(n.Types.ToStrings(), func(name string) bool { return name == "null" })
}

// places lists every place of the schema as a path through a document; a list stands for its first item.
func (n node) places(path []string) [][]string {
	all := [][]string{path}
	below := n.children()
	for _, step := range slices.Sorted(maps.Keys(below)) {
		all = append(all, below[step].places(append(slices.Clone(path), step))...)
	}
	return all
}

// keyFrom marks a step whose key is any that a pattern allows.
const keyFrom = "\x00"

// valid makes a value that fits the place, and notes in trail under which keys it put the given path.
func (n node) valid(rng *rand.Rand, path []string, trail *[]string) any {
	if n.Enum != nil && len(path) == 0 {
		return n.Enum.Values[rng.IntN(len(n.Enum.Values))]
	}
	types := n.types()
	if len(types) == 0 && len(path) == 0 { // anything fits, so what it is meant for is all that is known
		return append(slices.Clone(n.Examples), nil)[rng.IntN(len(n.Examples)+1)]
	}
	if len(types) == 0 {
		types = []string{"object"}
	}
	kind := types[rng.IntN(len(types))]
	item, isList := n.item()
	if len(path) > 0 {
		kind = "object"
		if isList {
			kind = "array"
		}
	}
	step := func(below bool, next node, key string) any {
		if !below {
			return next.valid(rng, nil, nil)
		}
		*trail = append(*trail, key)
		return next.valid(rng, path[1:], trail)
	}
	switch kind {
	case "object":
		object := map[string]any{}
		children := n.children()
		for _, key := range slices.Sorted(maps.Keys(children)) {
			below := len(path) > 0 && path[0] == key
			if pattern, ok := strings.CutPrefix(key, keyFrom); ok {
				name := fromPattern(rng, pattern, 40)
				object[name] = step(below, children[key], name)
			} else if below || slices.Contains(n.Required, key) || rng.IntN(3) > 0 {
				object[key] = step(below, children[key], key)
			}
		}
		return object
	case "array":
		list := []any{}
		for i := range 1 + rng.IntN(3) {
			made := step(i == 0 && len(path) > 0, item, "0")
			if !slices.ContainsFunc(list, func(other any) bool { return text(other) == text(made) }) {
				list = append(list, made)
			}
		}
		return list
	case "boolean":
		return rng.IntN(2) == 0
	case "integer", "number":
		low, high := int64(1), int64(1e6)
		if n.Minimum != nil {
			low = whole(n.Minimum)
		}
		if n.Maximum != nil {
			high = whole(n.Maximum)
		}
		if rng.IntN(2) == 0 {
			high = min(high, low+100)
		}
		return low + rng.Int64N(high-low+1)
	}
	return n.validString(rng)
}

// whole is a bound; no schema of ours has one with a fraction.
func whole(bound *big.Rat) int64 { return bound.Num().Int64() / bound.Denom().Int64() }

func (n node) validString(rng *rand.Rand) string {
	var examples []string
	for _, example := range n.Examples {
		if s, ok := example.(string); ok {
			examples = append(examples, s)
		}
	}
	if len(examples) > 0 && (n.Pattern == nil || rng.IntN(2) == 0) {
		return examples[rng.IntN(len(examples))]
	}
	if n.Pattern == nil {
		return "word"
	}
	longest := 200
	if n.MaxLength != nil {
		longest = *n.MaxLength
	}
	return fromPattern(rng, n.Pattern.String(), longest)
}

func (n node) fits(s string) bool { return n.Pattern == nil || n.Pattern.MatchString(s) }

// ofLength stretches a valid string to a length at which it still fits the pattern, so that the length
// is all that can be wrong with it.
func (n node) ofLength(s string, length int) (string, bool) {
	missing := length - utf8.RuneCountInString(s)
	if missing <= 0 || s == "" {
		return s, missing == 0
	}
	for i := range len(s) {
		for _, filler := range []string{s[i : i+1], "a", "0", ".a", "a."} {
			stretched := s[:i] + strings.Repeat(filler, missing/len(filler)) + strings.Repeat("a", missing%len(filler)) + s[i:]
			if utf8.ValidString(stretched) && n.fits(stretched) {
				return stretched, true
			}
		}
	}
	return "", false
}

// fromPattern makes a string that a regular expression matches, empty if none of the first fifty is short enough.
func fromPattern(rng *rand.Rand, pattern string, longest int) string {
	generator := rapid.StringMatching(pattern)
	for range 50 {
		if s := generator.Example(rng.Int()); s != "" && utf8.RuneCountInString(s) <= longest {
			return s
		}
	}
	return ""
}

// text is a value in JSON, which is also YAML.
func text(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // only values that this package made itself come here
	}
	return strings.TrimSpace(b.String())
}

package inputs

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// node is one place of a schema, with the keywords that say what fits there.
type node struct {
	Ref               string           `json:"$ref"`
	Type              any              `json:"type"`
	Properties        map[string]*node `json:"properties"`
	PatternProperties map[string]*node `json:"patternProperties"`
	Items             *node            `json:"items"`
	Required          []string         `json:"required"`
	Enum              []any            `json:"enum"`
	Examples          []any            `json:"examples"`
	Pattern           string           `json:"pattern"`
	MaxLength         *int             `json:"maxLength"`
	Minimum           *float64         `json:"minimum"`
	Maximum           *float64         `json:"maximum"`
	Definitions       map[string]*node `json:"definitions"`
	Defs              map[string]*node `json:"$defs"`
	Closed            json.RawMessage  `json:"additionalProperties"`
	PropertyNames     map[string]any   `json:"propertyNames"`
	pattern           *regexp.Regexp
}

// parse reads a schema and puts every definition in the place of its reference.
func parse(schema []byte) (*node, error) {
	root := &node{}
	if err := json.Unmarshal(schema, root); err != nil {
		return nil, err
	}
	return root, root.resolve(root, 0)
}

func (n *node) resolve(root *node, depth int) error {
	if depth > 50 {
		return fmt.Errorf("the schema nests more than 50 levels, or refers to itself")
	}
	if n.Ref != "" {
		name := n.Ref[strings.LastIndex(n.Ref, "/")+1:]
		target := root.Definitions[name]
		if target == nil {
			target = root.Defs[name]
		}
		if target == nil {
			return fmt.Errorf("%s: only references to definitions of the same file are understood", n.Ref)
		}
		*n = *target
	}
	if n.Pattern != "" {
		var err error
		if n.pattern, err = regexp.Compile(n.Pattern); err != nil {
			return err
		}
	}
	children := slices.Concat(slices.Collect(maps.Values(n.Properties)), slices.Collect(maps.Values(n.PatternProperties)))
	if n.Items != nil {
		children = append(children, n.Items)
	}
	for _, child := range children {
		if err := child.resolve(root, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// types lists what the place may hold, null last: a valid document is rather one that says something.
func (n *node) types() []string {
	var types []string
	switch declared := n.Type.(type) {
	case string:
		types = []string{declared}
	case []any:
		for _, t := range declared {
			if name, ok := t.(string); ok && name != "null" {
				types = append(types, name)
			}
		}
	}
	return types
}

// places lists every place of the schema as a path through a document; a list stands for its first item.
func (n *node) places(path []string) [][]string {
	all := [][]string{path}
	for _, key := range slices.Sorted(maps.Keys(n.Properties)) {
		all = append(all, n.Properties[key].places(append(slices.Clone(path), key))...)
	}
	for _, pattern := range slices.Sorted(maps.Keys(n.PatternProperties)) {
		all = append(all, n.PatternProperties[pattern].places(append(slices.Clone(path), keyFrom+pattern))...)
	}
	if n.Items != nil {
		all = append(all, n.Items.places(append(slices.Clone(path), "0"))...)
	}
	return all
}

// keyFrom marks a step whose key is any that a pattern allows.
const keyFrom = "\x00"

// valid makes a value that fits the place, and notes in trail under which keys it put the given path.
func (n *node) valid(rng *rand.Rand, path []string, trail *[]string) any {
	if len(n.Enum) > 0 && len(path) == 0 {
		return n.Enum[rng.IntN(len(n.Enum))]
	}
	types := n.types()
	if len(types) == 0 {
		return nil
	}
	kind := types[rng.IntN(len(types))]
	if len(path) > 0 {
		kind = "object"
		if n.Items != nil {
			kind = "array"
		}
	}
	switch kind {
	case "object":
		object := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(n.Properties)) {
			below := len(path) > 0 && path[0] == key
			if !below && !slices.Contains(n.Required, key) && rng.IntN(3) == 0 {
				continue
			}
			object[key] = n.Properties[key].step(rng, path, trail, below, key)
		}
		for _, pattern := range slices.Sorted(maps.Keys(n.PatternProperties)) {
			below := len(path) > 0 && path[0] == keyFrom+pattern
			key := fromPattern(rng, pattern, 40)
			object[key] = n.PatternProperties[pattern].step(rng, path, trail, below, key)
		}
		return object
	case "array":
		list := []any{}
		for i := range 1 + rng.IntN(3) {
			item := n.Items.step(rng, path, trail, i == 0 && len(path) > 0, "0")
			if !slices.ContainsFunc(list, func(other any) bool { return text(other) == text(item) }) {
				list = append(list, item)
			}
		}
		return list
	case "boolean":
		return rng.IntN(2) == 0
	case "integer", "number":
		low, high := 1.0, 1e6
		if n.Minimum != nil {
			low = *n.Minimum
		}
		if n.Maximum != nil {
			high = *n.Maximum
		}
		if rng.IntN(2) == 0 {
			high = min(high, low+100)
		}
		return int64(low + float64(rng.Int64N(int64(high-low)+1)))
	}
	return n.validString(rng)
}

func (n *node) step(rng *rand.Rand, path []string, trail *[]string, below bool, key string) any {
	if !below {
		return n.valid(rng, nil, nil)
	}
	*trail = append(*trail, key)
	return n.valid(rng, path[1:], trail)
}

func (n *node) validString(rng *rand.Rand) string {
	var examples []string
	for _, example := range n.Examples {
		if s, ok := example.(string); ok {
			examples = append(examples, s)
		}
	}
	if n.Pattern == "" || len(examples) > 0 && rng.IntN(2) == 0 {
		return append(examples, "word")[0]
	}
	longest := 200
	if n.MaxLength != nil {
		longest = *n.MaxLength
	}
	for range 50 {
		if s := fromPattern(rng, n.Pattern, 40); s != "" && n.fits(s) && utf8.RuneCountInString(s) <= longest {
			return s
		}
	}
	return append(examples, "")[0]
}

func (n *node) fits(s string) bool { return n.pattern == nil || n.pattern.MatchString(s) }

// ofLength stretches a valid string to a length at which it still fits the pattern, so that the length
// is all that can be wrong with it.
func (n *node) ofLength(s string, length int) (string, bool) {
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

// fromPattern makes a string that a regular expression matches, printable where the pattern lets it.
func fromPattern(rng *rand.Rand, pattern string, longest int) string {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	var b strings.Builder
	write(rng, &b, parsed.Simplify(), longest)
	return b.String()
}

func write(rng *rand.Rand, b *strings.Builder, re *syntax.Regexp, longest int) {
	repeat := func(low, high int) {
		if b.Len() > longest {
			high = low
		}
		// Short strings are likelier: two numbers of the same length are more often near each other.
		for range low + rng.IntN(rng.IntN(high-low+1)+1) {
			write(rng, b, re.Sub[0], longest)
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		var printable []rune
		for i := 0; i < len(re.Rune); i += 2 {
			for r := max(re.Rune[i], ' '); r <= min(re.Rune[i+1], 'ž'); r++ {
				if r <= '~' || r >= 'À' {
					printable = append(printable, r)
				}
			}
		}
		if len(printable) == 0 {
			printable = []rune{re.Rune[0]}
		}
		b.WriteRune(printable[rng.IntN(len(printable))])
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteRune('a' + rune(rng.IntN(26)))
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			write(rng, b, sub, longest)
		}
	case syntax.OpAlternate:
		write(rng, b, re.Sub[rng.IntN(len(re.Sub))], longest)
	case syntax.OpStar:
		repeat(0, 8)
	case syntax.OpPlus:
		repeat(1, 8)
	case syntax.OpQuest:
		repeat(0, 1)
	case syntax.OpRepeat:
		high := re.Max
		if high < 0 {
			high = re.Min + 8
		}
		repeat(re.Min, high)
	}
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

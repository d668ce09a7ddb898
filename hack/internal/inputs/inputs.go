// Package inputs makes values files from a values.schema.json: valid ones, each changed at one place into
// something suspicious that stands there as raw YAML text, so that YAML's own surprises come along.
package inputs

import (
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// Input is a values file.
type Input struct {
	// YAML is the file's text.
	YAML string
	// Place is the path of keys and indices to the value that was changed.
	Place []string
	// Change says what stands there now.
	Change string
}

// Pointer is the place as a JSON pointer, the way that schema messages write it.
func (i Input) Pointer() string {
	var b strings.Builder
	for _, step := range i.Place {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
	}
	return b.String()
}

// Dotted is the place the way that the chart's own messages write it.
func (i Input) Dotted() string {
	var b strings.Builder
	for n, step := range i.Place {
		switch _, err := strconv.Atoi(step); {
		case err == nil:
			b.WriteString("[" + step + "]")
		case n > 0:
			b.WriteString("." + step)
		default:
			b.WriteString(step)
		}
	}
	return b.String()
}

// raw is put in the place of any value, as it stands.
var raw = []string{
	"null", "~", "", `""`, "yes", "no", "on", "Off", "y", "n", "true", "True", "FALSE", "0", "-0", "-1", "1", "2", "+1",
	"0951", "0o17", "0x10", "0b11", "1_000", "1e10", "1E400", "1.0", "1.5", "1000000", "9007199254740993", "99999999999999999999",
	".inf", "-.Inf", ".nan", "12:30:45", "2001-01-01", "<<", "=", "[]", "{}", "[1]", "[null]", "[[]]", "{a: b}", "{? a}",
	"!!str 5", "!!int \"5\"", "!!binary aGk=", "!!null x", "!unknown x", "&anchor x", "*anchor", "{{ .Release.Name }}",
	"{{- fail \"x\" }}", "a: b", "a # b", "# a", "- a", "| a", "> a", "@a", "`a`", "%a", "'a", "\"a", "[a", "{a", "a\tb", "---", "...",
}

// quoted is put in the place of any scalar, as a string that YAML cannot misread.
var quoted = []string{
	"true", "no", "null", "~", "0", "0951", "1e10", "0x10", "1_000", "1.5", "12:30:45", "2001-01-01", ".inf", "<<", "=",
	" ", "a ", " a", "a b", "a: b", "a:", "a #b", "#a", "a, b", "[a]", "{a: b}", "- a", "-", "--", "---", "...", "? a", "*a", "&a", "!a", "|", ">", "%a", "@a", "`a`",
	"'", "''", `"`, `a"b`, "a'b", `\`, `\n`, "a\nb", "a\n", "\na", "a\n  b: c", "a\n---\nkind: Secret", "a\n# b", "a\r\nb", "a\tb", "a\x00b", "\x7f",
	"{{ .Release.Name }}", "{{", "}}", `{{ fail "x" }}`, "{{/* a */}}", "${HOME}", "$(HOME)", "%s%d", "<no value>", "HELM_ERR_START a HELM_ERR_END",
	"é", "e\u0301", "日本", "😀", "\u202ea", "\u2028", "\u0085", "\ufeffa", "\u200b", "１２３", "İ", "ſ", "../a", "a/b", "/", ".", "..", "a..b", "a_b", "a-", "-a", "A",
	"x.y/z/w", "10DE:2236", "2Gi", "-1Gi", "0", "00", "1e400", "vm-exportproxy", "a,vm-exportproxy", "VM-exportproxy", "HotplugVolumes", "Template", "ImageVolume",
}

// derived makes strings from a valid one.
var derived = []struct {
	name string
	of   func(string) string
}{
	{"in upper case", strings.ToUpper},
	{"in lower case", strings.ToLower},
	{"with a letter before it", func(s string) string { return "!" + s }},
	{"with a letter after it", func(s string) string { return s + "!" }},
	{"with a blank before it", func(s string) string { return " " + s }},
	{"with a blank after it", func(s string) string { return s + " " }},
	{"with a line end after it", func(s string) string { return s + "\n" }},
	{"with a line end before it", func(s string) string { return "\n" + s }},
	{"with a comment after it", func(s string) string { return s + " # a" }},
	{"with a key after it", func(s string) string { return s + "\nkey: value" }},
	{"with a document after it", func(s string) string { return s + "\n---\nkind: Secret" }},
	{"with a template after it", func(s string) string { return s + "{{ .Release.Name }}" }},
	{"with a quote after it", func(s string) string { return s + "'" }},
	{"with a double quote after it", func(s string) string { return s + `"` }},
	{"with a NUL after it", func(s string) string { return s + "\x00" }},
	{"twice", func(s string) string { return s + s }},
	{"without its end", func(s string) string { return s[:max(len(s)-1, 0)] }},
	{"without its start", func(s string) string { return s[min(1, len(s)):] }},
	{"with a full-width digit after it", func(s string) string { return s + "１" }},
	{"very long", func(s string) string { return s + strings.Repeat("a", 300) }},
	{"100,000 letters long", func(s string) string { return s + strings.Repeat("a", 100_000) }},
}

// Generator makes inputs. It is deterministic: one seed, one sequence.
type Generator struct {
	root   node
	rng    *rand.Rand
	accept func(string) bool
}

// New makes values for a schema. Values that the schema cannot judge are judged by accept, which says whether the
// chart takes a values file: what is changed must have been valid before.
func New(schema *jsonschema.Schema, seed uint64, accept func(valuesYAML string) bool) *Generator {
	return &Generator{root: at(schema), rng: rand.New(rand.NewPCG(seed, 0)), accept: accept}
}

// Round returns one input for every place of the schema and every change that it can take, in random
// order. Another round makes the same changes to other values.
func (g *Generator) Round() ([]Input, error) {
	var round []Input
	for _, place := range g.root.places(nil) {
		var bases []base
		// Several, since a value elsewhere in a base may allow what stands at the place, and hide a fault.
		for tries := 0; len(bases) < 6 && tries < 1000; tries++ {
			if made := g.base(place); g.accept(made.yaml("", false)) {
				bases = append(bases, made)
			}
		}
		if len(bases) == 0 {
			return nil, fmt.Errorf("%s: no valid values were found that reach this place", strings.Join(place, "."))
		}
		round = append(round, g.changes(bases)...)
	}
	g.rng.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
	return round, nil
}

// Valid returns a values file that the schema accepts, whatever the chart says to it.
func (g *Generator) Valid() string { return g.base(nil).with(g.root.valid(g.rng, nil, nil)) }

// base is a valid document and the place in it that will be changed.
type base struct {
	document any
	place    []string
	node     node
	// holed is the document's text with the hole in the place.
	holed string
}

func (g *Generator) base(place []string) base {
	var trail []string
	document := g.root.valid(g.rng, place, &trail)
	there := g.root
	for _, step := range place {
		there = there.children()[step]
	}
	made := base{document: document, place: trail, node: there}
	made.holed = made.with(hole)
	return made
}

// changes makes every change of one place, to each of the bases in turn.
func (g *Generator) changes(bases []base) []Input {
	var made []Input
	add := func(b base, change, yaml string) {
		made = append(made, Input{YAML: yaml, Place: b.place, Change: change})
	}
	turn := 0
	next := func() base { turn++; return bases[turn%len(bases)] }
	for _, value := range raw {
		b := next()
		add(b, strconv.Quote(value)+" as it stands", b.yaml(value, true))
	}
	n := bases[0].node
	if len(n.children()) == 0 {
		for _, value := range quoted {
			b := next()
			add(b, "the string "+text(value), b.yaml(text(value), true))
		}
		for _, change := range derived {
			b := next()
			if value, ok := b.value().(string); ok {
				add(b, "the value "+change.name, b.yaml(text(change.of(value)), true))
			}
		}
		b := next()
		if value, ok := b.value().(string); ok && value != "" {
			add(b, "the value unquoted", b.yaml(value, true))
		}
		if n.MaxLength != nil {
			for _, length := range []int{*n.MaxLength, *n.MaxLength + 1} {
				if value, ok := n.ofLength(n.validString(g.rng), length); ok {
					add(b, fmt.Sprintf("%d letters", length), b.yaml(text(value), true))
				}
			}
		}
	}
	for _, bound := range []*big.Rat{n.Minimum, n.Maximum} {
		if bound != nil {
			for _, value := range []int64{whole(bound) - 1, whole(bound), whole(bound) + 1} {
				b := next()
				add(b, "a bound, or one beside it", b.yaml(strconv.FormatInt(value, 10), true))
			}
		}
	}
	if n.Enum != nil {
		for _, value := range n.Enum.Values {
			b := next()
			add(b, "another of the enum", b.yaml(text(value), true))
		}
	}
	b := next()
	switch value := b.value().(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if upper := strings.ToUpper(key); upper != key {
				add(b, "the key "+key+" in upper case", b.with(swapKey(value, key, upper)))
			}
			without := maps.Clone(value)
			delete(without, key)
			add(b, "no key "+key, b.with(without))
		}
		for _, key := range []string{"unknownKey", "unknown: key", "a\nb", "{{ .Release.Name }}", "#", "", "é", "true", strings.Repeat("a", 64)} {
			with := maps.Clone(value)
			with[key] = "x"
			add(b, "an unknown key "+text(key), b.with(with))
		}
	case []any:
		add(b, "an item twice", b.with(append(slices.Clone(value), value[0])))
		add(b, "a null item", b.with(append(slices.Clone(value), nil)))
		add(b, "no list but its item", b.with(value[0]))
	}
	if len(b.place) > 0 {
		if doubled, ok := b.doubled(); ok {
			add(b, "the key twice", doubled)
		}
		lifted := b.value()
		add(b, "the value in a list", b.with([]any{lifted}))
	}
	return made
}

func swapKey(m map[string]any, from, to string) map[string]any {
	swapped := maps.Clone(m)
	swapped[to] = swapped[from]
	delete(swapped, from)
	return swapped
}

// hole stands in the document where the raw text will stand; no schema of ours allows it as a value.
const hole = "HOLE-0f5a"

func (b base) value() any {
	at := b.document
	for _, step := range b.place {
		at = child(at, step)
	}
	return at
}

func child(at any, step string) any {
	switch parent := at.(type) {
	case map[string]any:
		return parent[step]
	case []any:
		index, _ := strconv.Atoi(step)
		return parent[index]
	}
	return nil
}

// replaced is the document with another value at the place. Nothing is changed in the document itself,
// which other inputs are made from.
func replaced(at any, place []string, value any) any {
	if len(place) == 0 {
		return value
	}
	switch parent := at.(type) {
	case map[string]any:
		copied := maps.Clone(parent)
		copied[place[0]] = replaced(parent[place[0]], place[1:], value)
		return copied
	case []any:
		copied := slices.Clone(parent)
		index, _ := strconv.Atoi(place[0])
		copied[index] = replaced(parent[index], place[1:], value)
		return copied
	}
	return at
}

func (b base) with(value any) string {
	out, err := yaml.Marshal(replaced(b.document, b.place, value))
	if err != nil {
		panic(err) // only values that this package made itself come here
	}
	return string(out)
}

// yaml is the document, with text in the place if change is set.
func (b base) yaml(text string, change bool) string {
	if !change {
		return b.with(b.value())
	}
	return strings.Replace(b.holed, hole, text, 1)
}

// doubled is the document with the key of the place written twice, the second time with its valid value.
func (b base) doubled() (string, bool) {
	lines := strings.Split(b.holed, "\n")
	for i, line := range lines {
		key, ok := strings.CutSuffix(line, hole)
		if !ok || !strings.HasSuffix(key, ": ") {
			continue
		}
		start := len(key) - len(strings.TrimLeft(key, " -"))
		lines[i] = key + "null\n" + strings.Repeat(" ", start) + key[start:] + text(b.value())
		return strings.Join(lines, "\n"), true
	}
	return "", false
}

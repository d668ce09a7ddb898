package inputs

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const schema = `{
  "type": "object", "additionalProperties": false,
  "definitions": {"name": {"type": "string", "pattern": "^[a-z]([-a-z]*[a-z])?$", "maxLength": 9}},
  "properties": {
    "names": {"type": ["array", "null"], "uniqueItems": true, "items": {"$ref": "#/definitions/name"}},
    "labels": {"type": "object", "patternProperties": {"^[a-z]+$": {"type": "string", "examples": ["true"]}}},
    "ratio": {"type": ["integer", "string"], "minimum": 1, "maximum": 5, "pattern": "^$"}
  }
}`

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("file:///a.json", document))
	compiled, err := compiler.Compile("file:///a.json")
	require.NoError(t, err)
	return compiled
}

func round(t *testing.T, seed uint64) []Input {
	t.Helper()
	all, err := New(compiled(t), seed, func(string) bool { return true }).Round()
	require.NoError(t, err)
	return all
}

func TestOneSeedMakesOneSequence(t *testing.T) {
	assert.Equal(t, round(t, 1), round(t, 1))
	assert.NotEqual(t, round(t, 1), round(t, 2))
}

func TestEveryPlaceOfTheSchemaIsReached(t *testing.T) {
	places := map[string]int{}
	for _, input := range round(t, 1) {
		place := input.Dotted()
		if strings.HasPrefix(place, "labels.") {
			place = "labels.*"
		}
		places[place]++
	}
	for _, place := range []string{"", "names", "names[0]", "labels", "labels.*", "ratio"} {
		assert.Greater(t, places[place], 50, place)
	}
	assert.Len(t, places, 6)
}

func TestEveryConstraintIsBrokenAlone(t *testing.T) {
	var all []string
	for _, input := range round(t, 1) {
		all = append(all, input.YAML)
	}
	for name, pattern := range map[string]string{
		"a string one letter too long": `(?m)^- "[a-z][-a-z]{8}[a-z]"$`,
		"a string as long as it may":   `(?m)^- "[a-z][-a-z]{7}[a-z]"$`,
		"a number below the minimum":   `(?m)^ratio: 0$`,
		"a number above the maximum":   `(?m)^ratio: 6$`,
		"an unknown key":               `(?m)^unknownKey: x$`,
		"a key in another case":        `(?m)^NAMES:`,
		"a key twice":                  `(?m)^ratio: null\nratio: `,
		"a null item":                  `(?m)^- null$`,
		"a null":                       `(?m)^names: null$`,
		"a boolean of YAML 1.1":        `(?m)^- yes$`,
		"an octal number":              `(?m)^- 0951$`,
		"a template":                   `(?m)^- "\{\{ .Release.Name \}\}"$`,
		"a line end and a key":         `\\nkey: value"`,
		"an item twice":                `(?m)^- ([a-z])\n(- .*\n)*- [a-z]`,
	} {
		assert.NotEmpty(t, regexp.MustCompile(pattern).FindString(strings.Join(all, "\n\n")), name)
	}
}

func TestWithoutAChangeAnInputIsValid(t *testing.T) {
	compiled := compiled(t)
	generator := New(compiled, 1, func(string) bool { return true })
	for range 200 {
		values := map[string]any{}
		text := generator.Valid()
		require.NoError(t, yaml.Unmarshal([]byte(text), &values))
		assert.NoError(t, compiled.Validate(values), text)
	}
}

func TestAPlaceThatNoValidValuesReachIsAnError(t *testing.T) {
	generator := New(compiled(t), 1, func(text string) bool { return !strings.Contains(text, "ratio") })
	_, err := generator.Round()
	assert.ErrorContains(t, err, "ratio: no valid values were found")
}

func TestAPlaceIsWrittenAsAPointerAndWithDots(t *testing.T) {
	input := Input{Place: []string{"a", "0", "b/c~d"}}
	assert.Equal(t, "/a/0/b~1c~0d", input.Pointer())
	assert.Equal(t, "a[0].b/c~d", input.Dotted())
}

func TestStringsMadeFromAPatternMatchIt(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, pattern := range []string{`^[0-9A-Fa-f]{4}:[0-9]{1,3}$`, `^(a|b+|c*d?)$`, `^[^\s\p{C}]([^\p{C}]*[^\s\p{C}])?$`, `^.+\.é$`} {
		for range 100 {
			assert.Regexp(t, pattern, fromPattern(rng, pattern, 40))
		}
	}
}

package source

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// objectsOfTheDumps are the objects of every dump that the command is tested with, also of the one that is as kubectl
// prints it.
func objectsOfTheDumps(t *testing.T) []piece {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "command", "testdata", "*.yaml*"))
	require.NoError(t, err)
	var pieces []piece
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		text := strings.NewReplacer("NAMESPACE", "tenant", "NAME", "vm", "NODE", "node-a", "NUMBER", "0000001").Replace(string(raw))
		if strings.HasSuffix(file, ".tmpl") {
			text = "items:\n" + text + "kind: List\n"
		}
		if strings.HasSuffix(file, ".golden") {
			continue
		}
		require.NoError(t, split(bufio.NewReader(strings.NewReader(text)), func(p piece) { pieces = append(pieces, p) }), file)
	}
	require.NotEmpty(t, pieces)
	return pieces
}

func TestWhatIsReadIsWhatTheLibraryReads(t *testing.T) {
	for _, p := range objectsOfTheDumps(t) {
		var want map[string]any
		require.NoError(t, yaml.Unmarshal(p.text, &want))
		kind, err := kindOf(want["apiVersion"].(string), want["kind"].(string))
		require.NoError(t, err)
		got, ok := readBlock(p.text, kind.keep)
		require.True(t, ok, "%s is in the style that kubectl prints:\n%s", p, p.text)
		assert.JSONEq(t, asJSON(t, kept(want, kind.keep)), string(got))
	}
}

// kept are the fields to keep of what the library has read.
func kept(value any, keep fields) any {
	switch value := value.(type) {
	case map[string]any:
		some := map[string]any{}
		for key, below := range value {
			if wanted, isWanted := keep[key]; isWanted && wanted == nil {
				some[key] = below
			} else if isWanted && len(wanted) > 0 {
				some[key] = kept(below, wanted)
			}
		}
		return some
	case []any:
		for i := range value {
			value[i] = kept(value[i], keep)
		}
	}
	return value
}

func TestOnlyTheFieldsToKeepAreRead(t *testing.T) {
	text := "a:\n  b: 1\n  c:\n  - d: 2\n    e: |\n      f: 3\n\n      b: 4\n    g: 5\n  - e: 6\n    d: 7\nh: 8\n"
	got, ok := readBlock([]byte(text), fields{"a": {"b": nil, "c": {"d": nil}}})
	require.True(t, ok)
	assert.JSONEq(t, `{"a": {"b": 1, "c": [{"d": 2}, {"d": 7}]}}`, string(got))
}

func TestEveryStyleMeansWhatItMeansToTheLibrary(t *testing.T) {
	for _, text := range []string{
		"a: yes\nb: No\nc: ~\nd: null\ne: True\nf: on\n",
		"a: 0x1f\nb: 010\nc: 1e3\nd: .5\ne: 1_000\nf: -1\ng: +1\nh: 12:30:45\n",
		"a: 1.2.3\nb: 10.0.0.1\nc: 2025-01-02\nd: 0-0-0-0-0\ne: 1-2\n",
		"a: 'it''s'\nb: \"tab\\t\"\nc: ''\nd: \"\"\ne: 'x\n  y'\n",
		"a: text # comment\nb: 'text # none'\nc: text#none\n",
		"a: |\n  one\n\n  two\nb: >-\n  three\n  four\nc: 5\n",
		"a: one\n  two\n  three\nb: four\n",
		"a: {b: 1, c: [2, 3]}\nd: []\ne: {}\n",
		"a:\n- b\n- c: 1\n  d: 2\n-   e: 3\n    f: 4\ng: 5\n",
		"a:\n  - b\n  - c\n",
		"a:\n- - 1\n  - 2\n",
		"a: &x 1\nb: *x\n",
		"\"a\": 1\n? b\n: 2\n",
		"a:\nb:\n  c:\nd: 1\n",
		"a: b: c\n",
		"  a: 1\n  b:\n    c: 2\n",
		"a: 1\r\nb: 2\r\n",
		"a:\n-\n  b: 1\n",
		"- a\n- b\n",
		"a: !!str 1\n",
		"a: '\n",
		"\ta: 1\n",
	} {
		var want map[string]any
		err := yaml.Unmarshal([]byte(text), &want)
		got, ok := readBlock([]byte(text), nil)
		if !ok {
			continue // the library reads it
		}
		require.NoError(t, err, "the library refuses %q", text)
		assert.JSONEq(t, asJSON(t, want), string(got), "%q", text)
	}
}

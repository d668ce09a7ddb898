package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// applied applies the mutations of one kind.
func applied(source string, all []mutation, kind string) []string {
	var found []string
	for _, m := range all {
		if changed := source[:m.start] + m.text + source[m.end:]; m.kind == kind && !slices.Contains(found, changed) {
			found = append(found, changed)
		}
	}
	return found
}

func TestEveryTemplateOperatorMakesItsChanges(t *testing.T) {
	tests := []struct {
		kind, source string
		want         []string
	}{
		{"delete-line", "a: 1\n\nb: 2\n", []string{"\nb: 2\n", "a: 1\n\n"}},
		{"delete-block", "a:\n  b: 1\n  c: 2\nd: 3\n", []string{"d: 3\n"}},
		{"delete-block", "a:\n  {{- if .x }}\n  b: 1\n  {{- end }}\nd: 3\n", []string{"d: 3\n"}},
		{"delete-block", "{{- if .x }}\na:\n  b: 1\n  {{- end }}\n", nil},
		{"delete-item", "a:\n- b: 1\n  c: 2\n- d\n", []string{"a:\n- d\n"}},
		{"delete-item", `{{ list 1 .a (b c) }}`, []string{`{{ list .a (b c) }}`, `{{ list 1 (b c) }}`, `{{ list 1 .a }}`}},
		{"delete-item", `{{ dict "a" 1 "b" .c }}`, []string{`{{ dict "b" .c }}`, `{{ dict "a" 1 }}`}},
		{"swap-items", "a:\n- b\n- c: 1\n  d: 2\n", []string{"a:\n- c: 1\n  d: 2\n- b\n"}},
		{"swap-items", `{{ .a | ternary "b" "c" }}`, []string{`{{ .a | ternary "c" "b" }}`}},
		{"change-scalar", "a: true\n", []string{"a: false\n", "a: null\n"}},
		{"change-scalar", "a: 5 # why\n", []string{"a: 6 # why\n", "a: null # why\n"}},
		{"change-scalar", "- a\n", []string{"- mutant\n", "- null\n"}},
		{"change-scalar", "a: \"true\"\n", []string{"a: \"false\"\n", "a: true\n", "a: null\n"}},
		{"change-scalar", "a: {}\n", []string{"a: null\n"}},
		{"change-scalar", "a: 1m\n", []string{"a: mutant\n", "a: null\n", "a: 2m\n"}},
		{"change-scalar", "a: {{ .b }}\n", []string{"a: mutant\n", "a: null\n"}},
		{"change-scalar", "{{ a 7 false \"b\" }}", []string{"{{ a 8 false \"b\" }}", "{{ a 7 true \"b\" }}", "{{ a 7 false \"mutant\" }}"}},
		{"change-scalar", `{{ semverCompare "<1.35" . }}`, []string{`{{ semverCompare "mutant" . }}`, `{{ semverCompare "<2.35" . }}`, `{{ semverCompare "<1.36" . }}`}},
		{"change-scalar", "{{ include \"name\" . }}{{ define \"other\" }}{{ end }}", nil},
		{"change-scalar", "{{- /* a: 5\n- true */}}\n", nil},
		{"dedent", "a:\n  b: 1\n  {{- end }}\n", []string{"a:\nb: 1\n  {{- end }}\n"}},
		{"dedent", "{{ .a | nindent 6 }}", []string{"{{ .a | nindent 4 }}"}},
		{"negate-condition", "{{- if and .a (not .b) -}}", []string{"{{- if not (and .a (not .b)) -}}", "{{- if and .a (.b) -}}"}},
		{"negate-condition", "{{ if .a }}{{ else if .b }}{{ end }}", []string{"{{ if not (.a) }}{{ else if .b }}{{ end }}", "{{ if .a }}{{ else if not (.b) }}{{ end }}"}},
		{"empty-range", "{{ range $i, $a := .b }}", []string{"{{ range $i, $a := list }}"}},
		{"drop-with", "{{- with $a := .b | c }}", []string{"{{- range $a := list (.b | c) }}"}},
		{"empty-with", "{{- with .b | c }}", []string{`{{- with "" }}`}},
		{"drop-default", `{{ .a | default "b" | quote }}`, []string{`{{ .a | quote }}`}},
		{"drop-quote", `{{ .a | quote }}{{ squote .b }}`, []string{`{{ .a }}{{ squote .b }}`, `{{ .a | quote }}{{ .b }}`}},
		{"drop-int64", "{{ int64 .a }}{{ (.b | int64) }}", []string{"{{ .a }}{{ (.b | int64) }}", "{{ int64 .a }}{{ (.b) }}"}},
		{"drop-function", "{{ .a | lower }}{{ trim (b .c) }}", []string{"{{ .a }}{{ trim (b .c) }}", "{{ .a | lower }}{{ (b .c) }}"}},
		{"drop-fail", `{{- fail (printf "a" .b) }}{{ "c" | fail }}`, []string{`{{- "" }}{{ "c" | fail }}`, `{{- fail (printf "a" .b) }}{{ "" }}`}},
		{"swap-operator", "{{ if gt .a .b }}{{ (or .a .b) }}", []string{"{{ if ge .a .b }}{{ (or .a .b) }}", "{{ if gt .a .b }}{{ (and .a .b) }}"}},
	}
	for _, test := range tests {
		t.Run(test.kind+" of "+test.source, func(t *testing.T) {
			assert.Equal(t, test.want, applied(test.source, templateMutations("a.yaml", test.source), test.kind))
		})
	}
}

func TestOfTextThatIsNoYAMLOnlyLinesAndActionsChange(t *testing.T) {
	source := "Note: 5\n{{ .a | quote }}\n"
	all := templateMutations("NOTES.txt", source)
	assert.Equal(t, []string{"{{ .a | quote }}\n", "Note: 5\n"}, applied(source, all, "delete-line"))
	assert.Equal(t, []string{"Note: 5\n{{ .a }}\n"}, applied(source, all, "drop-quote"))
	assert.Empty(t, applied(source, all, "change-scalar"))
}

func TestEverySchemaOperatorMakesItsChanges(t *testing.T) {
	tests := []struct {
		kind, source string
		want         []string
	}{
		{"drop-pattern", `{"pattern": "a", "type": "string"}`, []string{`{"type": "string"}`}},
		{"drop-type", `{"title": "a", "type": "string"}`, []string{`{"title": "a"}`}},
		{"drop-additionalProperties", `{"additionalProperties": false}`, []string{`{}`}},
		{"drop-uniqueItems", `{"items": {"uniqueItems": true}}`, []string{`{"items": {}}`}},
		{"drop-required", `{"required": ["a"]}`, []string{`{}`}},
		{"drop-required-entry", `{"required": ["a", "b", "c"]}`, []string{`{"required": ["b", "c"]}`, `{"required": ["a", "c"]}`, `{"required": ["a", "b"]}`}},
		{"drop-enum-entry", `{"definitions": {"enum": {"enum": [1, 2]}}}`, []string{`{"definitions": {"enum": {"enum": [2]}}}`, `{"definitions": {"enum": {"enum": [1]}}}`}},
		{"drop-property", `{"properties": {"type": {}, "b": {}}}`, []string{`{"properties": {"b": {}}}`, `{"properties": {"type": {}}}`}},
		{"drop-type", `{"properties": {"type": {}}}`, nil},
		{"off-by-one", `{"maxLength": 63}`, []string{`{"maxLength": 62}`, `{"maxLength": 64}`}},
		{"off-by-one", `{"minLength": 0}`, []string{`{"minLength": 1}`}},
		{"unanchor-pattern", `{"pattern": "^\"a$"}`, []string{`{"pattern": "\"a$"}`, `{"pattern": "^\"a"}`}},
		{"widen-type", `{"type": "string"}`, []string{`{"type": ["string", "boolean"]}`, `{"type": ["string", "number"]}`}},
		{"widen-type", `{"type": ["string", "boolean"]}`, []string{`{"type": ["string", "boolean", "number"]}`}},
		{"narrow-type", `{"type": ["string", "null"]}`, []string{`{"type": ["null"]}`, `{"type": ["string"]}`}},
		{"narrow-type", `{"type": ["string"]}`, nil},
		{"drop-description", `{"description": "a"}`, nil},
	}
	for _, test := range tests {
		t.Run(test.kind+" of "+test.source, func(t *testing.T) {
			all, err := schemaMutations(test.source)
			require.NoError(t, err)
			assert.Equal(t, test.want, applied(test.source, all, test.kind))
		})
	}
}

func TestCommentsOfAValuesFileAreNoMutants(t *testing.T) {
	source := "# a: 5\nb: 5\n"
	for _, m := range valuesMutations(source) {
		assert.GreaterOrEqual(t, m.start, len("# a: 5\n"), m.kind)
	}
	assert.NotEmpty(t, valuesMutations(source))
}

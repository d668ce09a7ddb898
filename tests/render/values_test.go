// What is fed in: values, their schema and their documentation agree, and every value reaches the rendering.
package render

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"cozy-kubevirt/internal/chart"
)

// tolerated are the values that the platform injects for other packages; no template reads them.
var tolerated = map[string]bool{"_namespace": true, "global": true, "cozy-lib": true}

func TestValuesAndSchemaNameTheSameKeys(t *testing.T) {
	t.Parallel()
	schema := keysOfSchema(t)
	values := map[string]bool{}
	walk("", load(t, filepath.Join(chartDir, "values.yaml")), func(path string, _ any) { values[path] = true })
	for path := range values {
		assert.Contains(t, schema, path, "values.yaml has a key that values.schema.json lacks")
	}
	for path := range schema {
		if insideItem := strings.Contains(path, "[]"); !insideItem && !tolerated[strings.TrimPrefix(path, ".")] {
			assert.Contains(t, values, path, "values.schema.json has a key that values.yaml does not document")
		}
	}
}

func TestTheFullSetHoldsEveryKeyOfTheSchema(t *testing.T) {
	t.Parallel()
	full := map[string]bool{}
	walk("", load(t, valuesSets(t)["full"]), func(path string, _ any) { full[path] = true })
	for path := range keysOfSchema(t) {
		if !tolerated[strings.TrimPrefix(path, ".")] && !strings.Contains(path, deprecated) {
			assert.Contains(t, full, path, "ci/full-values.yaml does not set this value")
		}
	}
}

// deprecated is a spelling that KubeVirt does not read beside the one of today, and warns of; the unit suites have it.
const deprecated = "mediatedDevicesTypes"

// Together with TestTheFullSetHoldsEveryKeyOfTheSchema: there is no value that no template reads.
func TestEveryValueOfTheFullSetReachesTheRendering(t *testing.T) {
	t.Parallel()
	file := valuesSets(t)["full"]
	rendered := mustRender(t, chartDir, chart.KubeVersions[0], file)
	paths := leaves(load(t, file), nil)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(fmt.Sprint(path...), func(t *testing.T) {
			t.Parallel()
			read := false
			for _, change := range changes(at(load(t, file), path)) {
				values, err := yaml.Marshal(replace(load(t, file), path, change))
				require.NoError(t, err)
				out, err := renderValues(t, string(values))
				if err == nil {
					assert.False(t, out == rendered, "%v instead changes nothing: no template reads this value", change)
				}
				// A template that refuses the change has read the value.
				read = read || err == nil || strings.Contains(err.Error(), "execution error")
			}
			assert.True(t, read, "no change of this value comes as far as a template, so nothing was compared")
		})
	}
}

// changes returns values of the same type that differ from value; the schema may refuse some of them.
func changes(value any) []any {
	switch value := value.(type) {
	case bool:
		return []any{!value}
	case float64:
		return []any{value + 1}
	case string:
		var changed []any
		for _, last := range []string{"0", "2"} {
			if other := value[:len(value)-1] + last; other != value {
				changed = append(changed, other)
			}
		}
		return append(changed, "8"+value[1:])
	}
	return nil
}

func TestNullAndEmptyMeanNotSet(t *testing.T) {
	t.Parallel()
	want, err := renderValues(t, "{}")
	require.NoError(t, err)
	defaults := load(t, filepath.Join(chartDir, "values.yaml"))
	var cases []string
	walk("", defaults, func(path string, value any) {
		if path == "" {
			return
		}
		keys := strings.Split(strings.TrimPrefix(path, "."), ".")
		cases = append(cases, nest(keys, "null"))
		switch value.(type) {
		case map[string]any:
			cases = append(cases, nest(keys, "{}"))
		case []any:
			cases = append(cases, nest(keys, "[]"))
		case string:
			cases = append(cases, nest(keys, `""`))
		}
	})
	cases = append(cases, `cpuAllocationRatio: ""`)
	require.Greater(t, len(cases), len(defaults))
	for _, values := range cases {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			out, err := renderValues(t, values)
			require.NoError(t, err)
			assert.Equal(t, want, out)
		})
	}
}

func TestANumberIsTheSameWhereverItComesFrom(t *testing.T) {
	t.Parallel()
	for _, number := range []string{"1", "1000000", "9007199254740991"} {
		t.Run(number, func(t *testing.T) {
			t.Parallel()
			file, err := renderValues(t, "cpuAllocationRatio: "+number)
			require.NoError(t, err)
			assert.Contains(t, file, "cpuAllocationRatio: "+number+"\n")
			for _, flag := range []string{"--set", "--set-json"} {
				out, err := renderValues(t, "{}", flag, "cpuAllocationRatio="+number)
				require.NoError(t, err)
				assert.Equal(t, file, out, flag)
			}
		})
	}
}

// Helm reads YAML 1.1; helm-unittest does not, so the unit suites cannot show this.
func TestAWordThatYAMLReadsAsABooleanIsRefusedWhereAStringBelongs(t *testing.T) {
	t.Parallel()
	const values = `
extraFeatureGates: [WORD]
disabledFeatureGates: [WORD]
monitorNamespace: WORD
permittedHostDevices: {mediatedDevices: [{mdevNameSelector: WORD, resourceName: a/b}]}
mediatedDevicesConfiguration: {mediatedDeviceTypes: [WORD], nodeMediatedDeviceTypes: [{nodeSelector: {label: WORD}}]}
`
	paths := []string{
		"/extraFeatureGates/0",
		"/disabledFeatureGates/0",
		"/monitorNamespace",
		"/permittedHostDevices/mediatedDevices/0/mdevNameSelector",
		"/mediatedDevicesConfiguration/mediatedDeviceTypes/0",
		"/mediatedDevicesConfiguration/nodeMediatedDeviceTypes/0/nodeSelector/label",
	}
	// Of the platform's own values the templates judge those that they use.
	ofThePlatform := map[string]string{
		"expose-services": "{expose-services: WORD}",
		"root-host":       "{expose-services: vm-exportproxy, root-host: WORD}",
		"expose-ingress":  "{expose-services: vm-exportproxy, root-host: example.org, expose-ingress: WORD}",
	}
	for _, word := range []string{"yes", "No", "on", "OFF", "true"} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			_, err := renderValues(t, strings.ReplaceAll(values, "WORD", word))
			require.Error(t, err)
			for _, path := range paths {
				assert.ErrorContains(t, err, "at '"+path+"': got boolean")
			}
			for key, cluster := range ofThePlatform {
				_, err := renderValues(t, "_cluster: "+strings.ReplaceAll(cluster, "WORD", word))
				require.Error(t, err)
				assert.Regexp(t, `_cluster\.`+key+`: got (true|false), want a string`, err.Error())
			}
		})
	}
}

func TestEveryPropertyOfTheSchemaIsDescribedAndEveryExampleIsValid(t *testing.T) {
	t.Parallel()
	const url = "chart:///values.schema.json" // no file, whose path might hold a #
	compiler := jsonschema.NewCompiler()
	document := load(t, filepath.Join(chartDir, "values.schema.json"))
	require.NoError(t, compiler.AddResource(url, document))
	examples := 0
	walkSchema("#", document, func(pointer string, node map[string]any) {
		if _, isReference := node["$ref"]; isReference || strings.HasSuffix(pointer, "/items") {
			return
		}
		assert.NotEmpty(t, node["description"], "%s%s has no description", url, pointer)
		compiled, err := compiler.Compile(url + pointer)
		require.NoError(t, err)
		for _, example := range asList(node["examples"]) {
			examples++
			assert.NoError(t, compiled.Validate(example), "%s%s: the example is refused", url, pointer)
		}
	})
	assert.NotZero(t, examples)
}

func TestEveryObjectOfTheSchemaIsClosed(t *testing.T) {
	t.Parallel()
	objects := 0
	walkSchema("#", load(t, filepath.Join(chartDir, "values.schema.json")), func(pointer string, node map[string]any) {
		if tolerated[strings.TrimPrefix(pointer, "#/properties/")] {
			return
		}
		if pointer == "#/properties/_cluster" {
			assert.Equal(t, true, node["additionalProperties"], "_cluster is the platform's, and grows with each of its releases")
			return
		}
		if isObject := node["properties"] != nil || node["patternProperties"] != nil; isObject {
			objects++
			assert.Equal(t, false, node["additionalProperties"], "values.schema.json%s is open: a typo in it would be dropped in silence", pointer)
		}
	})
	assert.NotZero(t, objects)
}

// keysOfSchema returns the dotted path of every property, "[]" standing for a list's item.
func keysOfSchema(t *testing.T) map[string]bool {
	t.Helper()
	root := load(t, filepath.Join(chartDir, "values.schema.json"))
	keys := map[string]bool{}
	var collect func(path string, node map[string]any)
	collect = func(path string, node map[string]any) {
		if reference, ok := node["$ref"].(string); ok {
			node = root["definitions"].(map[string]any)[strings.TrimPrefix(reference, "#/definitions/")].(map[string]any)
		}
		keys[path] = true
		if properties, ok := node["properties"].(map[string]any); ok {
			for key, property := range properties {
				collect(path+"."+key, property.(map[string]any))
			}
		}
		if items, ok := node["items"].(map[string]any); ok {
			collect(path+"[]", items)
		}
	}
	collect("", root)
	return keys
}

// walkSchema calls visit with the JSON pointer of every subschema.
func walkSchema(pointer string, node map[string]any, visit func(pointer string, node map[string]any)) {
	visit(pointer, node)
	for _, container := range []string{"properties", "patternProperties", "definitions"} {
		children, _ := node[container].(map[string]any)
		for key, child := range children {
			escaped := strings.NewReplacer("~", "~0", "/", "~1", "%", "%25", "^", "%5E", "?", "%3F", "[", "%5B", "]", "%5D", "{", "%7B", "}", "%7D", "\\", "%5C").Replace(key)
			walkSchema(pointer+"/"+container+"/"+escaped, child.(map[string]any), visit)
		}
	}
	if items, ok := node["items"].(map[string]any); ok {
		walkSchema(pointer+"/items", items, visit)
	}
}

// leaves returns the path of every value below tree that is no map, and of every item of every list.
func leaves(tree any, path []any) [][]any {
	switch node := tree.(type) {
	case map[string]any:
		keys := make([]string, 0, len(node))
		for key := range node {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		var found [][]any
		for _, key := range keys {
			found = append(found, leaves(node[key], extend(path, key))...)
		}
		return found
	case []any:
		var found [][]any
		for i, item := range node {
			if _, isObject := item.(map[string]any); isObject {
				found = append(found, leaves(item, extend(path, i))...)
				continue
			}
			found = append(found, extend(path, i))
		}
		return found
	}
	return [][]any{path}
}

func extend(path []any, key any) []any {
	return append(append([]any{}, path...), key)
}

// at returns the value at path.
func at(tree any, path []any) any {
	for _, key := range path {
		switch node := tree.(type) {
		case map[string]any:
			tree = node[key.(string)]
		case []any:
			tree = node[key.(int)]
		}
	}
	return tree
}

// replace puts value at path and returns tree.
func replace(tree map[string]any, path []any, value any) map[string]any {
	last := len(path) - 1
	switch parent := at(tree, path[:last]).(type) {
	case map[string]any:
		parent[path[last].(string)] = value
	case []any:
		parent[path[last].(int)] = value
	}
	return tree
}

// nest writes the value under its keys in flow style.
func nest(keys []string, value string) string {
	return strings.Join(keys, ": {") + ": " + value + strings.Repeat("}", len(keys)-1)
}

func load(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	tree := map[string]any{}
	require.NoError(t, yaml.Unmarshal(text, &tree), file)
	return tree
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

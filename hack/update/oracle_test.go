package main

// An opinion of its own on whether an accepted file is sound: it renders the file as Helm would, with everything
// set and with nothing set, and compares what the blocks brought in with what the shipped template renders.

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"
)

const templateFile = "../../charts/kubevirt/templates/kubevirt-cr.yaml"

// shipped returns the chart's template.
func shipped(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(templateFile))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

type values map[string]any

var nothingSet = values{}

var everythingSet = values{
	"cpuAllocationRatio":   7,
	"extraFeatureGates":    []any{"Extra1", "Extra2"},
	"disabledFeatureGates": []any{"Other1", "Other2"},
	"vmStateStorageClass":  "replicated",
	"permitted":            "\n      pciHostDevices: [gpu]",
	"mediated":             "\n      mediatedDeviceTypes: [vgpu]",
	"migrations":           "\n      allowPostCopy: true",
	"imageVolume":          "true",
}

// rendered renders a template and decodes it, or says why that fails.
func rendered(text []byte, v values) (map[string]any, error) {
	include := func(name string, argument any) string {
		if list, ok := argument.([]any); ok {
			name = list[1].(string)
		}
		s := func(key string) string { text, _ := v[key].(string); return text }
		return map[string]string{
			"cozy-kubevirt.permittedHostDevices":         s("permitted"),
			"cozy-kubevirt.mediatedDevicesConfiguration": s("mediated"),
			"cozy-kubevirt.disablesImageVolume":          s("imageVolume"),
			"cozy-kubevirt.migrations":                   s("migrations"),
			"cozy-kubevirt.featureGates":                 "extraFeatureGates",
			"cozy-kubevirt.disabledFeatureGates":         "disabledFeatureGates",
			"cozy-kubevirt.monitorNamespace":             "monitoring",
			"cozy-kubevirt.virtHandlerPatch":             `{"spec":{}}`,
		}[name]
	}
	parsed, err := template.New("cr").Funcs(template.FuncMap{
		"include":       include,
		"quote":         func(a any) string { return strconv.Quote(fmt.Sprint(a)) },
		"int64":         func(a any) any { return a },
		"list":          func(items ...any) []any { return items },
		"has":           func(item, list any) bool { items, _ := list.([]any); return slices.Contains(items, item) },
		"fromYamlArray": func(key string) any { return v[key] },
	}).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, map[string]any{"Values": map[string]any(v), "Release": map[string]any{"Namespace": "release"}}); err != nil {
		return nil, err
	}
	return decoded(out.Bytes())
}

// decoded reads YAML as Kubernetes does: keys are strings, whatever they look like.
func decoded(text []byte) (map[string]any, error) {
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%w in\n%s", err, text)
	}
	mapping, ok := stringKeys(doc).(map[string]any)
	if !ok {
		return nil, fmt.Errorf("no mapping: %s", text)
	}
	return mapping, nil
}

func stringKeys(value any) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = stringKeys(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = stringKeys(value[key])
		}
	case map[any]any:
		mapping := map[string]any{}
		for key := range value {
			mapping[fmt.Sprint(key)] = stringKeys(value[key])
		}
		return mapping
	}
	return value
}

// pick walks down a path and takes the value out of the document; nil where there is none.
func pick(doc map[string]any, path string) any {
	parent, key, more := strings.Cut(path, ".")
	if !more {
		value := doc[parent]
		delete(doc, parent)
		return value
	}
	below, _ := doc[parent].(map[string]any)
	if below == nil {
		return nil
	}
	return pick(below, key)
}

const gates, disabledGates = "spec.configuration.developerConfiguration.featureGates", "spec.configuration.developerConfiguration.disabledFeatureGates"

// comments are template comments; what stands in one does not count.
var comments = regexp.MustCompile(`(?s)\{\{(- )?/\*.*?\*/( -)?\}\}`)

// unsound returns what is wrong with a file that update accepted, given what it made of it.
func unsound(t testing.TB, input, output []byte) error {
	live, whole := comments.ReplaceAllString(string(output), ""), comments.ReplaceAllString(string(shipped(t)), "")
	for _, b := range blocks {
		text := comments.ReplaceAllString(b.text[1:]+"\n", "")
		if n, want := strings.Count(live, text), strings.Count(whole, text); n != want {
			return fmt.Errorf("%s stands %d times in the output, expected %d", &b, n, want)
		}
	}
	if got, want := outside(output), outside(input); got != want {
		return fmt.Errorf("lines outside the blocks were changed from\n%s\nto\n%s", want, got)
	}
	if again := merge(output); len(again.faults) > 0 || !bytes.Equal(again.data, output) {
		return fmt.Errorf("a second run changes the output: %v", again.faults)
	}
	var lists [2][2]any
	for i, v := range []values{nothingSet, everythingSet} {
		want, err := rendered(shipped(t), v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := rendered(output, v)
		if err != nil {
			return fmt.Errorf("does not render: %w", err)
		}
		var paths []string
		for _, b := range blocks {
			if b.owns != "" && !strings.Contains(b.owns, "[") {
				paths = append(paths, b.owns)
			}
		}
		for _, c := range constants {
			paths = append(paths, c.path)
		}
		for _, path := range paths {
			if g, w := pick(got, path), pick(want, path); !reflect.DeepEqual(g, w) {
				return fmt.Errorf("renders %s as %v, expected %v", path, g, w)
			}
		}
		lists[i] = [2]any{pick(got, gates), pick(got, disabledGates)}
		// What is left is the author's, as it was before the blocks came.
		own, err := decoded([]byte(withoutComments(withoutBlocks(output))))
		if err != nil {
			return fmt.Errorf("is no YAML without its blocks: %w", err)
		}
		for _, path := range append(paths, gates, disabledGates) {
			pick(own, path)
		}
		if !reflect.DeepEqual(got, own) {
			return fmt.Errorf("renders, but for the blocks, as %v, expected %v", got, own)
		}
	}
	for i, more := range [][]any{{"Extra1", "Extra2"}, {"ImageVolume", "Other1", "Other2"}} {
		without, _ := lists[0][i].([]any)
		if want := append(without[:len(without):len(without)], more...); !reflect.DeepEqual(lists[1][i], any(want)) {
			return fmt.Errorf("renders the gates %v, expected %v", lists[1][i], want)
		}
	}
	return nil
}

// outside returns a file without its blocks and without lines such as those of upstream that blocks replace.
func outside(text []byte) string {
	lines := strings.Split(withoutBlocks(text), "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool {
		return l == "  namespace: kubevirt" || l == "  customizeComponents: {}" || l == "  customizeComponents:"
	}), "\n")
}

// withoutBlocks takes out each block once, but none that stands in a comment. What looks like the end of any block
// comes last.
func withoutBlocks(text []byte) string {
	rest := "\n" + string(text)
	inOrder := slices.Clone(blocks)
	slices.SortStableFunc(inOrder, func(a, b block) int { return len(b.lines()) - len(a.lines()) })
	for _, b := range inOrder {
		for from := 0; ; {
			at := strings.Index(rest[from:], b.text+"\n")
			if at < 0 {
				break
			}
			from += at + 1
			if !inComment(rest, from) {
				rest = rest[:from-1] + rest[from-1+len(b.text):]
				break
			}
		}
	}
	return rest[1:]
}

// inComment reports whether the offset is inside a template comment.
func inComment(text string, at int) bool {
	return slices.ContainsFunc(comments.FindAllStringIndex(text, -1), func(span []int) bool { return span[0] < at && at < span[1] })
}

// withoutComments lets Go's own template engine take the template comments out.
func withoutComments(text string) string {
	parsed, err := template.New("").Parse(text)
	if err != nil {
		return text
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, nil); err != nil {
		return text
	}
	return out.String()
}

func TestTheOracleFindsEveryKindOfUnsoundOutput(t *testing.T) {
	whole := string(shipped(t))
	if err := unsound(t, shipped(t), shipped(t)); err != nil {
		t.Fatal(err)
	}
	devices, clean := named(t, "permittedHostDevices").text, "\n"+whole
	for name, output := range map[string]string{
		"stands 0 times":                strings.Replace(clean, devices, "", 1),
		"stands 2 times":                strings.Replace(clean, devices, devices+devices, 1),
		"lines outside the blocks were": strings.Replace(clean, "imagePullPolicy: IfNotPresent", "imagePullPolicy: Always", 1),
		"a second run changes":          strings.Replace(strings.Replace(clean, devices, "", 1), "\n    vmRolloutStrategy", devices+"\n    vmRolloutStrategy", 1),
	} {
		if err := unsound(t, shipped(t), []byte(output[1:])); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the oracle says %v, expected %q", err, name)
		}
	}
}

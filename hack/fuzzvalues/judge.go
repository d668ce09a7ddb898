package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/releaseutil"
	networkingv1 "k8s.io/api/networking/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"cozy-kubevirt/hack/internal/inputs"
	"cozy-kubevirt/hack/internal/render"
)

// class is what became of an input.
type class int

const (
	// rendered: the documents hold the values, unchanged, and nothing else.
	rendered class = iota
	// refused: the message names the path.
	refused
	// unreadable: the file is no YAML, or YAML that has no JSON form; the message comes from the reader
	// and can at best name a line.
	unreadable
)

// judge returns the class of an input, or what is wrong if it is in none.
func judge(chart *render.Chart, known expectation, target render.Target, input inputs.Input) (class, error) {
	values, err := chartutil.ReadValues([]byte(input.YAML))
	if err != nil {
		return unreadable, nil
	}
	files, err := chart.Render(values, target)
	if err != nil {
		return refused, names(err.Error(), input)
	}
	wanted, err := known.documents(values)
	if err != nil {
		return rendered, err
	}
	got, comments, err := read(files)
	if err != nil {
		return rendered, err
	}
	if !slices.Equal(comments, known.comments) {
		return rendered, fmt.Errorf("the comments are not the chart's own: %q", comments)
	}
	if difference := differ("", toAny(wanted), toAny(got)); difference != "" {
		return rendered, errors.New(difference)
	}
	return rendered, nil
}

var (
	schemaPath = regexp.MustCompile(`at '([^']*)'`)
	itsIndex   = regexp.MustCompile(`\[\d+\]$`)
	quotedName = regexp.MustCompile(`'([^']*)'`)
)

// names says whether a message names the place of an input: its path, a path below it, its parent's path with the key,
// or the list that it is an item of, where the list as a whole is at odds with another.
func names(message string, input inputs.Input) error {
	pointer, dotted := input.Pointer(), input.Dotted()
	for _, name := range []string{dotted, itsIndex.ReplaceAllString(dotted, "")} {
		if name != "" && regexp.MustCompile(regexp.QuoteMeta(name)+`($|[^\w-])`).MatchString(message) {
			return nil
		}
	}
	for line := range strings.Lines(message) {
		found := schemaPath.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		if found[1] == pointer || strings.HasPrefix(found[1], pointer+"/") {
			return nil
		}
		if found[1] == path.Dir(pointer) || found[1]+"/" == path.Dir(pointer) {
			for _, name := range quotedName.FindAllStringSubmatch(line, -1) {
				if name[1] == path.Base(pointer) {
					return nil
				}
			}
		}
	}
	return fmt.Errorf("refused, but the message does not name %s: %s", cmp.Or(dotted, "the top"), message)
}

// read splits rendered files into documents the way that Helm does, decodes each strictly into its type,
// and returns them by kind with every comment that stands in them. A virt-handler patch is read too.
func read(files map[string]string) (map[string]map[string]any, []string, error) {
	documents := map[string]map[string]any{}
	var comments []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Base(name) == "NOTES.txt" {
			continue
		}
		for _, manifest := range releaseutil.SplitManifests(files[name]) {
			if strings.TrimSpace(manifest) == "" {
				continue
			}
			document := map[string]any{}
			if err := sigsyaml.UnmarshalStrict([]byte(manifest), &document); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
			kind := fmt.Sprint(document["kind"])
			if documents[kind] != nil {
				return nil, nil, fmt.Errorf("two documents of kind %s", kind)
			}
			if err := decode(kind, []byte(manifest)); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
			found, err := scan(manifest)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
			documents[kind], comments = document, append(comments, found...)
		}
	}
	patches, _ := at(documents["KubeVirt"], "spec", "customizeComponents", "patches").([]any)
	for _, patch := range patches {
		patch := patch.(map[string]any)
		var read any
		if err := json.Unmarshal([]byte(fmt.Sprint(patch["patch"])), &read); err != nil {
			return nil, nil, fmt.Errorf("the virt-handler patch is no JSON: %w", err)
		}
		patch["patch"] = read
	}
	return documents, comments, nil
}

func decode(kind string, manifest []byte) error {
	switch kind {
	case "KubeVirt":
		return sigsyaml.UnmarshalStrict(manifest, &kubevirtv1.KubeVirt{})
	case "Ingress":
		return sigsyaml.UnmarshalStrict(manifest, &networkingv1.Ingress{})
	case "TLSRoute":
		// The alphas have the same fields as v1.
		return sigsyaml.UnmarshalStrict(manifest, &gatewayv1.TLSRoute{})
	}
	return fmt.Errorf("the chart does not mean to render a %s", kind)
}

// scan returns the comments of a document, and refuses a number that is not written as an integer: none of
// the documents has a fraction, and 1e+06 is not an integer to everybody who reads it.
func scan(manifest string) (comments []string, err error) {
	var walk func(*yaml.Node)
	walk = func(node *yaml.Node) {
		if node.Tag == "!!float" {
			err = fmt.Errorf("a number is written as %s", node.Value)
		}
		for _, comment := range []string{node.HeadComment, node.LineComment, node.FootComment} {
			if comment != "" {
				comments = append(comments, comment)
			}
		}
		for _, child := range node.Content {
			walk(child)
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(manifest))
	for {
		var node yaml.Node
		if end := decoder.Decode(&node); errors.Is(end, io.EOF) {
			return comments, err
		} else if end != nil {
			return nil, end
		}
		walk(&node)
	}
}

func toAny(documents map[string]map[string]any) any {
	all := map[string]any{}
	for kind, document := range documents {
		all[kind] = document
	}
	return all
}

// differ says where two values differ first.
func differ(where string, wanted, got any) string {
	if reflect.DeepEqual(wanted, got) {
		return ""
	}
	wantedObject, isObject := wanted.(map[string]any)
	gotObject, areObjects := got.(map[string]any)
	if !isObject || !areObjects {
		return fmt.Sprintf("%s: rendered %s, the values say %s", where, show(got), show(wanted))
	}
	for _, key := range slices.Sorted(maps.Keys(gotObject)) {
		if _, ok := wantedObject[key]; !ok {
			return fmt.Sprintf("%s.%s: rendered, but no value asks for it", where, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(wantedObject)) {
		if _, ok := gotObject[key]; !ok {
			return fmt.Sprintf("%s.%s: not rendered, the values say %s", where, key, show(wantedObject[key]))
		}
		if difference := differ(where+"."+key, wantedObject[key], gotObject[key]); difference != "" {
			return difference
		}
	}
	return ""
}

func show(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(out) > 300 {
		return string(out[:300]) + "…"
	}
	return string(out)
}

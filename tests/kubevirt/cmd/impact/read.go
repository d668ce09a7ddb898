// What is compared: two files, or what the chart of a base commit and of the working tree render.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/internal/chart"
	"cozy-kubevirt/internal/git"
)

// side is one of the two that are compared: its KubeVirt resource, and the routes beside it.
type side struct {
	name   string         // for the reader
	object map[string]any // nil if there is no KubeVirt
	routes []*unstructured.Unstructured
}

// pair is a change, and the renderings that show it.
type pair struct {
	sets     []string
	old, new side
}

func (p pair) where() string {
	if len(p.sets) == 0 {
		return p.old.name + " to " + p.new.name
	}
	return strings.Join(p.sets, ", ")
}

func readPairs(ctx context.Context, o options) ([]pair, error) {
	if (o.old == "") != (o.new == "") {
		return nil, errors.New("OLD and NEW go together; expected both, or neither for the chart of BASE and of the working tree")
	}
	if o.old == "" {
		return renderPairs(ctx, o)
	}
	p := pair{}
	for _, of := range []struct {
		file, variable string
		into           *side
	}{{o.old, "OLD", &p.old}, {o.new, "NEW", &p.new}} {
		text, err := os.ReadFile(of.file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.variable, err)
		}
		if *of.into, err = parse(of.file, text); err != nil {
			return nil, fmt.Errorf("%s: %w", of.variable, err)
		}
		if of.into.object == nil {
			return nil, fmt.Errorf("%s: %s holds no document of kind KubeVirt; expected one, as of kubectl get kubevirt -o yaml", of.variable, of.file)
		}
	}
	return []pair{p}, nil
}

// renderPairs renders both charts over every values set and Kubernetes version; equal changes are one pair.
func renderPairs(ctx context.Context, o options) ([]pair, error) {
	root, err := chart.Root()
	if err != nil {
		return nil, err
	}
	top, err := git.Run(ctx, root, nil, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	return compareCharts(ctx, top, o)
}

// compareCharts is that in the repository whose top is a folder.
func compareCharts(ctx context.Context, top string, o options) ([]pair, error) {
	base, remove, err := git.CheckOut(ctx, top, o.base, o.chart)
	if err != nil {
		return nil, err
	}
	defer remove()
	tree := filepath.Join(top, o.chart)
	sets, err := valuesSets(o.values, base.Dir, tree)
	if err != nil {
		return nil, err
	}
	var pairs []pair
	seen := map[string]int{}
	for _, set := range slices.Sorted(maps.Keys(sets)) {
		for _, version := range chart.KubeVersions {
			where := fmt.Sprintf("%s on Kubernetes %s", set, version)
			var texts [2]string
			for i, dir := range []string{base.Dir, tree} {
				if texts[i], err = chart.Template(ctx, chart.Rendering{Chart: dir, KubeVersion: version, Values: sets[set]}); err != nil {
					return nil, fmt.Errorf("%s, %s: %w", where, []string{base.Name, "the working tree"}[i], err)
				}
			}
			key := texts[0] + "\x00" + texts[1]
			if i, known := seen[key]; known {
				pairs[i].sets = append(pairs[i].sets, where)
				continue
			}
			p := pair{sets: []string{where}}
			if p.old, err = parse(base.Name, []byte(texts[0])); err != nil {
				return nil, err
			}
			if p.new, err = parse("the working tree", []byte(texts[1])); err != nil {
				return nil, err
			}
			if p.old.object == nil {
				return nil, fmt.Errorf("%s: %s renders no KubeVirt, so there is nothing to change", where, base.Name)
			}
			seen[key] = len(pairs)
			pairs = append(pairs, p)
		}
	}
	return pairs, nil
}

// valuesSets are the files that VALUES names, as make template reads it, or the values sets of both charts; of a set that
// both have, the working tree's.
func valuesSets(values, base, tree string) (map[string][]string, error) {
	if _, err := os.Stat(values); err == nil {
		return map[string][]string{values: {values}}, nil
	}
	if files := strings.Fields(values); len(files) > 0 {
		return map[string][]string{values: files}, nil
	}
	all := map[string][]string{}
	for _, dir := range []string{base, tree} {
		sets, err := chart.Sets(dir)
		if err != nil {
			return nil, err
		}
		for name, file := range sets {
			all[name] = []string{file}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("neither chart holds a ci/*-values.yaml, so nothing would be compared; name values files with VALUES=")
	}
	return all, nil
}

// parse finds the one KubeVirt in documents or in a List of kubectl's, and the routes.
func parse(name string, text []byte) (side, error) {
	s := side{name: name}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for i := 1; ; i++ {
		object := map[string]any{}
		err := documents.Decode(&object)
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return s, fmt.Errorf("%s: document %d is not YAML: %w", name, i, err)
		}
		all := []any{object}
		if items, isList := object["items"].([]any); isList {
			all = items
		}
		for _, one := range all {
			if err := s.take(one); err != nil {
				return s, err
			}
		}
	}
}

func (s *side) take(one any) error {
	object, isObject := one.(map[string]any)
	if !isObject {
		return fmt.Errorf("%s: an item of the list is %T; expected an object", s.name, one)
	}
	u := &unstructured.Unstructured{Object: object}
	switch u.GetKind() {
	case "Ingress", "TLSRoute":
		s.routes = append(s.routes, u)
	case "KubeVirt":
		if got, want := u.GetAPIVersion(), v1.GroupVersion.String(); got != want {
			return fmt.Errorf("%s: KubeVirt %s has apiVersion %q; expected %s", s.name, u.GetName(), got, want)
		}
		if s.object != nil {
			before := &unstructured.Unstructured{Object: s.object}
			return fmt.Errorf("%s: two documents of kind KubeVirt, %s and %s; expected one, as KubeVirt's operator does", s.name, before.GetName(), u.GetName())
		}
		if u.GetName() == "" {
			return fmt.Errorf("%s: the KubeVirt has no metadata.name", s.name)
		}
		u.SetNamespace(cmp.Or(u.GetNamespace(), chart.Namespace))
		s.object = object
	}
	return nil
}

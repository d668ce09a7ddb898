// The routes to the export proxy that come, go or change.
package main

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// route is an Ingress or TLSRoute that differs.
type route struct {
	Name    string   `json:"name"`
	What    string   `json:"what"`
	Gap     string   `json:"gap"`
	Changes []change `json:"changes,omitempty"`
}

func changedRoutes(old, new []*unstructured.Unstructured) ([]route, error) {
	byName := func(all []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
		m := map[string]*unstructured.Unstructured{}
		for _, o := range all {
			m[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o
		}
		return m
	}
	before, after := byName(old), byName(new)
	names := maps.Clone(before)
	maps.Copy(names, after)
	var all []route
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := before[name], after[name]
		switch {
		case was == nil:
			// Helm creates and changes first, and deletes last (helm.sh/helm/v3 v3.22.0 pkg/kube/client.go:389-448).
			all = append(all, route{Name: name, What: "appears", Gap: "Helm creates it before it deletes another; until the controller serves it there may be a gap"})
		case is == nil:
			all = append(all, route{Name: name, What: "goes", Gap: "Helm deletes it last; what it served is gone then"})
		default:
			changes, err := differences(was.Object, is.Object)
			if err != nil {
				return nil, err
			}
			if len(changes) > 0 {
				all = append(all, route{name, "changes", "changed in place, under the same name: the old host or parent is gone once its controller has seen it", changes})
			}
		}
	}
	return all, nil
}

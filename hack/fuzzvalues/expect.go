package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cozy-kubevirt/hack/internal/render"
)

// expectation knows what the chart must render from values that it accepts. What does not depend on a
// value is taken from the chart itself, rendered with harmless values; where a value goes is written here.
type expectation struct {
	kubevirt map[string]any
	routes   map[string]map[string]any
	comments []string
}

const harmlessHost, harmlessClass = "harmless.example.org", "harmless-class"

func expect(chart *render.Chart, target render.Target) (expectation, error) {
	known := expectation{routes: map[string]map[string]any{}}
	for _, gateway := range []bool{false, true} {
		files, err := chart.Render(map[string]any{"_cluster": map[string]any{
			"root-host": harmlessHost, "expose-services": "vm-exportproxy", "expose-ingress": harmlessClass, "gateway-enabled": gateway,
		}}, target)
		if err != nil {
			return known, err
		}
		documents, comments, err := read(files)
		if err != nil {
			return known, err
		}
		for kind, document := range documents {
			if kind == "KubeVirt" {
				known.kubevirt, known.comments = document, comments
			} else {
				known.routes[kind] = document
			}
		}
	}
	return known, nil
}

// documents returns what must be rendered from these values, by kind.
func (e expectation) documents(values map[string]any) (map[string]map[string]any, error) {
	kubevirt := copied(e.kubevirt).(map[string]any)
	configuration := at(kubevirt, "spec", "configuration").(map[string]any)
	developer := configuration["developerConfiguration"].(map[string]any)
	if ratio, err := strconv.ParseInt(fmt.Sprint(number(at(values, "cpuAllocationRatio"))), 10, 64); err == nil && ratio != 0 {
		developer["cpuAllocationRatio"] = float64(ratio)
	}
	enabled, _ := at(values, "extraFeatureGates").([]any)
	developer["featureGates"] = withoutRepeats(developer["featureGates"].([]any), enabled)
	disabled := slices.DeleteFunc(developer["disabledFeatureGates"].([]any), func(own any) bool {
		return own != "Template" && slices.Contains(enabled, own)
	})
	more, _ := at(values, "disabledFeatureGates").([]any)
	developer["disabledFeatureGates"] = withoutRepeats(disabled, more)
	for _, key := range []string{"permittedHostDevices", "mediatedDevicesConfiguration", "migrations", "vmStateStorageClass"} {
		if kept := pruned(values[key]); kept != nil {
			configuration[key] = kept
		}
	}
	if namespace := at(values, "monitorNamespace"); set(namespace) {
		at(kubevirt, "spec").(map[string]any)["monitorNamespace"] = namespace
	}
	patch := at(kubevirt, "spec", "customizeComponents", "patches").([]any)[0].(map[string]any)["patch"]
	container := at(patch, "spec", "template", "spec", "containers").([]any)[0]
	for _, kind := range []string{"requests", "limits"} {
		quantities, _ := at(values, "virtHandler", "resources", kind).(map[string]any)
		for name, quantity := range quantities {
			if set(quantity) {
				at(container, "resources", kind).(map[string]any)[name] = number(quantity)
			}
		}
	}
	all := map[string]map[string]any{"KubeVirt": kubevirt}
	kind, route, err := e.route(values)
	if route != nil {
		all[kind] = route
	}
	return all, err
}

func (e expectation) route(values map[string]any) (string, map[string]any, error) {
	services, _ := at(values, "_cluster", "expose-services").(string)
	exposes := func(service string) bool { return strings.TrimSpace(service) == "vm-exportproxy" }
	if !slices.ContainsFunc(strings.Split(services, ","), exposes) {
		return "", nil, nil
	}
	host, _ := at(values, "_cluster", "root-host").(string)
	if host == "" {
		return "", nil, fmt.Errorf("the export proxy is exposed without a root-host")
	}
	class, _ := at(values, "_cluster", "expose-ingress").(string)
	if class == "" {
		class = "tenant-root"
	}
	kind := "Ingress"
	if strings.EqualFold(fmt.Sprint(at(values, "_cluster", "gateway-enabled")), "true") {
		kind = "TLSRoute"
	}
	route := replaceStrings(e.routes[kind], map[string]string{
		"vm-exportproxy." + harmlessHost: "vm-exportproxy." + host, harmlessClass: class,
	})
	return kind, route.(map[string]any), nil
}

// withoutRepeats appends what is not there yet.
func withoutRepeats(list, more []any) []any {
	for _, one := range more {
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

// number is a whole number as text; any other value stays as it is.
func number(value any) any {
	if n, ok := value.(float64); ok {
		return strconv.FormatInt(int64(n), 10)
	}
	return value
}

// set says whether a value says something: absent, null and empty do not.
func set(value any) bool { return value != nil && value != "" }

func at(value any, path ...string) any {
	for _, key := range path {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	return value
}

// pruned is a value without the nulls, the empty strings, lists and objects in it. A nodeSelector may be empty: it then
// selects every node.
func pruned(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, child := range value {
			if key == "nodeSelector" {
				kept[key] = child
			} else if child = pruned(child); child != nil {
				kept[key] = child
			}
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	case []any:
		if len(value) == 0 {
			return nil
		}
		kept := make([]any, len(value))
		for i, child := range value {
			kept[i] = pruned(child)
		}
		return kept
	case string:
		if value == "" {
			return nil
		}
	}
	return value
}

func copied(value any) any { return replaceStrings(value, nil) }

func replaceStrings(value any, replacements map[string]string) any {
	switch value := value.(type) {
	case map[string]any:
		object := maps.Clone(value)
		for key, child := range object {
			object[key] = replaceStrings(child, replacements)
		}
		return object
	case []any:
		list := slices.Clone(value)
		for i, child := range list {
			list[i] = replaceStrings(child, replacements)
		}
		return list
	case string:
		if replacement, ok := replacements[value]; ok {
			return replacement
		}
	}
	return value
}

// Feature gates whose effective state changes.
package main

import (
	"maps"
	"path/filepath"
	"slices"

	v1 "kubevirt.io/api/core/v1"

	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"
	"kubevirt.io/kubevirt/pkg/virt-config/featuregate"

	"cozy-kubevirt/internal/chart"
	"cozy-kubevirt/tests/kubevirt/internal/gates"
)

// gate is a feature gate that goes on or off.
type gate struct {
	Name     string          `json:"name"`
	State    string          `json:"state"`
	On       bool            `json:"on"` // afterwards
	Decision *gates.Decision `json:"decision,omitempty"`
}

func changedGates(old, new *v1.KubeVirt, before, after *virtconfig.ClusterConfig) ([]gate, error) {
	root, err := chart.Root()
	if err != nil {
		return nil, err
	}
	decisions, err := gates.Decisions(filepath.Join(root, "docs", "feature-gates.md"))
	if err != nil {
		return nil, err
	}
	registered := featuregate.GetRegisteredFeatureGates()
	var changed []gate
	for _, name := range slices.Sorted(maps.Keys(registered)) {
		was, _ := gates.Effective(before, old, name)
		is, _ := gates.Effective(after, new, name)
		if was == is {
			continue
		}
		g := gate{Name: name, State: string(registered[name].State), On: is}
		if row, decided := decisions[name]; decided {
			g.Decision = &row
		}
		changed = append(changed, g)
	}
	return changed, nil
}

// unknownGates are names that KubeVirt ignores without a word.
func unknownGates(kv *v1.KubeVirt) []string {
	developer := kv.Spec.Configuration.DeveloperConfiguration
	if developer == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Concat(developer.FeatureGates, developer.DisabledFeatureGates), func(name string) bool {
		return featuregate.FeatureGateInfo(name) != nil
	})
}

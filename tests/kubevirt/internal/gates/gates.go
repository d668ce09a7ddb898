// Package gates says whether a feature gate is on by KubeVirt's own methods, and what docs/feature-gates.md decides on it.
package gates

import (
	"fmt"
	"os"
	"reflect"
	"regexp"

	v1 "kubevirt.io/api/core/v1"

	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"
	"kubevirt.io/kubevirt/pkg/virt-config/featuregate"
)

// Effective reads a gate by KubeVirt's own method for it, which is not the registry's answer for every gate. ByMethod is
// false where there is none, and the registry answers.
func Effective(config *virtconfig.ClusterConfig, cr *v1.KubeVirt, gate string) (on, byMethod bool) {
	value := reflect.ValueOf(config)
	for _, method := range []string{gate + "Enabled", gate + "GateEnabled"} {
		if m := value.MethodByName(method); m.IsValid() {
			return m.Call(nil)[0].Bool(), true
		}
	}
	return featuregate.IsEnabled(gate, cr.Spec.Configuration.DeveloperConfiguration), false
}

// Decision is a row of docs/feature-gates.md.
type Decision struct{ Gate, State, Here, Changes, Why, Source string }

var row = regexp.MustCompile(`(?m)^\| (\w+) \| (\w+) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$`)

// Decisions reads the rows of docs/feature-gates.md, by gate.
func Decisions(file string) (map[string]Decision, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	rows := map[string]Decision{}
	for _, cells := range row.FindAllStringSubmatch(string(raw), -1) {
		if cells[1] == "gate" {
			continue
		}
		if _, twice := rows[cells[1]]; twice {
			return nil, fmt.Errorf("%s has two rows for %s", file, cells[1])
		}
		rows[cells[1]] = Decision{cells[1], cells[2], cells[3], cells[4], cells[5], cells[6]}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s has no table of gates", file)
	}
	return rows, nil
}

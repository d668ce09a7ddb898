// Package helms checks the chart under every Helm that users have, for every Kubernetes that KubeVirt supports:
// the same bytes, no complaint, the same refusals.
package helms

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const chartDir = "../../charts/kubevirt"

// kubeVersions holds the minor releases that KubeVirt v1.9 supports: the three newest when it was cut
// (docs/kubernetes-compatibility.md:7), which are those that it is tested on (kubevirtci/cluster-up/cluster,
// k8s-1.34 to k8s-1.36).
var kubeVersions = []string{"1.34.0", "1.35.0", "1.36.0"}

// helm is a Helm binary: the variable that names it, and where it is otherwise.
type helm struct{ variable, path string }

var (
	pinned = helm{"HELM", "../../bin/helm"}
	others = []helm{
		{"HELM_OLDEST", "../../bin/helm-oldest"},
		{"HELM4", "../../bin/helm4"},
	}
	all = append([]helm{pinned}, others...)
)

func TestNoHelmIsComparedWithItself(t *testing.T) {
	seen := map[string]string{}
	for _, helm := range all {
		version := helm.mustRun(t, "version", "--short")
		assert.Empty(t, seen[version], "%s and %s are both Helm %s; run make tools", seen[version], helm.variable, version)
		seen[version] = helm.variable
	}
}

func TestEveryHelmRendersTheSameBytes(t *testing.T) {
	eachRendering(t, func(t *testing.T, arguments ...string) {
		arguments = append([]string{"template", "kubevirt", chartDir, "--namespace", "cozy-kubevirt"}, arguments...)
		want := pinned.mustRun(t, arguments...)
		require.Contains(t, want, "kind: KubeVirt")
		for _, helm := range others {
			assert.Equal(t, want, helm.mustRun(t, arguments...), helm.variable)
		}
	})
}

func TestEveryHelmLintsTheChartWithoutAComplaint(t *testing.T) {
	eachRendering(t, func(t *testing.T, arguments ...string) {
		for _, helm := range all {
			out := helm.mustRun(t, append([]string{"lint", "--strict", chartDir}, arguments...)...)
			assert.Contains(t, out, "1 chart(s) linted, 0 chart(s) failed", helm.variable)
		}
	})
}

func TestEveryHelmRefusesBadValuesWithTheirPath(t *testing.T) {
	for name, test := range map[string]struct{ set, want string }{
		"by the schema":    {"virtHandler.resources.limits.memroy=2Gi", "memroy"},
		"by the templates": {"extraFeatureGates={CPUManager}", "extraFeatureGates[0]: \"CPUManager\" is enabled by the chart itself"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, helm := range all {
				_, stderr, err := helm.run(t, "template", "kubevirt", chartDir, "--kube-version", kubeVersions[0], "--set", test.set)
				assert.Error(t, err, helm.variable)
				assert.Contains(t, stderr, test.want, helm.variable)
			}
		})
	}
}

// eachRendering runs check with the arguments of every ci values set and Kubernetes version, in parallel.
func eachRendering(t *testing.T, check func(t *testing.T, arguments ...string)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chartDir, "ci", "*-values.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "%s/ci holds no *-values.yaml, so nothing would be checked", chartDir)
	for _, file := range files {
		for _, version := range kubeVersions {
			t.Run(strings.TrimSuffix(filepath.Base(file), "-values.yaml")+" on Kubernetes "+version, func(t *testing.T) {
				t.Parallel()
				check(t, "--values", file, "--kube-version", version)
			})
		}
	}
}

func (h helm) binary(t *testing.T) string {
	t.Helper()
	name := os.Getenv(h.variable)
	if name == "" {
		name = h.path
	}
	binary, err := exec.LookPath(name)
	require.NoError(t, err, "%s: build it with make tools, or name another with %s=", name, h.variable)
	return binary
}

func (h helm) run(t *testing.T, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	command := exec.Command(h.binary(t), arguments...)
	command.Stdout, command.Stderr = &out, &errs
	err = command.Run()
	return out.String(), errs.String(), err
}

func (h helm) mustRun(t *testing.T, arguments ...string) string {
	t.Helper()
	stdout, stderr, err := h.run(t, arguments...)
	require.NoError(t, err, fmt.Sprintf("%s %v\n%s%s", h.variable, arguments, stdout, stderr))
	return stdout
}

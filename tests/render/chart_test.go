// Package render checks the chart as the helm binary renders it: every values set, whole documents, real types.
package render

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gruntwork-io/terratest/modules/helm"
	"github.com/gruntwork-io/terratest/modules/logger"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the goldens from what the chart renders now")

const (
	chartDir  = "../../charts/kubevirt"
	release   = "kubevirt"
	namespace = "cozy-kubevirt"
)

// kubeVersions holds one version below Kubernetes 1.35 and 1.35 itself, where the rendering changes. Every
// rendering names its version, since Helm's own default differs between Helm releases.
var kubeVersions = []string{"1.34.2", "1.35.0"}

// TestMain puts the helm binary named by HELM (the Makefile sets it) where terratest looks for it: first on PATH.
func TestMain(m *testing.M) {
	code, err := withHelmOnPath(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(code)
}

func withHelmOnPath(run func() int) (int, error) {
	binary := os.Getenv("HELM")
	if binary == "" {
		binary = "../../bin/helm"
	}
	binary, err := exec.LookPath(binary)
	if err != nil {
		return 0, fmt.Errorf("HELM: %w; build it with `make tools` or name another with HELM=", err)
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "render-helm-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := os.Symlink(binary, filepath.Join(dir, "helm")); err != nil {
		return 0, err
	}
	if err := os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return 0, err
	}
	return run(), nil
}

// render renders the chart at path (a directory or an archive) with the values files; extra are further
// arguments of helm template.
func render(ctx context.Context, t *testing.T, path, kubeVersion string, valuesFiles []string, extra ...string) (string, error) {
	t.Helper()
	options := &helm.Options{Logger: logger.Discard, ValuesFiles: valuesFiles}
	args := append([]string{"--namespace", namespace, "--kube-version", kubeVersion}, extra...)
	stdout, stderr, err := helm.RenderTemplateAndGetStdOutErrContextE(t, ctx, options, path, release, nil, args...)
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, stderr)
	}
	return stdout, nil
}

func mustRender(t *testing.T, path, kubeVersion string, valuesFiles ...string) string {
	t.Helper()
	out, err := render(t.Context(), t, path, kubeVersion, valuesFiles)
	require.NoError(t, err)
	return out
}

// renderValues renders the chart with values given as YAML text.
func renderValues(t *testing.T, values string, extra ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(values), 0o600))
	return render(t.Context(), t, chartDir, kubeVersions[0], []string{file}, extra...)
}

// valuesSets returns the ci values sets by name.
func valuesSets(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chartDir, "ci", "*-values.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "%s/ci holds no *-values.yaml, so nothing would be checked", chartDir)
	sets := map[string]string{}
	for _, file := range files {
		sets[strings.TrimSuffix(filepath.Base(file), "-values.yaml")] = file
	}
	return sets
}

// renderings holds a func() (string, error) for each set and version, so that what several tests look at is
// rendered once.
var renderings sync.Map

// eachRendering runs check on every ci values set under every Kubernetes version, in parallel.
func eachRendering(t *testing.T, check func(t *testing.T, set, kubeVersion, rendered string)) {
	t.Helper()
	for set, file := range valuesSets(t) {
		for _, kubeVersion := range kubeVersions {
			t.Run(set+" on Kubernetes "+kubeVersion, func(t *testing.T) {
				t.Parallel()
				once, _ := renderings.LoadOrStore(set+" "+kubeVersion, sync.OnceValues(func() (string, error) {
					return render(context.Background(), t, chartDir, kubeVersion, []string{file})
				}))
				rendered, err := once.(func() (string, error))()
				require.NoError(t, err)
				check(t, set, kubeVersion, rendered)
			})
		}
	}
}

package chart

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheRepositorysChartHasValuesSets(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	sets, err := MustSets(filepath.Join(root, "charts", "kubevirt"))
	require.NoError(t, err)
	assert.Contains(t, sets, "default")
}

func TestAChartWithoutValuesSetsIsNamed(t *testing.T) {
	dir := t.TempDir()
	_, err := MustSets(dir)
	assert.ErrorContains(t, err, dir)
	sets, err := Sets(dir)
	require.NoError(t, err)
	assert.Empty(t, sets)
}

func TestBinaryTakesTheOneThatTheVariableNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "helm")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700))
	t.Setenv("HELM", path)
	found, err := Binary("HELM", "helm")
	require.NoError(t, err)
	assert.Equal(t, path, found)
	t.Setenv("HELM", path+"-of-nowhere")
	_, err = Binary("HELM", "helm")
	assert.ErrorContains(t, err, "HELM=")
}

func TestTemplateNamesReleaseNamespaceVersionAndFiles(t *testing.T) {
	echo := filepath.Join(t.TempDir(), "helm")
	require.NoError(t, os.WriteFile(echo, []byte("#!/bin/sh\necho \"$@\"\n"), 0o700))
	said, err := Template(t.Context(), Rendering{Helm: echo, Chart: "c", Values: []string{"a,b", `c"d`}, APIVersions: []string{"g/v1/K"}, Arguments: []string{"--debug"}})
	require.NoError(t, err)
	assert.Equal(t, `template kubevirt c --namespace cozy-kubevirt --kube-version 1.34.2 --values "a,b" --values "c""d" --api-versions g/v1/K --debug`+"\n", said)
}

func TestRunReturnsWhatAFailedProgramSaid(t *testing.T) {
	_, err := Run(t.Context(), "sh", "-c", "echo out; echo because >&2; exit 3")
	assert.ErrorContains(t, err, "because")
}

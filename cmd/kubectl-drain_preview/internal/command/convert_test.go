package command

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// This file writes one dump in the other ways that a dump may come in.

func asJSON(t *testing.T, list []byte) string {
	t.Helper()
	text, err := yaml.YAMLToJSON(list)
	require.NoError(t, err)
	return string(text)
}

func asDocuments(t *testing.T, list []byte) string {
	t.Helper()
	var read struct{ Items []any }
	require.NoError(t, yaml.Unmarshal(list, &read))
	documents := ""
	for _, item := range read.Items {
		text, err := yaml.Marshal(item)
		require.NoError(t, err)
		documents += "---\n" + string(text)
	}
	return documents
}

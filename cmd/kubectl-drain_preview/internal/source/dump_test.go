package source

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAGzippedDumpUnpacksToItsBoundAndNoFurther(t *testing.T) {
	text := `{"kind":"Node","apiVersion":"v1","metadata":{"name":"node-a"}}` + strings.Repeat(" ", 1<<20)
	for name, in := range map[string]struct {
		most   int64
		beyond bool
	}{
		"as much as it may": {int64(len(text)), false},
		"a byte more":       {int64(len(text)) - 1, true},
	} {
		var zipped bytes.Buffer
		writer := gzip.NewWriter(&zipped)
		_, err := writer.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, writer.Close())
		objects, err := Dumps{Files: []string{"-"}, In: &zipped, MaxUnpacked: in.most}.Read()
		if in.beyond {
			assert.ErrorContains(t, err, "--max-unpacked", name)
			assert.Nil(t, objects, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Len(t, objects.Nodes, 1, name)
	}
}

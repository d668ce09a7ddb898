package source

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAValueThatManyObjectsHaveIsReadAlikeFromEach(t *testing.T) {
	pod := `{"metadata": {"name": "p"}, "spec": {"nodeSelector": %s, "containers": [{"resources": {"requests": {"cpu": "%dm"}}}]}}`
	for n := range mostShared + 10 { // more than are kept
		for range 2 {
			read, err := podOf(fmt.Appendf(nil, pod, fmt.Sprintf(`{"n": "%d"}`, n), n))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(n), read.Spec.NodeSelector["n"])
			require.EqualValues(t, n, read.Spec.Containers[0].Resources.Requests.Cpu().MilliValue())
		}
	}
	read, err := podOf(fmt.Appendf(nil, pod, "null", 1))
	require.NoError(t, err)
	assert.Nil(t, read.Spec.NodeSelector)
	read, err = podOf(fmt.Appendf(nil, pod, `{"n": "`+strings.Repeat("9", 2*longestShared)+`"}`, 1))
	require.NoError(t, err)
	assert.Len(t, read.Spec.NodeSelector["n"], 2*longestShared)
	_, err = podOf(fmt.Appendf(nil, pod, `{"n": 7}`, 1))
	assert.Error(t, err)
}

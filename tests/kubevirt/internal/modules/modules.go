// Package modules reads the source of the modules that a test is built from, in the module cache: what the docs quote of it
// has to stand there.
package modules

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// KubeVirt is its module.
const KubeVirt = "kubevirt.io/kubevirt"

var dirs sync.Map // by module, since go list takes a while

// Dir is the folder of a module, at the version that go.mod (or -modfile) pins.
func Dir(t testing.TB, module string) string {
	t.Helper()
	find, _ := dirs.LoadOrStore(module, sync.OnceValues(func() (string, error) {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		return strings.TrimSpace(string(out)), err
	}))
	dir, err := find.(func() (string, error))()
	require.NoError(t, err)
	return dir
}

// Line is a line of KubeVirt's source, named as file:line.
func Line(t testing.TB, place string) string {
	t.Helper()
	path, number, found := strings.Cut(place, ":")
	require.True(t, found, "want file:line, got %s", place)
	raw, err := os.ReadFile(filepath.Join(Dir(t, KubeVirt), path))
	require.NoError(t, err)
	line, err := strconv.Atoi(number)
	require.NoError(t, err)
	lines := strings.Split(string(raw), "\n")
	require.LessOrEqual(t, line, len(lines), place)
	return lines[line-1]
}

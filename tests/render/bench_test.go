// How rendering time grows with the number of permitted devices (`make bench`).
package render

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func BenchmarkRender(b *testing.B) {
	for _, devices := range []int{10, 100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("%d devices", devices), func(b *testing.B) {
			values := filepath.Join(b.TempDir(), "values.yaml")
			require.NoError(b, os.WriteFile(values, []byte(permitted(devices)), 0o600))
			for b.Loop() {
				out, err := render(b.Context(), chartDir, "", []string{values})
				require.NoError(b, err)
				require.Equal(b, devices, strings.Count(out, "pciVendorSelector:"))
			}
		})
	}
}

// permitted returns values that permit so many PCI devices, at most 0x10000.
func permitted(devices int) string {
	var text strings.Builder
	text.WriteString("permittedHostDevices:\n  pciHostDevices:\n")
	for i := range devices {
		fmt.Fprintf(&text, "  - {pciVendorSelector: \"10DE:%04X\", resourceName: example.org/device-%d}\n", i, i)
	}
	return text.String()
}

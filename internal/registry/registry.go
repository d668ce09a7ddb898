// Package registry is an OCI registry for tests: go-containerregistry's, in this process and in memory. What is pushed
// under a tag replaces what was there, as in most registries.
package registry

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Start serves an empty registry on a free port of loopback until stop is called, and returns its address, host:port.
func Start() (address string, stop func()) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	return strings.TrimPrefix(server.URL, "http://"), server.Close
}

package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"cozy-kubevirt/internal/registry"
)

func TestAChartIsPushedOnceAndComesBackToTheByte(t *testing.T) {
	address := startRegistry(t)
	o := options{archive: archive(t, "1.2.3+build.5", "a: 1"), registry: "oci://" + address + "/charts/", patience: patience}
	said, err := push(o)
	require.NoError(t, err)
	assert.Contains(t, said, "pushed oci://"+address+"/charts/demo:1.2.3+build.5")

	said, err = push(o)
	require.NoError(t, err, "the same archive again is no fault")
	assert.Contains(t, said, "is there already")

	client, err := newClient(o, true)
	require.NoError(t, err)
	pulled, err := client.Pull(address + "/charts/demo:1.2.3+build.5")
	require.NoError(t, err)
	content, err := os.ReadFile(o.archive)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(content, pulled.Chart.Data))
}

func TestAVersionIsNeverOverwritten(t *testing.T) {
	address := startRegistry(t)
	first := options{archive: archive(t, "1.2.3", "a: 1"), registry: "oci://" + address + "/charts", patience: patience}
	_, err := push(first)
	require.NoError(t, err)
	second := first
	second.archive = archive(t, "1.2.3", "a: 2")
	_, err = push(second)
	require.ErrorContains(t, err, "other content")

	client, err := newClient(first, true)
	require.NoError(t, err)
	pulled, err := client.Pull(address + "/charts/demo:1.2.3")
	require.NoError(t, err)
	content, err := os.ReadFile(first.archive)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(content, pulled.Chart.Data), "the first one is still there")
}

func TestARegistryThatFailsGivesAClearErrorAndASecondPushSucceeds(t *testing.T) {
	backend := startRegistry(t)
	for _, fault := range []struct {
		name, says string
		answer     http.HandlerFunc
	}{
		{"answers 401", "401", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="`+r.Header.Get("Authorization")+`"`)
			w.WriteHeader(http.StatusUnauthorized)
		}},
		{"answers 500", "500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
		{"is slow", "timeout", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			var broken atomic.Bool
			broken.Store(true)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if broken.Load() {
					fault.answer(w, r)
					return
				}
				forward(backend).ServeHTTP(w, r)
			}))
			defer front.Close()
			address := strings.TrimPrefix(front.URL, "http://")
			o := options{
				archive:  archive(t, "1.2.3", "a: 1"),
				registry: "oci://" + address + "/" + strings.ReplaceAll(fault.name, " ", "-"),
				patience: 200 * time.Millisecond,
				username: "robot", password: "s3cret",
			}
			_, err := push(o)
			require.Error(t, err)
			assert.ErrorContains(t, err, address)
			assert.ErrorContains(t, err, fault.says)
			assert.NotContains(t, err.Error(), "s3cret")

			broken.Store(false)
			o.patience = patience
			said, err := push(o)
			require.NoError(t, err)
			assert.Contains(t, said, "pushed oci://")
		})
	}
	t.Run("is down", func(t *testing.T) {
		front := httptest.NewServer(http.NotFoundHandler())
		front.Close()
		_, err := push(options{archive: archive(t, "1.2.3", "a: 1"), registry: "oci://" + strings.TrimPrefix(front.URL, "http://") + "/charts", patience: patience})
		assert.ErrorContains(t, err, "refused")
	})
}

func TestAnAddressThatIsNoneOrHoldsCredentialsIsRefusedUnrepeated(t *testing.T) {
	for _, address := range []string{"", "host/path", "https://host/path", "oci://", "oci://robot:s3cret@host/path", "oci://robot:s3cret@ho st"} {
		_, err := push(options{archive: archive(t, "1.2.3", "a: 1"), registry: address, patience: patience})
		require.ErrorContains(t, err, "REGISTRY: ", address)
		assert.NotContains(t, err.Error(), "s3cret")
	}
}

func TestOnlyLoopbackIsSpokenToInPlainHTTP(t *testing.T) {
	for address, want := range map[string]bool{
		"oci://localhost:5000/a": true, "oci://127.0.0.1:5000/a": true, "oci://[::1]:5000/a": true,
		"oci://registry.example.org/a": false, "oci://10.0.0.1/a": false, "oci://localhost.example.org/a": false,
	} {
		_, plain, err := parse(address)
		require.NoError(t, err)
		assert.Equal(t, want, plain, address)
	}
}

// startRegistry serves an empty registry, in memory, and returns its address.
func startRegistry(t *testing.T) string {
	t.Helper()
	address, stop := registry.Start()
	t.Cleanup(stop)
	return address
}

// archive packages a chart with one value.
func archive(t *testing.T, version, values string) string {
	t.Helper()
	file, err := chartutil.Save(&chart.Chart{
		Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "demo", Version: version},
		Raw:      []*chart.File{{Name: chartutil.ValuesfileName, Data: []byte(values)}},
	}, t.TempDir())
	require.NoError(t, err)
	return file
}

// forward passes requests on and keeps the address that the client used, which the registry puts into its answers.
func forward(address string) http.Handler {
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: address})
		r.Out.Host = r.In.Host
	}}
}

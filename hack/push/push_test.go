package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	helm "helm.sh/helm/v3/pkg/registry"

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

	assertThere(t, address, "1.2.3+build.5", o.archive)
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

	assertThere(t, address, "1.2.3", first.archive)
}

// A registry that is asked for the archive by the digest that push says gives it, whoever moves the tag later.
func TestThePushedManifestIsSaidByItsDigest(t *testing.T) {
	address := startRegistry(t)
	o := options{archive: archive(t, "1.2.3", "a: 1"), registry: "oci://" + address + "/charts", patience: patience}
	said, err := push(o)
	require.NoError(t, err)
	reference := regexp.MustCompile(`oci://(\S+@sha256:[0-9a-f]{64}), archive`).FindStringSubmatch(said)
	require.NotNil(t, reference, said)
	assert.Equal(t, read(t, o.archive), pulled(t, reference[1]).Chart.Data)
}

// The other push comes in between: once right before the tag is set, once right after.
func TestAnotherPushOfTheVersionAtTheSameTimeIsNoticed(t *testing.T) {
	for name, when := range map[string]struct {
		comes func(reference string) bool
		after bool
	}{
		"before the tag is set": {comes: func(reference string) bool { return strings.HasPrefix(reference, "sha256:") }},
		"after the tag was set": {comes: func(reference string) bool { return reference == "1.2.3" }, after: true},
	} {
		t.Run(name, func(t *testing.T) {
			backend := startRegistry(t)
			other := archive(t, "1.2.3", "a: 2")
			var once sync.Once
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				folder, reference := path.Split(r.URL.Path)
				now := r.Method == http.MethodPut && strings.HasSuffix(folder, "/manifests/") && when.comes(reference)
				if now && when.after {
					forward(backend).ServeHTTP(w, r)
				}
				if now {
					once.Do(func() { overwrite(t, backend+"/charts/demo:1.2.3", other) })
				}
				if !now || !when.after {
					forward(backend).ServeHTTP(w, r)
				}
			}))
			defer front.Close()
			o := options{archive: archive(t, "1.2.3", "a: 1"), registry: "oci://" + strings.TrimPrefix(front.URL, "http://") + "/charts", patience: patience}
			said, err := push(o)
			require.ErrorContains(t, err, "another push was under way", said)
			assertThere(t, backend, "1.2.3", other)
		})
	}
}

func TestAnArchiveThatIsThereGetsTheProvenanceThatItLacks(t *testing.T) {
	address := startRegistry(t)
	o := options{archive: archive(t, "1.2.3", "a: 1"), registry: "oci://" + address + "/charts", patience: patience}
	_, err := push(o)
	require.NoError(t, err)
	for _, provenance := range []string{"signed", "signed anew"} {
		require.NoError(t, os.WriteFile(o.archive+".prov", []byte(provenance), 0o644))
		said, err := push(o)
		require.NoError(t, err)
		assert.Contains(t, said, "pushed a provenance")
		assert.Equal(t, provenance, string(pulled(t, address+"/charts/demo:1.2.3").Prov.Data))
		said, err = push(o)
		require.NoError(t, err)
		assert.Contains(t, said, "is there already")
	}
	require.NoError(t, os.Remove(o.archive+".prov"))
	said, err := push(o)
	require.NoError(t, err)
	assert.Contains(t, said, "is there already")
	assert.Equal(t, "signed anew", string(pulled(t, address+"/charts/demo:1.2.3").Prov.Data), "a provenance is not taken away")
	assertThere(t, address, "1.2.3", o.archive)
}

func TestAProvenanceIsPushedWithItsArchive(t *testing.T) {
	address := startRegistry(t)
	o := options{archive: archive(t, "1.2.3", "a: 1"), registry: "oci://" + address + "/charts", patience: patience}
	require.NoError(t, os.WriteFile(o.archive+".prov", []byte("signed"), 0o644))
	_, err := push(o)
	require.NoError(t, err)
	assert.Equal(t, "signed", string(pulled(t, address+"/charts/demo:1.2.3").Prov.Data))
}

func TestARegistryThatFailsGivesAClearErrorAndASecondPushSucceeds(t *testing.T) {
	backend := startRegistry(t)
	for _, fault := range []struct {
		name, says string
		answer     http.HandlerFunc
	}{
		{"answers 401", "401", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }},
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
			}
			_, err := push(o)
			require.Error(t, err)
			assert.ErrorContains(t, err, address)
			assert.ErrorContains(t, err, fault.says)

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

// assertThere says that the tag of a version holds an archive, to the byte.
func assertThere(t *testing.T, address, version, archive string) {
	t.Helper()
	assert.True(t, bytes.Equal(read(t, archive), pulled(t, address+"/charts/demo:"+version).Chart.Data), "another archive is there")
}

func pulled(t *testing.T, reference string) *helm.PullResult {
	t.Helper()
	client, err := helm.NewClient(helm.ClientOptPlainHTTP())
	require.NoError(t, err)
	there, err := client.Pull(reference, helm.PullOptWithProv(true), helm.PullOptIgnoreMissingProv(true))
	require.NoError(t, err)
	return there
}

// overwrite pushes as Helm does, over whatever is there.
func overwrite(t *testing.T, reference, archive string) {
	t.Helper()
	client, err := helm.NewClient(helm.ClientOptPlainHTTP())
	require.NoError(t, err)
	_, err = client.Push(read(t, archive), reference)
	require.NoError(t, err)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return content
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

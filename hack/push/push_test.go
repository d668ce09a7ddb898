package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
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

// TestMain is the command itself where a test starts it.
func TestMain(m *testing.M) {
	if os.Getenv("IS_THE_COMMAND") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestTheCommandSaysWhatItPushedOrWhyNotAndFails(t *testing.T) {
	backend := startRegistry(t)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, password, _ := r.BasicAuth(); name != "robot" || password != "s3cret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		forward(backend).ServeHTTP(w, r)
	}))
	defer front.Close()
	archive, address := archive(t, "1.2.3", "a: 1"), strings.TrimPrefix(front.URL, "http://")
	command := func(username string) (said, problems string, err error) {
		process := exec.Command(os.Args[0], "-archive", archive, "-registry", "oci://"+address+"/charts")
		process.Env = append(os.Environ(), "IS_THE_COMMAND=1", "REGISTRY_USERNAME="+username, "REGISTRY_PASSWORD=s3cret")
		var stdout, stderr bytes.Buffer
		process.Stdout, process.Stderr = &stdout, &stderr
		err = process.Run()
		return stdout.String(), stderr.String(), err
	}
	said, problems, err := command("robot")
	require.NoError(t, err, problems)
	assert.Regexp(t, "^pushed oci://"+address+"/charts/demo:1.2.3@sha256:.*\n$", said)

	said, problems, err = command("somebody")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 1, exit.ExitCode())
	assert.Empty(t, said)
	assert.Contains(t, problems, "push: "+address)
}

func TestWhatIsNoArchiveOrHasNoReadableProvenanceIsNotPushed(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, archive string) (named string){
		"no archive": func(t *testing.T, archive string) string { require.NoError(t, os.Remove(archive)); return archive },
		"no chart": func(t *testing.T, archive string) string {
			require.NoError(t, os.WriteFile(archive, []byte("text"), 0o644))
			return archive
		},
		"a folder for a provenance": func(t *testing.T, archive string) string {
			require.NoError(t, os.Mkdir(archive+".prov", 0o755))
			return archive + ".prov"
		},
		"a login that can't be read": func(t *testing.T, _ string) string {
			t.Setenv("HELM_CONFIG_HOME", t.TempDir())
			require.NoError(t, os.Mkdir(filepath.Join(os.Getenv("HELM_CONFIG_HOME"), "registry"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(os.Getenv("HELM_CONFIG_HOME"), "registry/config.json"), []byte("{"), 0o644))
			return "config"
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the registry was asked") }))
			defer asked.Close()
			o := options{archive: archive(t, "1.2.3", "a: 1"), registry: "oci://" + strings.TrimPrefix(asked.URL, "http://") + "/charts", patience: patience}
			named := spoil(t, o.archive)
			_, err := push(o)
			assert.ErrorContains(t, err, named)
		})
	}
}

// A registry that doesn't say what the tag points at may hold the version: it looks before, right before, and after.
func TestAVersionThatCanNotBeLookedUpIsNotPushed(t *testing.T) {
	for _, failing := range []int{1, 2, 3, 4} {
		t.Run(fmt.Sprintf("time %d", failing), func(t *testing.T) {
			backend := startRegistry(t)
			looked := 0
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead && strings.HasSuffix(r.URL.Path, "/manifests/1.2.3") {
					looked++
					if looked == failing {
						w.WriteHeader(http.StatusInternalServerError)
						return
					}
				}
				assert.False(t, looked >= failing && r.Method != http.MethodGet, "%s %s, though the version is not known", r.Method, r.URL)
				forward(backend).ServeHTTP(w, r)
			}))
			defer front.Close()
			_, err := push(options{archive: archive(t, "1.2.3", "a: 1"), registry: "oci://" + strings.TrimPrefix(front.URL, "http://") + "/charts", patience: patience})
			require.ErrorContains(t, err, "500")
			assert.Equal(t, failing, looked)
		})
	}
}

func TestAnArchiveThatIsThereAndCanNotBeReadIsNotPushedOver(t *testing.T) {
	backend := startRegistry(t)
	o := options{archive: archive(t, "1.2.3", "a: 1"), registry: "oci://" + backend + "/charts", patience: patience}
	_, err := push(o)
	require.NoError(t, err)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		assert.Equal(t, http.MethodHead, r.Method)
		forward(backend).ServeHTTP(w, r)
	}))
	defer front.Close()
	o.registry = "oci://" + strings.TrimPrefix(front.URL, "http://") + "/charts"
	_, err = push(o)
	assert.ErrorContains(t, err, "502")
}

func TestARegistryElsewhereHasToProveWhoItIs(t *testing.T) {
	front := httptest.NewUnstartedServer(http.NotFoundHandler())
	front.Config.ErrorLog = log.New(io.Discard, "", 0) // that we hang up
	front.StartTLS()
	defer front.Close()
	there, err := newTarget(options{patience: patience}, strings.TrimPrefix(front.URL, "https://")+"/charts/demo:1.2.3", false)
	require.NoError(t, err)
	_, err = there.tagged()
	assert.ErrorContains(t, err, "certificate")
}

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

package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every registry words its refusals as it likes: this one repeats all it was sent.
func TestNoWayInWhichARegistryRepeatsCredentialsShowsThem(t *testing.T) {
	const password = `s3cret "pass" word>>>>>??????` // in base64 with + and /
	header := "Basic " + base64.StdEncoding.EncodeToString([]byte("robot:"+password))
	var forms []string
	for _, text := range []string{header, strings.TrimPrefix(header, "Basic "), "robot:" + password, password} {
		forms = append(forms, text, url.QueryEscape(text), url.PathEscape(text), hex.EncodeToString([]byte(text)),
			base64.StdEncoding.EncodeToString([]byte(text)), base64.RawURLEncoding.EncodeToString([]byte(text)))
	}
	err := refused(t, options{username: "robot", password: password}, func(string) string { return strings.Join(forms, " ") })
	for _, form := range forms {
		assert.NotContains(t, err.Error(), form)
	}
	assert.Contains(t, err.Error(), "refused: ***", "what the registry says besides is shown")
}

func TestCredentialsOfALoginAreNotShownEither(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	t.Setenv("HELM_CONFIG_HOME", t.TempDir())
	err := refused(t, options{}, func(address string) string {
		login := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, address, base64.StdEncoding.EncodeToString([]byte("robot:s3cret")))
		assert.NoError(t, os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(login), 0o600))
		return "s3cret"
	})
	assert.NotContains(t, err.Error(), "s3cret")
	assert.Contains(t, err.Error(), "refused: ***")
}

// Only a manifest that is put under a tag is: the rest of a push, and every question, goes where it went.
func TestManifestsAreHeldBackFromTheirTagAndNothingElseIs(t *testing.T) {
	const sum = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" // of {}
	for name, c := range map[string]struct {
		method, path, want string
		byDigest           bool
	}{
		"a manifest":               {http.MethodPut, "/v2/demo/manifests/1.2.3", "/v2/demo/manifests/" + sum, true},
		"a manifest, not told to":  {http.MethodPut, "/v2/demo/manifests/1.2.3", "/v2/demo/manifests/1.2.3", false},
		"a manifest by its digest": {http.MethodPut, "/v2/demo/manifests/" + sum, "/v2/demo/manifests/" + sum, true},
		"a blob":                   {http.MethodPut, "/v2/demo/blobs/uploads/17", "/v2/demo/blobs/uploads/17", true},
		"a question":               {http.MethodHead, "/v2/demo/manifests/1.2.3", "/v2/demo/manifests/1.2.3", true},
	} {
		t.Run(name, func(t *testing.T) {
			sent := httptest.NewRequest(c.method, c.path, strings.NewReader("{}"))
			said := ""
			_, err := (&manifests{round(func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				said = r.URL.Path + " " + string(body)
				return nil, err
			}), c.byDigest}).RoundTrip(sent)
			require.NoError(t, err)
			assert.Equal(t, c.want+" {}", said)
			assert.Equal(t, c.path, sent.URL.Path, "a transport leaves the request as it was")
		})
	}
	broken := httptest.NewRequest(http.MethodPut, "/v2/demo/manifests/1.2.3", iotest.ErrReader(io.ErrUnexpectedEOF))
	_, err := (&manifests{round(func(*http.Request) (*http.Response, error) { panic("half a manifest was sent") }), true}).RoundTrip(broken)
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestSecretsAreBlottedAsOftenAsAsked(t *testing.T) {
	known := &secrets{}
	known.add("robot", "s3cret")
	known.add("robot", "")
	for range 2 {
		assert.Equal(t, "the password *** is wrong", known.blot("the password s3cret is wrong"))
	}
}

// round is a transport.
type round func(r *http.Request) (*http.Response, error)

func (f round) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// refused pushes to a registry that has no version, and refuses whoever authorizes himself with these words.
func refused(t *testing.T, o options, words func(address string) string) error {
	t.Helper()
	var says string
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch _, _, authorized := r.BasicAuth(); {
		case r.Method == http.MethodHead:
			w.WriteHeader(http.StatusNotFound)
		case !authorized:
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.WriteHeader(http.StatusForbidden)
			assert.NoError(t, json.NewEncoder(w).Encode(map[string]any{"errors": []map[string]string{{"code": "DENIED", "message": "refused: " + says}}}))
		}
	}))
	defer front.Close()
	address := strings.TrimPrefix(front.URL, "http://")
	says = words(address)
	o.archive, o.registry, o.patience = archive(t, "1.2.3", "a: 1"), "oci://"+address+"/charts", patience
	_, err := push(o)
	require.Error(t, err)
	return err
}

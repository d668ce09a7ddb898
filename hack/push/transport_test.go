package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

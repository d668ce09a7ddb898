// What is done to a client's requests: manifests go by their digest, and what must not be told is remembered.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// manifests puts a manifest, where it is told to, under its digest in place of a tag.
type manifests struct {
	http.RoundTripper
	byDigest bool
}

// RoundTrip sends the request.
func (m *manifests) RoundTrip(r *http.Request) (*http.Response, error) {
	folder := path.Dir(r.URL.Path)
	if m.byDigest && r.Method == http.MethodPut && strings.HasSuffix(folder, "/manifests") {
		manifest, err := io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(manifest))
		r.URL.Path = fmt.Sprintf("%s/sha256:%x", folder, sha256.Sum256(manifest))
	}
	return m.RoundTripper.RoundTrip(r)
}

// watch remembers what requests authorize themselves with, wherever the client has it from.
type watch struct {
	http.RoundTripper
	secrets *secrets
}

// RoundTrip sends the request.
func (w watch) RoundTrip(r *http.Request) (*http.Response, error) {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	w.secrets.add("", token)
	username, password, _ := r.BasicAuth()
	w.secrets.add(username, password)
	return w.RoundTripper.RoundTrip(r)
}

// secrets are texts that a registry may repeat and that nobody may read, in every way it may write them.
type secrets struct {
	lock  sync.Mutex
	forms []string
}

func (s *secrets) add(username, password string) {
	if password == "" {
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	pair := username + ":" + password
	for _, text := range []string{"Basic " + base64.StdEncoding.EncodeToString([]byte(pair)), pair, password} {
		raw := []byte(text)
		quoted, _ := json.Marshal(text)
		s.forms = append(s.forms,
			base64.StdEncoding.EncodeToString(raw), base64.RawStdEncoding.EncodeToString(raw),
			base64.URLEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw),
			hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)),
			url.QueryEscape(text), url.PathEscape(text),
			strings.Trim(string(quoted), `"`), strings.Trim(strconv.Quote(text), `"`), text,
		)
	}
	// The longest first: what holds another must go before it.
	slices.SortFunc(s.forms, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
}

// blot puts *** in the place of every secret.
func (s *secrets) blot(text string) string {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, form := range s.forms {
		text = strings.ReplaceAll(text, form, "***")
	}
	return text
}

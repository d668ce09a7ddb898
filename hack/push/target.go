// One version of a chart in one registry: what its tag points at, and how it gets there.
package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/registry"
	"oras.land/oras-go/v2/errdef"
)

// target is a reference, host/path/chart:version, and the clients that push to it. Helm's client puts a manifest under
// its tag; that of byDigest puts it under nothing but its digest.
type target struct {
	reference      string
	client, silent *registry.Client
	secrets        *secrets
}

func newTarget(o options, reference string, plain bool) (*target, error) {
	t := &target{reference: reference, secrets: &secrets{}}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = o.patience
	transport.DialContext = (&net.Dialer{Timeout: o.patience}).DialContext
	watched := watch{transport, t.secrets}
	var err error
	if t.client, err = newClient(o, plain, watched); err == nil {
		t.silent, err = newClient(o, plain, byDigest{watched})
	}
	return t, err
}

func newClient(o options, plain bool, transport http.RoundTripper) (*registry.Client, error) {
	settings := []registry.ClientOption{
		registry.ClientOptHTTPClient(&http.Client{Transport: transport}),
		registry.ClientOptBasicAuth(o.username, o.password),
	}
	if plain {
		settings = append(settings, registry.ClientOptPlainHTTP())
	}
	return registry.NewClient(settings...)
}

// tagged is the digest of the manifest that the version's tag points at; empty while there is none.
func (t *target) tagged() (string, error) {
	// An OCI tag holds no "+"; Helm writes "_" for it, and so does Client.Push.
	found, err := t.client.Resolve(strings.ReplaceAll(t.reference, "+", "_"))
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return "", nil
	case err != nil:
		return "", t.explain(err)
	}
	return found.Digest.String(), nil
}

func (t *target) pull() (*registry.PullResult, error) {
	there, err := t.client.Pull(t.reference, registry.PullOptWithChart(true), registry.PullOptWithProv(true), registry.PullOptIgnoreMissingProv(true))
	if err != nil {
		return nil, t.explain(err)
	}
	return there, nil
}

// push puts the archive there by its digest first, so that only the tag is left to set, and that only while it points at
// what it did before; and makes sure that it then points at ours. It returns the manifest's digest.
func (t *target) push(content, provenance []byte, before string) (string, error) {
	options := []registry.PushOption{registry.PushOptCreationTime(time.Unix(0, 0).UTC().Format(time.RFC3339))}
	if provenance != nil {
		options = append(options, registry.PushOptProvData(provenance))
	}
	ours := ""
	for _, client := range []*registry.Client{t.silent, t.client} {
		now, err := t.tagged()
		if err != nil {
			return "", err
		}
		if now != before {
			return "", t.taken(now, "nothing was pushed over it")
		}
		done, err := client.Push(content, t.reference, options...)
		if err != nil {
			return "", t.explain(err)
		}
		ours = done.Manifest.Digest
	}
	now, err := t.tagged()
	if err != nil {
		return "", err
	}
	if now != ours {
		return "", t.taken(now, "ours is there as "+ours+", without the version")
	}
	return ours, nil
}

// taken says that somebody else pushed the version at the same time.
func (t *target) taken(now, ours string) error {
	return fmt.Errorf("%s: another push was under way, and the version is its own, found %s; %s. See whose archive is right, and push the other under another version", t.reference, now, ours)
}

// explain says what to do about a registry's answer, without what is secret.
func (t *target) explain(err error) error {
	return fmt.Errorf("%s: %s. The version is not known to be ours: check that the registry is up and that you may push there (`helm registry login`, or REGISTRY_USERNAME and REGISTRY_PASSWORD), then push again", t.reference, t.secrets.blot(err.Error()))
}

// One version of a chart in one registry: what its tag points at, and how it gets there.
package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/registry"
	"oras.land/oras-go/v2/errdef"
)

// target is a reference, host/path/chart:version, and the client that pushes to it.
type target struct {
	reference string
	client    *registry.Client
	manifests *manifests
	secrets   *secrets
}

func newTarget(o options, reference string, plain bool) (*target, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = o.patience
	t := &target{reference: reference, secrets: &secrets{}}
	t.manifests = &manifests{RoundTripper: watch{transport, t.secrets}}
	settings := []registry.ClientOption{
		registry.ClientOptHTTPClient(&http.Client{Transport: t.manifests}),
		registry.ClientOptBasicAuth(o.username, o.password),
	}
	if plain {
		settings = append(settings, registry.ClientOptPlainHTTP())
	}
	var err error
	t.client, err = registry.NewClient(settings...)
	return t, err
}

// tagged is the digest of the manifest that the version's tag points at; empty while there is none.
func (t *target) tagged() (string, error) {
	// An OCI tag holds no "+"; Helm writes "_" for it, and so does Client.Push.
	found, err := t.client.Resolve(strings.ReplaceAll(t.reference, "+", "_"))
	if err != nil && !errors.Is(err, errdef.ErrNotFound) {
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
	ours := ""
	for _, t.manifests.byDigest = range []bool{true, false} {
		now, err := t.tagged()
		if err != nil {
			return "", err
		}
		if now != before {
			return "", t.taken(now, "nothing was pushed over it")
		}
		done, err := t.client.Push(content, t.reference, registry.PushOptProvData(provenance), registry.PushOptCreationTime(time.Unix(0, 0).UTC().Format(time.RFC3339)))
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

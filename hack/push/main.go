// Command push puts a packaged chart into an OCI registry, and never over another one of the same version.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/registry"
	"oras.land/oras-go/v2/errdef"
)

// patience is how long a registry may take to answer one request.
const patience = 30 * time.Second

// options are what the caller decides; the Makefile passes them on.
type options struct {
	archive, registry string
	patience          time.Duration
	// username and password may be empty: then the credentials of `helm registry login` and docker are used.
	username, password string
}

func main() {
	o := options{patience: patience, username: os.Getenv("REGISTRY_USERNAME"), password: os.Getenv("REGISTRY_PASSWORD")}
	flag.StringVar(&o.archive, "archive", "", "the packaged chart, a .tgz")
	flag.StringVar(&o.registry, "registry", "", "where to push it to, oci://host/path")
	flag.Parse()
	said, err := push(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "push:", err)
		os.Exit(1)
	}
	fmt.Println(said)
}

// push returns what it did in one line: pushed, or found the same archive there already.
func push(o options) (string, error) {
	repository, plain, err := parse(o.registry)
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(o.archive)
	if err != nil {
		return "", err
	}
	chart, err := loader.LoadArchive(bytes.NewReader(content))
	if err != nil {
		return "", fmt.Errorf("%s: %w", o.archive, err)
	}
	provenance, err := os.ReadFile(o.archive + ".prov")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	reference := repository + "/" + chart.Name() + ":" + chart.Metadata.Version
	// An OCI tag holds no "+"; Helm writes "_" for it, and so does Client.Push.
	tagged := strings.ReplaceAll(reference, "+", "_")

	client, err := newClient(o, plain)
	if err != nil {
		return "", err
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	switch _, err := client.Resolve(tagged); {
	case errors.Is(err, errdef.ErrNotFound): // the version is free
	case err != nil:
		return "", explain(o, reference, err)
	default:
		there, err := client.Pull(reference, registry.PullOptWithChart(true), registry.PullOptIgnoreMissingProv(true))
		if err != nil {
			return "", explain(o, reference, err)
		}
		if there.Chart.Digest != digest {
			return "", fmt.Errorf("%s is there already with other content: found %s, have %s; a version is never overwritten, so push under another one", reference, there.Chart.Digest, digest)
		}
		return fmt.Sprintf("oci://%s is there already, the same archive %s", reference, digest), nil
	}
	pushed := []registry.PushOption{registry.PushOptCreationTime(time.Unix(0, 0).UTC().Format(time.RFC3339))}
	if provenance != nil {
		pushed = append(pushed, registry.PushOptProvData(provenance))
	}
	if _, err := client.Push(content, reference, pushed...); err != nil {
		return "", explain(o, reference, err)
	}
	return fmt.Sprintf("pushed oci://%s, archive %s", reference, digest), nil
}

// parse splits oci://host/path into host/path and whether to speak plain HTTP, which is only done on loopback.
func parse(address string) (repository string, plain bool, err error) {
	parsed, err := url.Parse(address)
	switch {
	case err != nil:
		// The error would repeat the address, which may hold a password.
		return "", false, errors.New("REGISTRY: not an address; expected oci://host/path")
	case parsed.User != nil:
		return "", false, errors.New("REGISTRY: holds credentials; take them out, and log in with `helm registry login` or set REGISTRY_USERNAME and REGISTRY_PASSWORD")
	case parsed.Scheme != "oci" || parsed.Host == "":
		return "", false, fmt.Errorf("REGISTRY: %q; expected oci://host/path", address)
	}
	host := parsed.Hostname()
	plain = host == "localhost" || net.ParseIP(host).IsLoopback()
	return strings.TrimSuffix(parsed.Host+parsed.Path, "/"), plain, nil
}

func newClient(o options, plain bool) (*registry.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = o.patience
	transport.DialContext = (&net.Dialer{Timeout: o.patience}).DialContext
	settings := []registry.ClientOption{
		registry.ClientOptHTTPClient(&http.Client{Transport: transport}),
		registry.ClientOptBasicAuth(o.username, o.password),
	}
	if plain {
		settings = append(settings, registry.ClientOptPlainHTTP())
	}
	return registry.NewClient(settings...)
}

// explain says what to do about a registry's answer, and blots out the password should the answer repeat it.
func explain(o options, reference string, err error) error {
	text := err.Error()
	if o.password != "" {
		text = strings.ReplaceAll(text, o.password, "***")
	}
	return fmt.Errorf("%s: %s; nothing was pushed under this version. Check that the registry is up and that you may push there (`helm registry login`, or REGISTRY_USERNAME and REGISTRY_PASSWORD), then push again", reference, text)
}

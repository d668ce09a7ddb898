// Command push puts a packaged chart into an OCI registry, and not over another one of the same version: it looks before and
// after. Two pushes of one version at the same moment only a registry whose tags are immutable can keep apart.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
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
	t, err := newTarget(o, repository+"/"+chart.Name()+":"+chart.Metadata.Version, plain)
	if err != nil {
		return "", err
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	before, err := t.tagged()
	if err != nil {
		return "", err
	}
	did := "pushed"
	if before != "" {
		there, err := t.pull()
		if err != nil {
			return "", err
		}
		if there.Chart.Digest != digest {
			return "", fmt.Errorf("%s is there already with other content: found %s, have %s; a version is not overwritten, so push under another one", t.reference, there.Chart.Digest, digest)
		}
		if provenance == nil || bytes.Equal(provenance, there.Prov.Data) {
			return fmt.Sprintf("oci://%s@%s is there already, the same archive %s", t.reference, before, digest), nil
		}
		did = "pushed a provenance, for the archive that was there:"
	}
	manifest, err := t.push(content, provenance, before)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s oci://%s@%s, archive %s", did, t.reference, manifest, digest), nil
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

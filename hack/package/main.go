// Command package bundles a chart into an archive that depends on nothing but the commit: the same bytes
// from every clone, whatever the clock, the user and the umask.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/google/renameio/v2"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/provenance"

	"cozy-kubevirt/internal/git"
)

// options are what the caller decides; the Makefile passes them on.
type options struct {
	chart, out, version string
	allowDirty          bool
	signKey, keyring    string
}

func main() {
	var o options
	flag.StringVar(&o.chart, "chart", "charts/kubevirt", "folder of the chart")
	flag.StringVar(&o.out, "out", "_out", "folder to write to")
	flag.StringVar(&o.version, "version", "", "SemVer version of the package (default: Chart.yaml's)")
	flag.BoolVar(&o.allowDirty, "allow-dirty", false, "package a tree with changes that are not committed")
	flag.StringVar(&o.signKey, "sign-key", "", "name of the key to sign with; its passphrase is read from SIGN_PASSPHRASE")
	flag.StringVar(&o.keyring, "keyring", "", "file of the key ring that holds the key, with its secret part")
	flag.Parse()
	archive, err := bundle(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
	fmt.Println(archive)
}

// bundle writes the archive, its checksum and, if asked for, its provenance, and returns the archive's path.
func bundle(o options) (string, error) {
	if o.version != "" {
		if _, err := semver.StrictNewVersion(o.version); err != nil {
			return "", fmt.Errorf("VERSION: %q is not SemVer (%w); expected one like 1.2.3", o.version, err)
		}
	}
	if !o.allowDirty {
		changes, err := git.Run(context.Background(), o.chart, nil, "status", "--porcelain")
		if err != nil {
			return "", err
		}
		if changes != "" {
			return "", fmt.Errorf("the tree has changes that are not committed, so nobody could build this archive again; commit them, or set ALLOW_DIRTY=1:\n%s", changes)
		}
	}
	epoch, err := sourceDate(o.chart)
	if err != nil {
		return "", err
	}
	chart, err := loader.LoadDir(o.chart)
	if err != nil {
		return "", err
	}
	if o.version != "" {
		chart.Metadata.Version = o.version
	}
	work, err := os.MkdirTemp("", "package-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }()
	saved, err := chartutil.Save(chart, work)
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(saved)
	if err != nil {
		return "", err
	}
	if content, err = reproducible(content, epoch); err != nil {
		return "", err
	}
	name := filepath.Base(saved)
	files := map[string][]byte{
		name:             content,
		name + ".sha256": fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(content), name),
	}
	if o.signKey != "" {
		if err := os.WriteFile(saved, content, 0o644); err != nil {
			return "", err
		}
		if files[name+".prov"], err = sign(saved, o); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return "", err
	}
	// The archive comes last: where it is, what belongs to it is there too.
	for _, file := range []string{name + ".sha256", name + ".prov", name} {
		target := filepath.Join(o.out, file)
		if files[file] == nil {
			// A provenance left by an earlier run would not fit this archive.
			if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
				return "", err
			}
			continue
		}
		if err := renameio.WriteFile(target, files[file], 0o644, renameio.WithStaticPermissions(0o644)); err != nil {
			return "", err
		}
	}
	return filepath.Join(o.out, name), nil
}

// sourceDate is SOURCE_DATE_EPOCH (seconds since 1970), or else the time of the commit.
func sourceDate(dir string) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		var err error
		if text, err = git.Run(context.Background(), dir, nil, "log", "-1", "--format=%ct"); err != nil {
			return time.Time{}, err
		}
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %q is not a number of seconds", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func sign(archive string, o options) ([]byte, error) {
	if o.keyring == "" {
		return nil, errors.New("SIGN_KEY is set and SIGN_KEYRING is not; name the file of the key ring")
	}
	signatory, err := provenance.NewFromKeyring(o.keyring, o.signKey)
	if err != nil {
		return nil, fmt.Errorf("SIGN_KEYRING %s, SIGN_KEY %s: %w", o.keyring, o.signKey, err)
	}
	if err := signatory.DecryptKey(func(string) ([]byte, error) { return []byte(os.Getenv("SIGN_PASSPHRASE")), nil }); err != nil {
		return nil, fmt.Errorf("SIGN_KEY %s: %w", o.signKey, err)
	}
	text, err := signatory.ClearSign(archive)
	return []byte(text), err
}

// Command package bundles a chart into an archive that depends on nothing but the commit: the same bytes
// from every clone, whatever the clock, the user and the umask.
package main

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/google/renameio/v2"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/provenance"
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
	flag.BoolVar(&o.allowDirty, "allow-dirty", false, "package the folder as it is, and not the commit")
	flag.StringVar(&o.signKey, "sign-key", "", "name of the key to sign with; its passphrase is read from SIGN_PASSPHRASE")
	flag.StringVar(&o.keyring, "keyring", "", "file of the key ring that holds the key, with its secret part")
	flag.Parse()
	archive, err := bundle(o, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
	fmt.Println(archive)
}

// bundle writes the archive, its checksum and, if asked for, its provenance, and returns the archive's path.
func bundle(o options, stderr io.Writer) (string, error) {
	if o.version != "" {
		if _, err := semver.StrictNewVersion(o.version); err != nil {
			return "", fmt.Errorf("VERSION: %q is not SemVer (%w); expected one like 1.2.3", o.version, err)
		}
	}
	from, err := head(o.chart)
	if err != nil {
		return "", err
	}
	epoch, err := from.sourceDate()
	if err != nil {
		return "", err
	}
	work, err := os.MkdirTemp("", "package-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }()
	source := o.chart
	if o.allowDirty {
		fmt.Fprintf(stderr, "package: ALLOW_DIRTY=1: packaged is the folder %s as it is, with what git ignores, and not the commit %.7s; nobody else could build this archive\n", o.chart, from.hash)
	} else {
		changes, err := from.changes()
		if err != nil {
			return "", err
		}
		if changes != "" {
			return "", fmt.Errorf("the tree has changes that are not committed, and only what is committed is packaged; commit them, or set ALLOW_DIRTY=1 to package the folder as it is:\n%s", changes)
		}
		source = filepath.Join(work, "chart")
		if err := from.write(source); err != nil {
			return "", err
		}
	}
	saved, err := save(source, o.version, work)
	if err != nil {
		return "", err
	}
	content, err := reproducible(saved, epoch)
	if err != nil {
		return "", err
	}
	name := filepath.Base(saved)
	files := map[string][]byte{
		name:             content,
		name + ".sha256": fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(content), name),
	}
	if o.signKey != "" {
		if files[name+".prov"], err = sign(saved, content, o); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return "", err
	}
	// The archive goes first and comes last: wherever it is, what belongs to it is there too.
	for _, file := range []string{name, name + ".prov"} {
		if err := os.Remove(filepath.Join(o.out, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	for _, file := range []string{name + ".sha256", name + ".prov", name} {
		if files[file] == nil {
			continue
		}
		if err := renameio.WriteFile(filepath.Join(o.out, file), files[file], 0o644, renameio.WithStaticPermissions(0o644)); err != nil {
			return "", err
		}
	}
	return filepath.Join(o.out, name), nil
}

// save has Helm write the archive of a chart into a folder, and returns its path.
func save(chart, version, to string) (string, error) {
	loaded, err := loader.LoadDir(chart)
	if err != nil {
		return "", err
	}
	if version != "" {
		loaded.Metadata.Version = version
	}
	return chartutil.Save(loaded, to)
}

// sourceDate is SOURCE_DATE_EPOCH (seconds since 1970), or else the time of the commit.
func (c commit) sourceDate() (time.Time, error) {
	text := cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), c.date)
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %q is not a number of seconds", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// sign writes the archive where Helm reads what it signs, and returns its provenance.
func sign(archive string, content []byte, o options) ([]byte, error) {
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
	if err := os.WriteFile(archive, content, 0o644); err != nil {
		return nil, err
	}
	text, err := signatory.ClearSign(archive)
	return []byte(text), err
}

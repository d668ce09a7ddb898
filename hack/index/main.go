// Command index writes the index.yaml of a plain HTTP repository of charts, for all archives of a folder. It is Helm's own,
// but dated by what the archives hold, so that it is the same whenever it is made.
package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
	"helm.sh/helm/v3/pkg/repo"
	"sigs.k8s.io/yaml"
)

func main() {
	folder := flag.String("folder", "_out", "folder of the archives, where index.yaml goes")
	address := flag.String("url", "", "address that the archives are downloaded from; empty if they lie beside the index")
	merge := flag.String("merge", "", "index.yaml of the repository as it is, whose other versions are kept")
	flag.Parse()
	file, err := index(*folder, *address, *merge)
	if err != nil {
		fmt.Fprintln(os.Stderr, "index:", err)
		os.Exit(1)
	}
	fmt.Println(file)
}

// index writes the index and returns its path.
func index(folder, address, merge string) (string, error) {
	if u, err := url.Parse(address); err != nil || address != "" && (u.Host == "" || u.User != nil) {
		return "", errors.New("URL: expected the address of a folder without credentials, like https://example.org/charts, or nothing")
	}
	found, err := repo.IndexDirectory(folder, address)
	if err != nil {
		return "", err
	}
	if len(found.Entries) == 0 {
		return "", fmt.Errorf("%s holds no packaged chart; make one with: make package", folder)
	}
	found.Generated = time.Time{}
	for name, versions := range found.Entries {
		for _, version := range versions {
			if version.Created, err = packaged(filepath.Join(folder, name+"-"+version.Version+".tgz")); err != nil {
				return "", err
			}
		}
	}
	if merge != "" {
		before, err := repo.LoadIndexFile(merge)
		if err != nil {
			return "", fmt.Errorf("MERGE: %s: %w", merge, err)
		}
		for name, versions := range found.Entries {
			for _, version := range versions {
				if there, err := before.Get(name, version.Version); err == nil && there.Version == version.Version && there.Digest != version.Digest {
					return "", fmt.Errorf("MERGE: %s has %s %s with other content: found %s, have %s; release under another version", merge, name, version.Version, there.Digest, version.Digest)
				}
			}
		}
		found.Merge(before)
	}
	for _, versions := range found.Entries {
		for _, version := range versions {
			if version.Created.After(found.Generated) {
				found.Generated = version.Created
			}
		}
	}
	found.SortEntries()
	text, err := yaml.Marshal(found)
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "index.yaml")
	return file, renameio.WriteFile(file, text, 0o644)
}

// packaged is the date of an archive's first file, which make package takes from the commit.
func packaged(archive string) (time.Time, error) {
	file, err := os.Open(archive)
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", archive, err)
	}
	header, err := tar.NewReader(unzipped).Next()
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", archive, err)
	}
	return header.ModTime.UTC(), nil
}

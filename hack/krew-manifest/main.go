// Command krew-manifest fills in .krew.yaml for a tag: each archive's address and the checksum of the file of that name in a folder.
// The template is krew-release-bot's, so that the bot can take it over.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/semver/v3"
)

func main() {
	source := flag.String("template", ".krew.yaml", "file to fill in")
	tag := flag.String("tag", "", "tag of the release, like v1.2.3")
	archives := flag.String("archives", "", "folder of the archives")
	flag.Parse()
	if err := fill(os.Stdout, *source, *tag, *archives); err != nil {
		fmt.Fprintln(os.Stderr, "krew-manifest:", err)
		os.Exit(1)
	}
}

// release is what the template may ask for.
type release struct{ TagName string }

func fill(w io.Writer, source, tag, archives string) error {
	version, isTag := strings.CutPrefix(tag, "v")
	if _, err := semver.StrictNewVersion(version); err != nil || !isTag {
		return fmt.Errorf("-tag %q: not a tag that krew takes for a version; expected one like v1.2.3", tag)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	parsed, err := template.New(filepath.Base(source)).Option("missingkey=error").Funcs(template.FuncMap{
		"addURIAndSha": func(address, tag string) (string, error) { return uriAndSha(address, tag, archives) },
	}).Parse(string(text))
	if err != nil {
		return err
	}
	var filled strings.Builder
	if err := parsed.Execute(&filled, release{tag}); err != nil {
		// The template's own words bury the reason: it says itself which archive is missing.
		var failed template.ExecError
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return fmt.Errorf("%s: %w", source, err)
	}
	_, err = io.WriteString(w, filled.String())
	return err
}

// uriAndSha are the two fields of a platform, the second one indented as it stands in a list of the spec.
func uriAndSha(address, tag, archives string) (string, error) {
	parsed, err := template.New("address").Option("missingkey=error").Parse(address)
	if err != nil {
		return "", err
	}
	var uri strings.Builder
	if err := parsed.Execute(&uri, release{tag}); err != nil {
		return "", err
	}
	archive, err := os.ReadFile(filepath.Join(archives, path.Base(uri.String())))
	if err != nil {
		return "", fmt.Errorf("the archive of %s: %w; the names are those of .goreleaser.yaml", uri.String(), err)
	}
	return fmt.Sprintf("uri: %s\n    sha256: %x", uri.String(), sha256.Sum256(archive)), nil
}

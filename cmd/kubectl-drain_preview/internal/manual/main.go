// Command manual writes the command's manual, as a page of Markdown and as a man page, from what the command says of itself.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/command"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manual FOLDER")
		os.Exit(1)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

// write writes the pages. Neither the date nor the home folder of who runs it is in them.
func write(folder string) error {
	cmd := command.New(genericiooptions.IOStreams{In: os.Stdin, Out: io.Discard, ErrOut: io.Discard})
	cmd.DisableAutoGenTag = true
	cmd.Flags().Lookup("cache-dir").DefValue = "~/.kube/cache"
	header := &doc.GenManHeader{Title: "KUBECTL-DRAIN-PREVIEW", Section: "1", Source: " ", Manual: " ", Date: new(time.Time)}
	for name, generate := range map[string]func(*cobra.Command, io.Writer) error{
		"kubectl-drain-preview.md": doc.GenMarkdown,
		"kubectl-drain-preview.1":  func(cmd *cobra.Command, w io.Writer) error { return doc.GenMan(cmd, header, w) },
	} {
		var page bytes.Buffer
		if err := generate(cmd, &page); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), undated(page.Bytes()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

var date = regexp.MustCompile(`"Jan 0001"`)

// undated is a man page without the date that its header can't do without.
func undated(page []byte) []byte { return date.ReplaceAll(page, []byte(`""`)) }

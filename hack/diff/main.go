// Command diff says what a change of the chart changes in what it renders: it renders the chart of a base commit
// and of the working tree, committed or not, over every ci values set, and compares the documents.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"cozy-kubevirt/internal/git"
)

// Exit statuses, those of diff(1).
const (
	same = iota
	different
	trouble
)

// options are what the caller decides; the Makefile passes them on.
type options struct {
	repository, chart, base string
	markdown                bool
}

func main() {
	var o options
	flag.StringVar(&o.repository, "repository", ".", "folder in the repository")
	flag.StringVar(&o.chart, "chart", "charts/kubevirt", "folder of the chart, from the top of the repository")
	flag.StringVar(&o.base, "base", "origin/main", "commit, branch or tag to compare the working tree with")
	flag.BoolVar(&o.markdown, "markdown", false, "print Markdown, for a job summary")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status, err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "diff:", err)
	}
	os.Exit(status)
}

// run prints the report and returns the exit status. What it checks out is gone when it returns.
func run(ctx context.Context, o options, out io.Writer) (int, error) {
	top, err := git.Run(ctx, o.repository, nil, "rev-parse", "--show-toplevel")
	if err != nil {
		return trouble, err
	}
	base, remove, err := checkOut(ctx, top, o)
	if err != nil {
		return trouble, err
	}
	defer remove()
	report, err := compare(ctx, base, side{name: "the working tree", dir: filepath.Join(top, o.chart)})
	if err != nil {
		return trouble, err
	}
	if _, err := io.WriteString(out, report.text(o.markdown)); err != nil {
		return trouble, err
	}
	if len(report.incomparable) > 0 {
		return trouble, errors.Join(report.incomparable...)
	}
	if len(report.findings) > 0 {
		return different, nil
	}
	return same, nil
}

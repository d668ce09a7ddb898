// Command impact says what a change of the KubeVirt CR will do to a running cluster, by KubeVirt's own code at the
// version that go.mod pins: docs/impact.md.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"
	"kubevirt.io/client-go/log"

	"cozy-kubevirt/cmd/kubectl-drain_preview/plain"
)

// Exit statuses.
const (
	noEffect = iota
	effect
	untold
	beware // refused, or a caution
)

// options are what the caller decides; the Makefile passes them on.
type options struct{ base, values, old, new, output, save, chart string }

func main() {
	var o options
	flag.StringVar(&o.base, "base", "origin/main", "commit, branch or tag to compare the working tree with")
	flag.StringVar(&o.values, "values", "", "values files, parted by blanks, in place of the chart's values sets")
	flag.StringVar(&o.old, "old", "", "file with the KubeVirt CR that runs, in place of the base")
	flag.StringVar(&o.new, "new", "", "file with the KubeVirt CR that is to be")
	flag.StringVar(&o.output, "o", "text", "text, json or markdown")
	flag.StringVar(&o.save, "save", "", "file to write the report to as well, as JSON")
	flag.StringVar(&o.chart, "chart", "charts/kubevirt", "folder of the chart, from the top of the repository")
	flag.Parse()
	quiet()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status, err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "impact:", plain.Text(err.Error()))
	}
	os.Exit(status)
}

// quiet drops the logs of KubeVirt's code: what matters is in the report.
func quiet() {
	log.InitializeLogging("impact")
	log.Log.SetIOWriter(io.Discard)
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}

// run prints the report and returns the exit status: untold with an error, the worst of the reports' without.
func run(ctx context.Context, o options, out io.Writer) (int, error) {
	print, found := printers[o.output]
	if !found {
		return untold, fmt.Errorf("-o: %q is no output; expected text, json or markdown", o.output)
	}
	pairs, err := readPairs(ctx, o)
	if err != nil {
		return untold, err
	}
	var reports []*report
	status := noEffect
	for _, pair := range pairs {
		if ctx.Err() != nil {
			return untold, errors.New("interrupted")
		}
		r, err := judge(ctx, pair)
		if err != nil {
			return untold, fmt.Errorf("%s: %w", pair.where(), err)
		}
		reports = append(reports, r)
		status = max(status, r.status())
	}
	if o.save != "" {
		if err := saveJSON(o.save, reports); err != nil {
			return untold, err
		}
	}
	if err := print(out, reports); err != nil {
		return untold, err
	}
	return status, nil
}

func saveJSON(path string, reports []*report) error {
	var text bytes.Buffer
	if err := printers["json"](&text, reports); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

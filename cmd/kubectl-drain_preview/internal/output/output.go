// Package output prints a report: as a table for 80 columns, wide, as Markdown, JSON or YAML.
package output

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"cozy-kubevirt/cmd/kubectl-drain_preview/report"
)

// Formats are what -o takes; "" is the table.
var Formats = []string{"wide", "json", "yaml", "markdown"}

// Known says whether -o takes a format.
func Known(format string) error {
	if format == "" || slices.Contains(Formats, format) {
		return nil
	}
	return fmt.Errorf("-o %q: no such format; expected one of %s", format, strings.Join(Formats, ", "))
}

// Print writes a report. Colour is only used in the table.
func Print(w io.Writer, r *report.Report, format string, colour bool) error {
	if err := Known(format); err != nil {
		return err
	}
	switch format {
	case "json", "yaml": // which escape by themselves
		printer, err := genericclioptions.NewJSONYamlPrintFlags().ToPrinter(format)
		if err != nil {
			return err
		}
		return printer.PrintObj(r, w)
	}
	r = printable(r)
	switch format {
	case "wide":
		return wide(w, r)
	case "markdown":
		return markdown(w, r)
	}
	return table(w, r, painter(colour))
}

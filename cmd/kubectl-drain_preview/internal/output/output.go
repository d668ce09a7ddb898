// Package output prints a report: as a table for 80 columns, wide, as Markdown, JSON or YAML.
package output

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"cozy-kubevirt/cmd/kubectl-drain_preview/report"
)

// Formats are what -o takes; "" is the table.
var Formats = []string{"wide", "json", "yaml", "markdown", "jsonpath=…"}

// jsonPath is how kubectl prints fields of an object (kubectl get -o jsonpath=…), nil if the format is another.
func jsonPath(format string) (printers.ResourcePrinter, error) {
	flags := genericclioptions.NewJSONPathPrintFlags("", true)
	if name, _, found := strings.Cut(format, "="); !found || !slices.Contains(flags.AllowedFormats(), name) {
		return nil, nil
	}
	return flags.ToPrinter(format)
}

// Known says whether -o takes a format.
func Known(format string) error {
	if format == "" || slices.Contains(Formats[:4], format) {
		return nil
	}
	if fields, err := jsonPath(format); fields != nil || err != nil {
		return err
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
	if fields, err := jsonPath(format); err != nil {
		return err
	} else if fields != nil {
		return fields.PrintObj(r, w)
	}
	switch format {
	case "wide":
		return wide(w, r)
	case "markdown":
		return markdown(w, r)
	}
	return table(w, r, painter(colour))
}

package output

import (
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"cozy-kubevirt/cmd/kubectl-drain_preview/report"
)

// This file is one line a VM with everything on it: for wide terminals and grep, and as Markdown.

// headings are the columns; the last is only there where the cluster was asked.
func headings(r *report.Report) []string {
	names := []string{"Namespace", "VM", "Node", "Carries", "From", "Can migrate", "Reason", "Run strategy", "Drain", "Drain why",
		"Upgrade", "Upgrade why"}
	if slices.ContainsFunc(r.VMs, func(vm report.VM) bool { return vm.Verified != nil }) {
		names = append(names, "The cluster")
	}
	return names
}

// line is a VM's cells, as many as there are headings.
func line(vm report.VM, headings int) []string {
	can := "no"
	if vm.LiveMigratable {
		can = "yes"
	}
	cells := []string{vm.Namespace, vm.Name, vm.Node, vm.Strategy, string(vm.StrategySource), can, vm.Reason, runs(vm),
		string(vm.Drain.Outcome), vm.Drain.Why, upgrade(vm.Upgrade), vm.Upgrade.Why, verified(vm.Verified)}
	return cells[:headings]
}

// verified is what the cluster says of a verdict.
func verified(v *report.Verified) string {
	switch {
	case v == nil:
		return "was not asked"
	case v.Agreed:
		return "answers " + v.Said
	}
	return "DISAGREES: it answers " + v.Said + "; expected " + v.Expected
}

func wide(w io.Writer, r *report.Report) error {
	t := &metav1.Table{}
	headings := headings(r)
	for _, name := range headings {
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	for _, vm := range r.VMs {
		row := metav1.TableRow{}
		for _, cell := range line(vm, len(headings)) {
			row.Cells = append(row.Cells, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	if err := printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(t, w); err != nil {
		return err
	}
	text := &strings.Builder{}
	text.WriteString("\n")
	summary(text, r, painter(false))
	_, err := io.WriteString(w, text.String())
	return err
}

func markdown(w io.Writer, r *report.Report) error {
	text := &strings.Builder{}
	tableLine := func(cells []string) { fmt.Fprintf(text, "| %s |\n", strings.Join(cells, " | ")) }
	headings := headings(r)
	tableLine(headings)
	tableLine(strings.Split(strings.Repeat("---,", len(headings)-1)+"---", ","))
	for _, vm := range r.VMs {
		cells := line(vm, len(headings))
		for i := range cells {
			cells[i] = markdownText.Replace(cells[i])
		}
		tableLine(cells)
	}
	fmt.Fprintf(text, "\n**%s** %s\n", answer(r), markdownText.Replace(pace(r.Pace)))
	for _, note := range r.Notes {
		fmt.Fprintf(text, "\nNot read: %s.\n", markdownText.Replace(note))
	}
	for _, advice := range r.Advice {
		commands := strings.Join(advice.Commands, "\n")
		fence := "```"
		for strings.Contains(commands, fence) {
			fence += "`"
		}
		fmt.Fprintf(text, "\n%s\n\n%ssh\n%s\n%s\n", markdownText.Replace(advice.Do), fence, commands, fence)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// markdownText is text that Markdown shows as it is. A bar is a reference, as a table is cut at bars before escapes are read.
var markdownText = strings.NewReplacer(`\`, `\\`, "|", "&#124;", "&", "&amp;", "<", "&lt;", "`", "\\`", "[", `\[`, "]", `\]`, "*", `\*`)

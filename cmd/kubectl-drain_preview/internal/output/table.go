package output

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mitchellh/go-wordwrap"

	"cozy-kubevirt/cmd/kubectl-drain_preview/report"
)

// This file is the table: for each VM a line of verdicts, and below it what they follow from.

// width is the terminal that the table is made for, in columns.
const width = 80

// columns of a VM's first line: the VM, the drain, the upgrade. Between them stand two spaces.
var columns = []int{26, 25, 25}

func table(w io.Writer, r *report.Report, paint paint) error {
	text := &strings.Builder{}
	for _, node := range r.Nodes {
		vms := r.On(node)
		fmt.Fprintf(text, "%s\n", paint.heading(wrap(fmt.Sprintf("Node %s: %s", node, of(len(vms), "VM", "VMs")), 0)))
		if len(vms) > 0 {
			cells(text, []string{"VM", "DRAIN", "UPGRADE"}, nil)
		}
		for _, vm := range vms {
			row(text, vm, paint)
		}
		text.WriteString("\n")
	}
	summary(text, r, paint)
	_, err := io.WriteString(w, text.String())
	return err
}

func row(text *strings.Builder, vm report.VM, paint paint) {
	name := vm.Namespace + "/" + vm.Name
	if utf8.RuneCountInString(name) > columns[0] {
		fmt.Fprintf(text, "%s\n", strings.Join(fold(name, width), "\n"))
		name = ""
	}
	cells(text, []string{name, string(vm.Drain.Outcome), upgrade(vm.Upgrade)},
		[]func(string) string{nil, paint.of(vm.Drain.Outcome), paint.of(vm.Upgrade.Outcome)})
	if vm.Phase != "" {
		facts := []string{carries(vm), migration(vm), runs(vm)}
		if vm.Phase != "Running" {
			facts = append(facts, vm.Phase)
		}
		fmt.Fprintf(text, "%s\n", paint.faint(wrap(strings.Join(facts, ", "), 2)))
	}
	if v := vm.Verified; v != nil {
		text.WriteString(paint.verified(wrap("the cluster "+verified(v), 2), v.Agreed) + "\n")
	}
	switch {
	case vm.Drain.Why != "" && vm.Drain.Why == vm.Upgrade.Why:
		fmt.Fprintf(text, "%s\n", paint.faint(wrap("why: "+vm.Drain.Why, 2)))
	default:
		for _, why := range [][2]string{{"drain", vm.Drain.Why}, {"upgrade", vm.Upgrade.Why}} {
			if why[1] != "" {
				fmt.Fprintf(text, "%s\n", paint.faint(wrap(why[0]+": "+why[1], 2)))
			}
		}
	}
}

func summary(text *strings.Builder, r *report.Report, paint paint) {
	fmt.Fprintf(text, "%s\n", paint.heading(answer(r)))
	if len(r.VMs) > 0 {
		fmt.Fprintln(text, wrap("drain: "+counts(r.VMs, drainOutcome), 2))
		fmt.Fprintln(text, wrap("upgrade: "+counts(r.VMs, upgradeOutcome), 2))
	}
	fmt.Fprintln(text, wrap(pace(r.Pace), 0))
	fmt.Fprintln(text, wrap("Read: "+r.Read+".", 0))
	for _, note := range r.Notes {
		fmt.Fprintln(text, wrap("Not read: "+note+".", 0))
	}
	for _, advice := range r.Advice {
		fmt.Fprintf(text, "\n%s\n", wrap(advice.Do, 0))
		for _, command := range advice.Commands {
			fmt.Fprintln(text, broken(command))
		}
	}
}

// cells writes a line of columns; what is too long for one goes on below.
func cells(text *strings.Builder, values []string, paints []func(string) string) {
	var lines [][]string
	for i, value := range values {
		for n, part := range fold(value, columns[i]) {
			for len(lines) <= n {
				lines = append(lines, make([]string, len(columns)))
			}
			lines[n][i] = part
		}
	}
	for _, line := range lines {
		written := ""
		for i, part := range line {
			gap := strings.Repeat(" ", columns[i]-utf8.RuneCountInString(part))
			if paints != nil && paints[i] != nil && part != "" {
				part = paints[i](part)
			}
			written += part + gap + "  "
		}
		fmt.Fprintln(text, strings.TrimRight(written, " "))
	}
}

// fold breaks a value into lines of a width: between words, and inside of words that are longer.
func fold(value string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(wordwrap.WrapString(value, uint(width)), "\n") {
		for utf8.RuneCountInString(line) > width {
			cut := len(string([]rune(line)[:width]))
			lines, line = append(lines, line[:cut]), line[cut:]
		}
		lines = append(lines, strings.ReplaceAll(line, unbroken, " "))
	}
	return lines
}

// wrap breaks a sentence into lines of the terminal's width. Where they are indented, all but the first are further.
func wrap(sentence string, indent int) string {
	margin := strings.Repeat(" ", indent)
	return margin + strings.Join(fold(sentence, width-2*indent), "\n"+margin+margin)
}

// broken breaks a command that is too long as a shell reads it.
func broken(command string) string {
	lines := fold(command, width-6)
	return "  " + strings.Join(lines, " \\\n    ")
}

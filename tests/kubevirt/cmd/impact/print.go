// The report, for people, for pull requests and for tools. Text of a CR is escaped: it may hold what a terminal obeys.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"cozy-kubevirt/cmd/kubectl-drain_preview/plain"
)

var printers = map[string]func(io.Writer, []*report) error{"text": text, "json": asJSON, "markdown": markdown}

func asJSON(out io.Writer, reports []*report) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(reports)
}

func text(out io.Writer, reports []*report) error {
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if _, err := io.WriteString(out, r.title()+"\n"+r.body()); err != nil {
			return err
		}
	}
	return nil
}

// markdown puts each report into a code block that no line of it closes.
func markdown(out io.Writer, reports []*report) error {
	if _, err := io.WriteString(out, "### What it does to a running cluster\n\n"); err != nil {
		return err
	}
	for _, r := range reports {
		body, fence := r.title()+"\n"+r.body(), "```"
		for strings.Contains(body, fence) {
			fence += "`"
		}
		if _, err := io.WriteString(out, fence+"text\n"+body+fence+"\n\n"); err != nil {
			return err
		}
	}
	return nil
}

func (r *report) title() string {
	if len(r.Where) > 0 {
		return plain.Text(strings.Join(r.Where, ", ") + ":")
	}
	return plain.Text(r.Old + " -> " + r.New + ":")
}

const widest = 160 // a value that is longer is cut; -o json has it whole

// body is one section a question, and only those with an answer.
func (r *report) body() string {
	if r.none() {
		out := "No effect on a running cluster.\n"
		for _, w := range r.Warnings {
			out += "  warning: " + plain.Text(w) + "\n"
		}
		return out
	}
	var out strings.Builder
	section := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		out.WriteString(title + "\n")
		for _, line := range lines {
			line = plain.Text(line)
			if cut := []rune(line); len(cut) > 2*widest {
				line = string(cut[:2*widest]) + "…"
			}
			out.WriteString("  " + line + "\n")
		}
	}
	section("CAUTION", r.Cautions)
	section("REFUSED", r.Refused)
	section("Warnings", r.Warnings)
	section("Changed in the CR", asLines(r.Spec))
	section("What rolls", r.rolls())
	section("Running VMs", r.vms())
	section("Answers that flip", asLines(r.Answers))
	section("Gates", r.gateLines())
	section("Routes", r.routeLines())
	return out.String()
}

func asLines[T fmt.Stringer](all []T) []string {
	var lines []string
	for _, one := range all {
		lines = append(lines, one.String())
	}
	return lines
}

func (r *report) rolls() []string {
	if len(r.Refused) > 0 && r.ID[0] == "" {
		return nil
	}
	var lines []string
	if r.ID[0] != r.ID[1] {
		lines = append(lines, fmt.Sprintf("deployment id %.7s -> %.7s: it is in every pod of KubeVirt, so all of them restart", r.ID[0], r.ID[1]))
	}
	for _, o := range r.Objects {
		line := o.Name + " " + o.What
		if o.Restarts {
			line += ", pods restart: " + o.Pace
		}
		lines = append(lines, line)
		for i, c := range o.Changes {
			if strings.HasSuffix(c.Path, "install-strategy-identifier") {
				continue
			}
			if i == 5 {
				lines = append(lines, fmt.Sprintf("  and %d more (-o json)", len(o.Changes)-i))
				break
			}
			lines = append(lines, "  "+c.String())
		}
	}
	if len(lines) == 0 {
		lines = append(lines, "nothing: no pod of KubeVirt restarts")
	}
	return lines
}

func (r *report) vms() []string {
	if len(r.Refused) > 0 && r.ID[0] == "" {
		return nil
	}
	lines := []string{"none counts as outdated: the launcher's image stays, so the updater does nothing"}
	if r.Outdated {
		lines[0] = "all count as outdated: the launcher's image is another, so the updater acts"
	}
	for _, u := range r.Updater {
		lines = append(lines, "the updater, from now on: "+u)
	}
	for _, f := range r.Fields {
		lines = append(lines, fmt.Sprintf("%s reaches %s: %s (read from source, %s)", f.change, f.Reach, f.What, f.Source))
	}
	return lines
}

func (r *report) gateLines() []string {
	var lines []string
	for _, g := range r.Gates {
		state := "goes off"
		if g.On {
			state = "goes on"
		}
		line := fmt.Sprintf("%s (%s) %s", g.Name, g.State, state)
		if g.Decision != nil {
			line += fmt.Sprintf(": %s (docs/feature-gates.md)", g.Decision.Changes)
		}
		lines = append(lines, line)
	}
	return lines
}

func (r *report) routeLines() []string {
	var lines []string
	for _, route := range r.Routes {
		lines = append(lines, fmt.Sprintf("%s %s: %s", route.Name, route.What, route.Gap))
		for _, c := range route.Changes {
			lines = append(lines, "  "+c.String())
		}
	}
	return lines
}

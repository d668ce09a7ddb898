// The report: equal differences are told once, with the renderings that show them.
package main

import (
	"fmt"
	"slices"
	"strings"

	facts "cozy-kubevirt/internal/chart"
)

// text is the whole report, the verdict last.
func (r *result) text(markdown bool) string {
	var out strings.Builder
	for _, remark := range r.remarks {
		out.WriteString(remark + "\n\n")
	}
	heading, headline := "%s\n\n", "%s: %s\n"
	if markdown {
		heading, headline = "### %s\n\n", "**%s**: %s\n\n"
	}
	for _, kind := range []kind{inDocuments, inComments, inNotes, inText, onOneSide} {
		groups := r.grouped(kind)
		if len(groups) > 0 {
			fmt.Fprintf(&out, heading, kind)
		}
		for _, group := range groups {
			body := strings.TrimRight(group[0].body, "\n") + "\n"
			if markdown {
				body = fenced(body)
			}
			fmt.Fprintf(&out, headline+"%s\n", group[0].document, r.where(group), body)
		}
	}
	out.WriteString(r.verdict() + "\n")
	return out.String()
}

// fenced makes a code block that no line of the text closes.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "diff\n" + text + fence + "\n"
}

// grouped returns the findings of a kind, equal ones together.
func (r *result) grouped(kind kind) [][]finding {
	var groups [][]finding
	for _, f := range r.findings {
		if f.kind != kind {
			continue
		}
		i := slices.IndexFunc(groups, func(group []finding) bool {
			return group[0].document == f.document && group[0].body == f.body
		})
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], f)
	}
	return groups
}

// where names the renderings of a group: the values sets, with the Kubernetes versions where not all show it.
func (r *result) where(group []finding) string {
	versionsOf := map[string][]string{}
	for _, f := range group {
		versionsOf[f.rendering.set] = append(versionsOf[f.rendering.set], f.rendering.kubeVersion)
	}
	setsOf := map[string][]string{}
	var order []string
	for _, set := range r.sets {
		if versionsOf[set] == nil {
			continue
		}
		versions := strings.Join(versionsOf[set], ", ")
		if setsOf[versions] == nil {
			order = append(order, versions)
		}
		setsOf[versions] = append(setsOf[versions], set)
	}
	var phrases []string
	for _, versions := range order {
		phrase := "values set " + strings.Join(setsOf[versions], ", ")
		if len(setsOf[versions]) == len(r.sets) {
			phrase = "every values set"
		}
		if versions != strings.Join(facts.KubeVersions, ", ") {
			phrase += " on Kubernetes " + versions
		}
		phrases = append(phrases, phrase)
	}
	return strings.Join(phrases, "; ")
}

// verdict is the report in a sentence.
func (r *result) verdict() string {
	over := fmt.Sprintf("%d values sets on Kubernetes %s, compared with %s", len(r.sets), strings.Join(facts.KubeVersions, " and "), r.base)
	if n := len(r.incomparable); n > 0 {
		return fmt.Sprintf("Not compared: %d of %d renderings. %s.", n, len(r.sets)*len(facts.KubeVersions), over)
	}
	if len(r.findings) == 0 {
		return "No rendered change: " + over + "."
	}
	changed := func(kinds ...kind) bool {
		return slices.ContainsFunc(r.findings, func(f finding) bool { return slices.Contains(kinds, f.kind) })
	}
	switch {
	case changed(inDocuments, onOneSide):
		return "Rendered change: " + over + "."
	case changed(inComments, inNotes):
		return "No rendered change but in comments or notes: " + over + "."
	}
	return "No document and no comment changes, only how they are written: " + over + "."
}

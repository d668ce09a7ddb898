package output

import (
	"github.com/fatih/color"

	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// This file is the table's colours: red for what holds a drain, yellow for what does not come back by itself.

type paint struct{ enabled bool }

func painter(enabled bool) paint { return paint{enabled} }

func (p paint) of(outcome verdict.Outcome) func(string) string {
	switch outcome {
	case verdict.Blocks, verdict.Held, verdict.Refused:
		return p.with(color.FgRed)
	case verdict.StaysOff, verdict.StaysOffIfClean, verdict.RestartsWithNode, verdict.OwnerDecides, verdict.Unknown:
		return p.with(color.FgYellow)
	case verdict.Migrates:
		return p.with(color.FgGreen)
	}
	return p.with()
}

func (p paint) heading(text string) string { return p.with(color.Bold)(text) }
func (p paint) faint(text string) string   { return p.with(color.Faint)(text) }

// verified is what the cluster says; a disagreement is not to be missed.
func (p paint) verified(text string, agreed bool) string {
	if agreed {
		return p.faint(text)
	}
	return p.with(color.FgRed, color.Bold)(text)
}

func (p paint) with(attributes ...color.Attribute) func(string) string {
	if !p.enabled || len(attributes) == 0 {
		return func(text string) string { return text }
	}
	c := color.New(attributes...)
	c.EnableColor() // whether the output is a terminal has been decided by the caller
	return func(text string) string { return c.Sprint(text) }
}

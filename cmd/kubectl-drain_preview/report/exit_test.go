package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

func TestADrainThatWaitsIsSaidEvenWhereAnotherIsUnknown(t *testing.T) {
	for _, c := range []struct{ a, b, want verdict.End }{
		{verdict.Waits, verdict.NoTell, verdict.Waits},
		{verdict.NoTell, verdict.Waits, verdict.Waits},
		{verdict.Ends, verdict.NoTell, verdict.NoTell},
		{verdict.Waits, verdict.Ends, verdict.Waits},
		{verdict.Ends, verdict.Ends, verdict.Ends},
	} {
		assert.Equal(t, c.want, worse(c.a, c.b), "%s and %s", c.a, c.b)
	}
	for end, status := range map[verdict.End]int{verdict.Ends: ExitEnds, verdict.NoTell: ExitUnanswered, verdict.Waits: ExitWaits} {
		assert.Equal(t, status, (&Report{Drains: end}).ExitStatus(), end)
	}
}

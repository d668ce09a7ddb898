// The chart of the base commit, in a temporary folder.
package main

import (
	"context"

	"cozy-kubevirt/internal/git"
)

// side is one of the two charts that are compared.
type side struct {
	name string // for the reader
	dir  string // of the chart
}

// checkOut writes the base commit's chart, of the repository at top, into a temporary folder; remove takes the folder away.
func checkOut(ctx context.Context, top string, o options) (base side, remove func(), err error) {
	out, remove, err := git.CheckOut(ctx, top, o.base, o.chart)
	return side{name: out.Name, dir: out.Dir}, remove, err
}

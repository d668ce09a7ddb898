// Package internal gets the one method that chainsaw v0.2.12 lacks to compile with Go 1.26; build.sh puts it there.
package internal

// ModulePath satisfies testing.testDeps (src/testing/testing.go:2299). No test of chainsaw's is asked for it.
func (*TestDeps) ModulePath() string { return "" }

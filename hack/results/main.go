// Command results prints the JUnit reports of a run as a Markdown table, for the job's summary, and under it the tests
// that failed. Usage: results FILE…
package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// suites is a JUnit report, as helm-unittest and gotestsum write it.
type suites struct {
	Suites []struct {
		Name  string  `xml:"name,attr"`
		Time  float64 `xml:"time,attr"` // in seconds
		Cases []struct {
			Name    string    `xml:"name,attr"`
			Failure *struct{} `xml:"failure"`
			Error   *struct{} `xml:"error"`
			Skipped *struct{} `xml:"skipped"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

func main() {
	if err := summarize(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "results:", err)
		os.Exit(1)
	}
}

func summarize(out io.Writer, files []string) error {
	if len(files) == 0 {
		return fmt.Errorf("no report given, expected junit-*.xml files; run make test first")
	}
	rows, failed := &strings.Builder{}, &strings.Builder{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		report := suites{}
		if err := xml.Unmarshal(raw, &report); err != nil {
			return fmt.Errorf("%s: not a JUnit report: %w", file, err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "junit-"), ".xml")
		var tests, failures, skipped int
		var seconds float64
		for _, suite := range report.Suites {
			seconds += suite.Time
			for _, test := range suite.Cases {
				tests++
				switch {
				case test.Failure != nil || test.Error != nil:
					failures++
					fmt.Fprintf(failed, "- %s: %s\n", name, test.Name)
				case test.Skipped != nil:
					skipped++
				}
			}
		}
		fmt.Fprintf(rows, "| %s | %d | %d | %d | %.1f s |\n", name, tests, failures, skipped, seconds)
	}
	_, err := fmt.Fprintf(out, "| | tests | failed | skipped | time |\n| --- | ---: | ---: | ---: | ---: |\n%s\n%s", rows, failed)
	return err
}

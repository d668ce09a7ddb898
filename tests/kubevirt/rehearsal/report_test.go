package rehearsal

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// This file prints the verdicts as they fall and leaves the report for the release, _out/rehearsal.md.

var results struct {
	sync.Mutex
	verdicts, charts []string
	kubernetes       string // the version of whatever cluster was started
}

func sawKubernetes(version string) {
	results.Lock()
	defer results.Unlock()
	results.kubernetes = version
}

func record(s *scenario, took time.Duration) {
	result, sentence := "ok", s.verdict
	if s.Failed() || sentence == "" {
		result, sentence = "FAIL", strings.TrimPrefix(s.Name(), "Test")+" does not hold"
	}
	fmt.Printf("%-4s %5.1fs  %s\n", result, took.Seconds(), sentence)
	results.Lock()
	defer results.Unlock()
	results.verdicts = append(results.verdicts, fmt.Sprintf("| %s | %.1f s | %s | `%s` |", result, took.Seconds(), sentence, s.Name()))
	if chart := s.timeline.chart(); chart != "" {
		results.charts = append(results.charts, fmt.Sprintf("## %s\n\n%s\n\n%s", s.Name(), sentence, chart))
	}
}

func writeReport() error {
	results.Lock()
	defer results.Unlock()
	if len(results.verdicts) == 0 {
		return nil
	}
	text := &strings.Builder{}
	fmt.Fprintf(text, "# Drains and upgrades, rehearsed\n\n")
	fmt.Fprintf(text, "KubeVirt %s, Kubernetes %s, %s. The nodes are a stand-in; everything else is real.\n\n",
		kubeVirtVersion(), results.kubernetes, time.Now().UTC().Format("2006-01-02 15:04 UTC"))
	fmt.Fprintf(text, "| | time | verdict | test |\n| --- | --- | --- | --- |\n%s\n\n", strings.Join(results.verdicts, "\n"))
	fmt.Fprintf(text, "Below, where each VM ran, as it was observed; the red bars are what was done. A gap is a VM that was down.\n\n")
	fmt.Fprint(text, strings.Join(results.charts, "\n"))
	return os.WriteFile(filepath.Join(out(), "rehearsal.md"), []byte(text.String()), 0o644)
}

// kubeVirtVersion is the version that the package ships.
func kubeVirtVersion() string { return pinned("go.mod") }

// versionBefore is the version that the platform is switched from.
func versionBefore() string { return pinned("go.v1.8.mod") }

// pinned is the KubeVirt that a go.mod names. (A test binary does not know its dependencies' versions.)
func pinned(file string) string {
	text, err := os.ReadFile(filepath.Join("..", file))
	if err != nil {
		return err.Error()
	}
	return regexp.MustCompile(`kubevirt\.io/kubevirt (v\S+)`).FindStringSubmatch(string(text))[1]
}

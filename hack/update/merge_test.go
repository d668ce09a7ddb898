package main

// What merge makes of whole files: fixtures, every set of lost blocks, and the ways in which bytes can be told
// apart.

import (
	"bytes"
	"flag"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("update", false, "rewrite the expectations in testdata")

// A fixture NAME.in.yaml has either NAME.out.yaml, what becomes of it, or NAME.err.txt, why it is refused.
func TestEachFixtureIsMergedOrRefusedAsExpected(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, input := range inputs {
		name := strings.TrimSuffix(input, ".in.yaml")
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			r := merge(data)
			file, got := name+".out.yaml", string(r.data)
			if len(r.faults) > 0 {
				file, got = name+".err.txt", ""
				for _, f := range r.faults {
					got += f.format("kubevirt-cr.yaml") + "\n"
				}
			} else if err := unsound(t, data, r.data); err != nil {
				t.Error(err)
			}
			if *rewrite {
				_, _ = os.Remove(name+".out.yaml"), os.Remove(name+".err.txt")
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			expected, err := filepath.Glob(name + ".[oe][ur][tr].*")
			if err != nil || len(expected) != 1 {
				t.Fatalf("expected one of .out.yaml and .err.txt, found %v (go test ./hack/update -update writes it)", expected)
			}
			want, err := os.ReadFile(expected[0])
			if err != nil || len(want) == 0 {
				t.Fatalf("%s says nothing: %v", expected[0], err)
			}
			if got != string(want) || expected[0] != filepath.FromSlash(file) {
				t.Errorf("got\n%s\nexpected %s\n%s", got, expected[0], want)
			}
		})
	}
}

func TestTheTemplateIsUpToDate(t *testing.T) {
	r := merge(shipped(t))
	if len(r.faults) > 0 || !bytes.Equal(r.data, shipped(t)) || r.diff("f") != "" {
		t.Errorf("make update would change the template or refuse it: %v\n%s", r.faults, r.diff("f"))
	}
}

// The blocks are declared in blocks.go and stand in the template; neither may change alone.
func TestEachBlockStandsInTheTemplateToTheByteAndInOrder(t *testing.T) {
	text := "\n" + string(shipped(t))
	at := -1
	for i := range blocks {
		b := &blocks[i]
		if n := strings.Count(text, b.text+"\n"); n != 1 {
			t.Errorf("%s stands %d times in %s, expected once; change blocks.go and the template together", b, n, templateFile)
			continue
		}
		next := strings.Index(text, b.text+"\n")
		if next <= at {
			t.Errorf("%s stands above the block that is declared before it", b)
		}
		at = next
	}
}

func TestNoDirectiveOfTheTemplateIsOutsideTheBlocks(t *testing.T) {
	if rest := withoutComments(outside(shipped(t))); strings.Contains(rest, "{{") || len(rest) == 0 {
		t.Errorf("declare these directives in blocks.go:\n%s", rest)
	}
}

func TestEachRequiredLineIsNamedAsTheTemplateHasIt(t *testing.T) {
	text := "\n" + string(shipped(t))
	for _, path := range requiredPaths() {
		want := "\n" + strings.Join(shippedLines(path), "\n")
		if !strings.Contains(text, want+"\n") && !strings.Contains(text, want+" #") {
			t.Errorf("a message would tell to restore %q for %s, and the template has no such line", want, path)
		}
	}
}

// Each block may be there, be lost, or for those that replace upstream's line be lost and have that line back.
func TestFromAnyLossOfAnySetOfBlocksTheSameBytesAreReached(t *testing.T) {
	whole := shipped(t)
	variants := 0
	for set := 1; set < 1<<len(blocks); set++ {
		texts := []string{"\n" + string(whole)}
		for i, b := range blocks {
			if set>>i&1 == 0 {
				continue
			}
			var next []string
			for _, text := range texts {
				next = append(next, strings.Replace(text, b.text+"\n", "\n", 1))
				for _, value := range b.upstream {
					upstream := strings.TrimSuffix(strings.TrimSuffix(b.placeholder(), b.upstream[0]), " ") + strings.TrimSuffix(" "+value, " ")
					next = append(next, strings.Replace(text, b.text+"\n", "\n"+upstream+"\n", 1))
				}
			}
			texts = next
		}
		for _, text := range texts {
			variants++
			r := merge([]byte(text[1:]))
			if len(r.faults) > 0 || !bytes.Equal(r.data, whole) {
				t.Fatalf("%d lost blocks (%b): %v\n%s", bits.OnesCount(uint(set)), set, r.faults, r.data)
			}
			inserted := slices.IndexFunc(r.statuses, func(s status) bool { return strings.HasPrefix(s.text, "inserted at line ") })
			if inserted < 0 || len(r.statuses) != len(blocks) {
				t.Fatalf("the report of %b is %v", set, r.statuses)
			}
		}
	}
	if want := 1<<(len(blocks)-2)*3*4 - 1; variants != want {
		t.Errorf("tried %d variants, expected %d", variants, want)
	}
	t.Logf("%d sets of lost blocks, all restored", variants)
}

func TestLinesOfTheAuthorMayBeChangedAtWill(t *testing.T) {
	for _, change := range [][2]string{
		{"  certificateRotateStrategy: {}\n", ""},
		{"  certificateRotateStrategy: {}\n", "  # certificateRotateStrategy: {}\n"},
		{"imagePullPolicy: IfNotPresent", "imagePullPolicy: Always"},
		{"  imagePullPolicy: IfNotPresent\n", ""},
		{"      enabled: false", "      enabled: true"},
		{"    vmRolloutStrategy: LiveUpdate\n", ""},
		{"    vmRolloutStrategy: LiveUpdate\n", "    vmRolloutStrategy: LiveUpdate\n    network: {}\n"},
		{"      - CPUManager\n", ""},
		{"      - CPUManager\n", "      - CPUManager\n      - Snapshot\n"},
		{"      - HotplugVolumes\n      - CPUManager\n", "      - CPUManager\n      - HotplugVolumes\n"},
		{"      - Template\n", "      # off for good\n      - Template\n"},
		{"    evictionStrategy: LiveMigrateIfPossible #", "    evictionStrategy: LiveMigrateIfPossible # really:"},
		{"    workloadUpdateMethods:\n    - LiveMigrate\n    - Evict\n", "    workloadUpdateMethods: [LiveMigrate, Evict]\n"},
		{"    batchEvictionInterval: 1m\n    batchEvictionSize: 10\n", "    batchEvictionSize: 10\n\n    batchEvictionInterval: 1m\n"},
		{"kind: KubeVirt\n", "kind: KubeVirt\nstatus: {}\n"},
		{"    {{- /* The platform ships", "    {{/* The platform once shipped"},
	} {
		damaged := strings.Replace(string(shipped(t)), change[0], change[1], 1)
		if damaged == string(shipped(t)) {
			t.Errorf("%q is not in the template", change[0])
			continue
		}
		if outcome := judge(t, fmt.Sprintf("%q", change), shipped(t), []byte(damaged)); outcome != "left alone" {
			t.Errorf("%q is %s: %v", change, outcome, merge([]byte(damaged)).faults)
		}
	}
}

func TestLineEndsAndAMissingLastLineEndAreKept(t *testing.T) {
	whole := string(shipped(t))
	lost := strings.Replace("\n"+whole, named(t, "permittedHostDevices").text+"\n", "\n", 1)[1:]
	for name, write := range map[string]func(string) string{
		"CRLF":                   func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"no last line end":       func(s string) string { return strings.TrimSuffix(s, "\n") },
		"CRLF, no last":          func(s string) string { return strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\r\n") },
		"empty lines at the end": func(s string) string { return s + "\n\n" },
	} {
		for what, text := range map[string]string{"whole": whole, "lost": lost} {
			r := merge([]byte(write(text)))
			if len(r.faults) > 0 || string(r.data) != write(whole) {
				t.Errorf("%s, %s: %v, got %q", name, what, r.faults, r.data)
			}
		}
	}
}

func TestWhatCannotBeReadIsRefused(t *testing.T) {
	whole := string(shipped(t))
	for name, c := range map[string]struct{ text, want string }{
		"an empty file":          {"", "file: is empty, expected a KubeVirt CR"},
		"blanks":                 {" \n\n", "file: is empty"},
		"comments only":          {"# nothing\n", "holds no YAML mapping"},
		"a list":                 {"- a\n", "holds no YAML mapping"},
		"a byte order mark":      {"\ufeff" + whole, "begins with a byte order mark"},
		"mixed line ends":        {strings.Replace(whole, "\n", "\r\n", 3), "3 of its "},
		"Latin-1":                {strings.Replace(whole, "kubevirt\n", "k\xfcbevirt\n", 1), "f:4: file: the line is not UTF-8"},
		"UTF-16":                 {"\xff\xfea\x00\n", "f:1: file: the line is not UTF-8"},
		"a YAML 1.1 line end":    {strings.Replace(whole, "spec:", "spec:\u2028", 1), "f:6: file: the line holds the character U+2028"},
		"a carriage return":      {strings.Replace(whole, "spec:", "sp\rec:", 1), "f:6: file: the line holds the character U+000D"},
		"a NUL":                  {strings.Replace(whole, "spec:", "spec:\x00", 1), "control characters"},
		"a comment badly closed": {strings.Replace(whole, "overwrite them. */}}", "overwrite them. */ }}", 1), "f:9: template comment: has something between */ and }}"},
	} {
		var got string
		for _, f := range merge([]byte(c.text)).faults {
			got += f.format("f") + "\n"
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, expected %q", name, got, c.want)
		}
	}
}

// named returns a declared block.
func named(t testing.TB, name string) *block {
	t.Helper()
	for i := range blocks {
		if blocks[i].name == name {
			return &blocks[i]
		}
	}
	t.Fatalf("no block is named %s", name)
	return nil
}

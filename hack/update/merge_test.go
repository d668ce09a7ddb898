package main

// What merge makes of whole files: fixtures, every set of lost blocks, and the ways in which bytes can be told
// apart.

import (
	"bytes"
	"flag"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
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
	if len(r.faults) > 0 || !bytes.Equal(r.data, shipped(t)) {
		t.Errorf("make update would change the template or refuse it: %v\n%s", r.faults, r.data)
	}
}

// The blocks are declared in blocks.go and stand in the template; neither may change alone.
func TestEachBlockStandsInTheTemplateToTheByteAndInOrder(t *testing.T) {
	lines := strings.Split(string(shipped(t)), "\n")
	for i, b := range blockAt(t, lines) {
		if b != nil && !b.isEnd() && b.lines()[0] == lines[i] && strings.Count(string(shipped(t)), b.text[1:]) != 1 {
			t.Errorf("%s stands more than once in %s; change blocks.go and the template together", b, templateFile)
		}
	}
}

// The template is read here without a look at the blocks: what an editor's folding shows is what a hand-merge loses.
func TestEachDirectiveOfTheTemplateComesBackWithItsEnd(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(string(shipped(t)), "\n"), "\n")
	opens, around := regexp.MustCompile(`^ *\{\{- (if|with|range|block) `), regexp.MustCompile(`^ *\{\{- block `)
	var open []int
	lost := 0
	for i, l := range lines {
		var from, to []string
		switch {
		case opens.MatchString(l):
			open = append(open, i)
			continue
		case strings.TrimSpace(l) == "{{- end }}":
			first := open[len(open)-1]
			open = open[:len(open)-1]
			from, to = lines[:first], lines[i+1:]
			if around.MatchString(lines[first]) { // what stands between is the author's
				to = slices.Concat(lines[first+1:i], to)
			}
		case strings.Contains(l, "{{") && !strings.Contains(l, "/*") && len(open) == 0 && !strings.HasPrefix(l, "      "):
			from, to = lines[:i], lines[i+1:]
		default:
			continue
		}
		lost++
		r := merge([]byte(strings.Join(slices.Concat(from, to), "\n") + "\n"))
		if len(r.faults) > 0 || !bytes.Equal(r.data, shipped(t)) {
			t.Errorf("without the directive that ends in line %d, %s: %v", i+1, show(l), r.faults)
		}
	}
	if len(open) > 0 || lost < 13 {
		t.Errorf("found %d directives, and %d without an end", lost, len(open))
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

// A loss says for each block what became of it: 0 for there, 1 for lost, and for those that replace upstream's line
// 2 and on for lost with one of upstream's lines in its place.
type loss [32]uint8

// losses are the sets of lost blocks that are tried. While they are few, all of them would be; with the blocks of today
// they are 393,215. Tried are all of up to three lost blocks and of up to two kept ones; all of the blocks that stand
// beside each other in the lists of gates, with every other block there and with every other lost; and sets drawn from
// the rest, always the same ones.
func losses(t *testing.T) (tried []loss) {
	seen := map[loss]bool{{}: true}
	add := func(l loss) {
		if !seen[l] {
			seen[l] = true
			tried = append(tried, l)
		}
	}
	// withUpstream adds the set with every choice of upstream's lines.
	var withUpstream func(l loss, from int)
	withUpstream = func(l loss, from int) {
		if from == len(blocks) {
			add(l)
			return
		}
		withUpstream(l, from+1)
		for k := range blocks[from].upstream {
			if l[from] > 0 {
				l[from] = uint8(k + 2)
				withUpstream(l, from+1)
			}
		}
	}
	if len(blocks) > 20 {
		t.Fatal("too many sets to walk through: choose them in another way")
	}
	gates := 0 // the blocks of the lists of gates
	for i, b := range blocks {
		if strings.HasSuffix(strings.ToLower(b.anchor), "featuregates") {
			gates |= 1 << i
		}
	}
	all := 1<<len(blocks) - 1
	for set := range all + 1 {
		n := bits.OnesCount(uint(set))
		if n > 3 && n < len(blocks)-2 && set&^gates != 0 && set|gates != all {
			continue
		}
		var l loss
		for i := range blocks {
			l[i] = uint8(set >> i & 1)
		}
		withUpstream(l, 0)
	}
	if gates == 0 || bits.OnesCount(uint(gates)) != 8 {
		t.Errorf("the lists of gates have the blocks %b, expected 8 of them", gates)
	}
	random := rand.New(rand.NewPCG(9, 0))
	for len(tried) < 10_000 {
		var l loss
		for i, b := range blocks {
			l[i] = uint8(random.IntN(2 + len(b.upstream)))
		}
		add(l)
	}
	return tried
}

func TestFromAnyLossOfAnySetOfBlocksTheSameBytesAreReached(t *testing.T) {
	whole := shipped(t)
	lines := strings.Split(strings.TrimSuffix(string(whole), "\n"), "\n")
	at := blockAt(t, lines)
	tried := losses(t)
	for _, l := range tried {
		lost := map[*block][]string{}
		var names []string
		for i := range blocks {
			b := &blocks[i]
			switch l[i] {
			case 0:
				continue
			case 1:
				lost[b] = nil
			default:
				key, _, _ := strings.Cut(b.placeholder(), ":")
				lost[b] = []string{strings.TrimRight(key+": "+b.upstream[l[i]-2], " ")}
			}
			names = append(names, b.name)
		}
		r := merge(losing(lines, at, lost))
		if len(r.faults) > 0 || !bytes.Equal(r.data, whole) {
			t.Fatalf("without %v: %v\n%s", names, r.faults, r.data)
		}
		inserted := slices.IndexFunc(r.statuses, func(s status) bool { return strings.HasPrefix(s.text, "inserted at line ") })
		if inserted < 0 || len(r.statuses) != len(blocks) {
			t.Fatalf("the report without %v is %v", names, r.statuses)
		}
	}
	t.Logf("%d sets of lost blocks, all restored", len(tried))
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
		"an empty file":            {"", "file: is empty, expected a KubeVirt CR"},
		"blanks":                   {" \n\n", "file: is empty"},
		"comments only":            {"# nothing\n", "holds no YAML mapping"},
		"a list":                   {"- a\n", "holds no YAML mapping"},
		"a byte order mark":        {"\ufeff" + whole, "begins with a byte order mark"},
		"mixed line ends":          {strings.Replace(whole, "\n", "\r\n", 3), "3 of its "},
		"Latin-1":                  {strings.Replace(whole, "kubevirt\n", "k\xfcbevirt\n", 1), "f:4: file: the line is not UTF-8"},
		"UTF-16":                   {"\xff\xfea\x00\n", "f:1: file: the line is not UTF-8"},
		"a YAML 1.1 line end":      {strings.Replace(whole, "spec:", "spec:\u2028", 1), "f:6: file: the line holds the character U+2028"},
		"a next line (NEL)":        {strings.Replace(whole, "spec:", "spec:\u0085", 1), "f:6: file: the line holds the character U+0085"},
		"a NEL in a comment":       {strings.Replace(whole, "overwrite them.", "overwrite\u0085 them.", 1), "f:9: file: the line holds the character U+0085"},
		"a NEL at a line's end":    {strings.Replace(whole, "spec:\n", "spec:\u0085\n", 1), "f:6: file: the line holds the character U+0085"},
		"a NEL at the end":         {whole + "\u0085", "file: the line holds the character U+0085"},
		"a NEL in a CRLF file":     {strings.ReplaceAll(strings.Replace(whole, "spec:", "spec:\u0085", 1), "\n", "\r\n"), "f:6: file: the line holds the character U+0085"},
		"a paragraph separator":    {strings.Replace(whole, "spec:", "spec:\u2029", 1), "f:6: file: the line holds the character U+2029"},
		"a vertical tab":           {strings.Replace(whole, "spec:", "spec:\v", 1), "f:6: file: the line holds the character U+000B"},
		"a form feed":              {strings.Replace(whole, "spec:", "spec:\f", 1), "f:6: file: the line holds the character U+000C"},
		"a form feed in a comment": {strings.Replace(whole, "overwrite them.", "overwrite\f them.", 1), "f:9: file: the line holds the character U+000C"},
		"a carriage return":        {strings.Replace(whole, "spec:", "sp\rec:", 1), "f:6: file: the line holds the character U+000D"},
		"a NUL":                    {strings.Replace(whole, "spec:", "spec:\x00", 1), "control characters"},
		"a comment badly closed":   {strings.Replace(whole, "overwrite them. */}}", "overwrite them. */ }}", 1), "f:9: template comment: has something between */ and }}"},
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

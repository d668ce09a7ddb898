package command

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// run runs the command as main does.
func run(in string, args ...string) (out, errOut string, status int) {
	streams, stdin, stdout, stderr := genericiooptions.NewTestIOStreams()
	stdin.WriteString(in)
	status = Run(args, streams)
	return stdout.String(), stderr.String(), status
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test ./internal/command -update")
	assert.Equal(t, string(want), got, "see what changed with git diff after go test ./internal/command -update")
}

func dumps(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func TestEveryDumpGetsItsTable(t *testing.T) {
	for _, dump := range dumps(t) {
		name := strings.TrimSuffix(filepath.Base(dump), ".yaml")
		t.Run(name, func(t *testing.T) {
			out, errOut, status := run("", "-f", dump, "--complete")
			assert.Empty(t, errOut)
			golden(t, name, fmt.Sprintf("%s\nexit status %d\n", out, status))
		})
	}
}

func TestTheTableFitsATerminalOf80Columns(t *testing.T) {
	for _, dump := range dumps(t) {
		out, _, _ := run("", "-f", dump, "--complete")
		for line := range strings.Lines(out) {
			line = strings.TrimSuffix(line, "\n")
			assert.LessOrEqual(t, utf8.RuneCountInString(line), 80, "%s: %q", dump, line)
			assert.Equal(t, strings.TrimRight(line, " "), line, "%s: spaces at the end of a line", dump)
		}
	}
}

func TestEveryFormatIsPrinted(t *testing.T) {
	for _, format := range []string{"wide", "json", "yaml", "markdown"} {
		t.Run(format, func(t *testing.T) {
			out, errOut, status := run("", "--complete", "-f", filepath.Join("testdata", "every-kind.yaml"), "-o", format, "node-a")
			assert.Empty(t, errOut)
			assert.Equal(t, 3, status)
			golden(t, "every-kind."+format, out)
		})
	}
}

func TestTheExitStatusSaysWhetherTheDrainWouldEnd(t *testing.T) {
	for dump, want := range map[string]int{"migrates": 0, "restarts": 0, "tenant-worker": 0, "blocks": 3, "owner-decides": 3, "starting": 1} {
		_, _, status := run("", "--complete", "-f", filepath.Join("testdata", dump+".yaml"))
		assert.Equal(t, want, status, dump)
	}
}

func TestADumpIsReadFromStandardInputGzippedAndAsJSON(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "every-kind.yaml"))
	require.NoError(t, err)
	want, _, _ := run("", "--complete", "-f", filepath.Join("testdata", "every-kind.yaml"))

	var zipped bytes.Buffer
	writer := gzip.NewWriter(&zipped)
	_, err = writer.Write(text)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	for name, in := range map[string]string{
		"YAML":                string(text),
		"gzipped":             zipped.String(),
		"JSON":                asJSON(t, text),
		"a document for each": asDocuments(t, text),
	} {
		out, errOut, status := run(in, "--complete", "-f", "-")
		assert.Empty(t, errOut, name)
		assert.Equal(t, 3, status, name)
		assert.Equal(t, want, out, name)
	}
}

func TestWhatIsAskedForIsAllThatIsShown(t *testing.T) {
	dump := filepath.Join("testdata", "every-kind.yaml")
	out, _, status := run("", "--complete", "-f", dump, "-n", "tenant-b")
	assert.Equal(t, 3, status)
	assert.Contains(t, out, "tenant-b/appliance")
	assert.NotContains(t, out, "tenant-a/")

	out, _, status = run("", "--complete", "-f", dump, "-n", "tenant-b", "-A", "-o", "wide")
	assert.Equal(t, 3, status)
	assert.Contains(t, out, "tenant-a")

	out, errOut, status := run("", "--complete", "-f", filepath.Join("testdata", "tenant-worker.yaml"), "-l", "capk.cluster.x-k8s.io/kubevirt-machine-name=other")
	assert.Equal(t, 1, status)
	assert.Empty(t, out)
	assert.Contains(t, errOut, "no VMI matches")
}

func TestVMsAreSelectedByName(t *testing.T) {
	dump := filepath.Join("testdata", "every-kind.yaml")
	names := `jsonpath={range .vms[*]}{.namespace}/{.name} {end}`
	for args, want := range map[string]string{
		"--vm=db":                       "tenant-a/db ",
		"--vm=tenant-a/db,old":          "tenant-a/db tenant-a/old ",
		"--vm=db --vm=tenant-a/old":     "tenant-a/db tenant-a/old ",
		"--vm=db --namespace=tenant-a ": "tenant-a/db ",
	} {
		out, errOut, _ := run("", append([]string{"--complete", "-f", dump, "-o", names}, strings.Fields(args)...)...)
		assert.Empty(t, errOut, args)
		assert.Equal(t, want, out, args)
	}
}

func TestWhatCannotBeAnsweredIsAnErrorThatSaysWhatToDo(t *testing.T) {
	dump := filepath.Join("testdata", "migrates.yaml")
	const node = "apiVersion: v1\nkind: Node\nmetadata:\n  name: node-a\n"
	for name, c := range map[string]struct {
		in   string
		args []string
		want string
	}{
		"a node that is not there":      {"", []string{"-f", dump, "node-z"}, `node "node-z" is not known; expected one of: node-a, node-b`},
		"a dump that is not there":      {"", []string{"-f", "nowhere.yaml"}, "nowhere.yaml"},
		"an empty dump":                 {"", []string{"-f", "-"}, "neither VMIs nor nodes"},
		"a list of numbers":             {node + "---\n- 1\n", []string{"-f", "-"}, "document 2: [1] is no object"},
		"a number in a list":            {`{"kind":"List","items":[{"kind":"Deployment","apiVersion":"apps/v1"},7]}`, []string{"-f", "-"}, "document 1, item 2: 7 is no object"},
		"a namespace that is not there": {"", []string{"-f", dump, "-n", "tenant-z"}, `namespace "tenant-z" has no VM`},
		"no kind":                       {"hello: world\n", []string{"-f", "-"}, "document 1: it has no kind"},
		"no object":                     {"just text\n", []string{"-f", "-"}, "document 1:"},
		"broken YAML":                   {node + "---\n" + node + "  labels: [\n", []string{"-f", "-"}, "document 2:"},
		"broken JSON":                   {`{"kind":`, []string{"-f", "-"}, "document 1:"},
		"items of something else":       {"items:\n- " + indented(node) + "kind: Basket\n", []string{"-f", "-"}, `its kind is "Basket"; expected a List`},
		"another format":                {"", []string{"-f", dump, "-o", "xml"}, "expected one of wide, json, yaml, markdown"},
		"bad fields":                    {"", []string{"-f", dump, "-o", "jsonpath={"}, "unclosed action"},
		"a VM that is not there":        {"", []string{"-f", dump, "--vm", "web,nobody"}, "--vm nobody: no such VM runs"},
		"a VM of another namespace":     {"", []string{"-f", dump, "-n", "tenant-a", "--vm", "tenant-b/web"}, "--vm tenant-b/web: no such VM runs in namespace tenant-a"},
		"a bad selector":                {"", []string{"-f", dump, "-l", "a==b==c"}, "-l"},
		"a flag that is not there":      {"", []string{"--frob"}, "unknown flag: --frob"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, status := run(c.in, c.args...)
			assert.Equal(t, 1, status)
			assert.Empty(t, out)
			assert.Contains(t, errOut, c.want)
		})
	}
}

func indented(object string) string {
	return strings.ReplaceAll(strings.TrimSuffix(object, "\n"), "\n", "\n  ") + "\n"
}

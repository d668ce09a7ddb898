// Package targets_test runs the Makefile's targets and the scripts behind them, with stand-ins in the place of every program:
// what a caller sets must reach them as it is, wherever the repository lies, and a run that checked nothing must fail.
package targets_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"cozy-kubevirt/internal/chart"
)

// hostile holds whatever a shell, make, awk or a list of words might interpret; each command in it would leave a file.
const hostile = `it's "a" b;touch c;` + "`touch d`" + ` $(touch e) $$(touch f) $(shell touch g) ${HOME} $HOME $(CURDIR) | & > h * ? [a-z] # \ % ,x`

// A call is a target with what its caller sets, and what the program then is to be called with.
type call struct {
	target  string
	set     map[string]string
	program string
	want    []string
}

var calls = []call{
	{"template", map[string]string{"CHART": hostile, "NAMESPACE": hostile, "KUBE_VERSION": hostile}, "helm", []string{"template", "kubevirt", hostile, "--namespace", hostile, "--kube-version", hostile}},
	{"template", map[string]string{"VALUES": hostile}, "helm", []string{"template", "kubevirt", "charts/kubevirt", "--namespace", "cozy-kubevirt", "--kube-version", chart.KubeVersions[0], "--values", `"` + strings.ReplaceAll(hostile, `"`, `""`) + `"`}},
	{"template", map[string]string{"VALUES": "a* b,c"}, "helm", []string{"template", "kubevirt", "charts/kubevirt", "--namespace", "cozy-kubevirt", "--kube-version", chart.KubeVersions[0], "--values", `"a*"`, "--values", `"b,c"`}},
	{"diff", map[string]string{"BASE": hostile}, "diff", []string{"-base", hostile}},
	{"impact", map[string]string{"BASE": hostile, "VALUES": hostile, "OLD": hostile, "NEW": hostile, "OUTPUT": hostile, "CHART": hostile}, "impact", []string{"-base", hostile, "-values", hostile, "-old", hostile, "-new", hostile, "-o", hostile, "-chart", hostile}},
	{"package", map[string]string{"CHART": hostile, "VERSION": hostile, "SIGN_KEY": hostile, "SIGN_KEYRING": hostile, "ALLOW_DIRTY": hostile}, "package", []string{"-chart", hostile, "-version", hostile, "-sign-key", hostile, "-keyring", hostile, "-allow-dirty=" + hostile}},
	{"push", map[string]string{"REGISTRY": hostile}, "push", []string{"-archive", "an archive", "-registry", hostile}},
	{"index", map[string]string{"URL": hostile, "MERGE": hostile}, "index", []string{"-url", hostile, "-merge", hostile}},
	{"vendor", map[string]string{"DEST": hostile, "FORCE": hostile, "CHART": hostile}, "vendor", []string{"-chart", hostile, "-force=" + hostile, "--", hostile}},
	{"preview", map[string]string{"NODE": hostile, "DUMP": hostile}, "kubectl-drain_preview", []string{"--filename", hostile, "--", hostile}},
	{"unit", map[string]string{"CHART": hostile}, "helm-unittest", []string{"--strict", "--output-type", "JUnit", "--output-file", "_out/junit-unit.xml", hostile}},
	{"mutate", map[string]string{"CHART": hostile}, "mutate", []string{"--", hostile}},
	{"fuzz-values", map[string]string{"FUZZ_FLAGS": "-seed $(shell$IFStouch$IFSg) * `x`"}, "fuzzvalues", []string{"-seed", "$(shell$IFStouch$IFSg)", "*", "`x`", "charts/kubevirt"}},
	{"update", map[string]string{"CR_FILE": hostile}, "update", []string{"--", hostile}},
	{"update", map[string]string{"CHART": hostile}, "update", []string{"--", hostile + "/templates/kubevirt-cr.yaml"}},
	{"update-check", map[string]string{"CR_FILE": hostile}, "update", []string{"-check", "--", hostile}},
	{"bump", map[string]string{"KUBEVIRT_VERSION": hostile}, "go", []string{"run", "./hack/bump", hostile}},
	{"docs", map[string]string{"CHART": hostile}, "helm-docs", []string{"--log-level", "warning", "--chart-search-root", hostile}},
}

func TestWhatACallerSetsReachesTheProgramAsItIs(t *testing.T) {
	for _, in := range []string{"repository", hostileFolder} {
		for _, c := range calls {
			for _, way := range []string{"the command line", "the environment"} {
				t.Run(c.target+" "+strings.Join(slices.Sorted(maps.Keys(c.set)), " ")+" from "+way+" in "+in[:4], func(t *testing.T) {
					r := stubbed(t, in)
					var settings []string
					for name, value := range c.set {
						settings = append(settings, name+"="+value)
					}
					arguments := []string{"--no-print-directory", c.target}
					if way == "the command line" {
						arguments, settings = append(arguments, settings...), nil
					}
					require.NoError(t, os.WriteFile(filepath.Join(r.dir, hostile), nil, 0o600)) // a VALUES file
					r.must(t, settings, "make", arguments...)
					assert.Contains(t, r.called(t), append([]string{c.program}, c.want...))
					r.assertNothingTouched(t)
				})
			}
		}
	}
}

// What only a script or a test reads is no setting of the Makefile's.
func TestAVariableThatTheMakefileDoesNotKnowReachesTheProgram(t *testing.T) {
	for _, way := range []string{"the command line", "the environment"} {
		for _, name := range []string{"FUZZ_COUNT", "KUBECONFIG", "STORAGE_CLASS", "KUBEBUILDER_ASSETS"} {
			r := stubbed(t, "repository")
			stub(t, filepath.Join(r.dir, "bin/update"), `printenv `+name+` >"$OUT/value"`)
			set, arguments := []string{name + "=" + hostile}, []string{"update"}
			if way == "the command line" {
				set, arguments = nil, append(arguments, set...)
			}
			r.must(t, set, "make", arguments...)
			value, err := os.ReadFile(filepath.Join(r.out, "value"))
			require.NoError(t, err)
			assert.Equal(t, hostile+"\n", string(value), "%s from %s", name, way)
			r.assertNothingTouched(t)
		}
	}
}

// A path that make could not name as a file to build is one of a caller's own program.
func TestAHelmOfTheCallersIsCalledWhereverItIs(t *testing.T) {
	for _, way := range []string{"the command line", "the environment"} {
		r := stubbed(t, "repository")
		helm := filepath.Join(t.TempDir(), hostileFolder, "another helm")
		stub(t, helm, "")
		set, arguments := []string{"HELM=" + helm}, []string{"template"}
		if way == "the command line" {
			set, arguments = nil, append(arguments, set...)
		}
		r.must(t, set, "make", arguments...)
		assert.Contains(t, r.called(t), []string{"another helm", "template", "kubevirt", "charts/kubevirt", "--namespace", "cozy-kubevirt", "--kube-version", chart.KubeVersions[0]}, way)
		r.assertNothingTouched(t)
	}
}

func TestContractJudgesTheValuesFileOfAnyName(t *testing.T) {
	r := stubbed(t, hostileFolder)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, hostile), nil, 0o600))
	stub(t, filepath.Join(r.dir, "bin/gotestsum"), tests(1, 0)+`[ -z "$CONTRACT_VALUES" ] || printf '%s' "$CONTRACT_VALUES" >"$OUT/values"; echo "KubeVirt v0: judged"`)
	r.must(t, []string{"VALUES=" + hostile}, "make", "contract")
	values, err := os.ReadFile(filepath.Join(r.out, "values"))
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(r.dir, hostile), string(values))
	r.assertNothingTouched(t)
}

func TestAProgramIsBuiltInARepositoryWhereverItLies(t *testing.T) {
	for target, folder := range map[string]string{"bin/helm": ".", "bin/chainsaw": "hack/tools/chainsaw", "bin/kubernetes": "hack/tools/kubernetes", "bin/launcher": "tests/kubevirt", "bin/impact": "tests/kubevirt", "bin/kubectl-drain_preview": "cmd/kubectl-drain_preview"} {
		r := stubbed(t, hostileFolder)
		require.NoError(t, os.RemoveAll(filepath.Join(r.dir, target)))
		r.must(t, nil, "make", target)
		built := slices.ContainsFunc(r.called(t), func(words []string) bool {
			at := slices.Index(words, "-o")
			return slices.Contains(words, folder) && at > 0 && words[at+1] == filepath.Join(r.dir, target)
		})
		assert.True(t, built, "%s: %q", target, r.called(t))
		r.assertNothingTouched(t)
	}
}

// hostileFolder is where a repository may lie: PATH and the like can't hold a colon.
const hostileFolder = "it's \"a\" $HOME `touch d` $(touch e) #1; b"

// repository is the real one's files with bin/ and PATH full of stand-ins, which write down what they are called with.
type repository struct{ dir, out string }

func stubbed(t *testing.T, name string) repository {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	physical, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	r := repository{dir: filepath.Join(physical, name), out: t.TempDir()}
	require.NoError(t, os.MkdirAll(filepath.Join(r.dir, "bin"), 0o700))
	for _, entry := range []string{"Makefile", "charts", "cmd", "go.mod", "go.sum", "hack", "internal", "tests"} {
		require.NoError(t, os.Symlink(filepath.Join(root, entry), filepath.Join(r.dir, entry)))
	}
	for name, does := range map[string]string{
		"helm": "", "helm-docs": "", "diff": "", "impact": "", "index": "", "push": "", "vendor": "", "mutate": "", "fuzzvalues": "", "update": "",
		"kubectl-drain_preview": "", "gotestsum": "", "launcher": "", "etcd": "", "kubernetes": "", "chainsaw": "",
		"kube-apiserver": "", "kube-controller-manager": "", "kube-scheduler": "", "kubectl": "",
		"package":       "echo an archive",
		"helm-unittest": "printf 'Test Suites: 1 passed, 1 total\\nTests: 1 passed, 1 total\\n'",
	} {
		stub(t, filepath.Join(r.dir, "bin", name), does)
	}
	// A program that go builds is there afterwards.
	stub(t, filepath.Join(r.out, "go"), `while [ $# -gt 0 ]; do [ "$1" != -o ] || : >"$2"; shift; done`)
	return r
}

// stub writes a program that writes its name and its arguments down, and then does what the shell script says.
func stub(t *testing.T, path, does string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	script := "#!/bin/sh\n{ printf '%s\\0' \"${0##*/}\" \"$@\"; printf '\\0'; } >>\"$OUT/calls\"\n" + does + "\n"
	require.NoError(t, os.WriteFile(path, []byte(script), 0o700))
}

// try runs a program in the repository, with more in its environment, and returns what it says.
func (r repository) try(t *testing.T, environment []string, program string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = r.dir
	command.WaitDelay = time.Second
	for _, variable := range os.Environ() { // this may run under make itself
		if name, _, _ := strings.Cut(variable, "="); !slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "HELM", "HELM_UNITTEST", "CHART", "CR_FILE", "NAMESPACE", "KUBE_VERSION", "BASE", "PWD"}, name) {
			command.Env = append(command.Env, variable)
		}
	}
	command.Env = append(command.Env, "OUT="+r.out, "PATH="+r.out+string(os.PathListSeparator)+os.Getenv("PATH"))
	command.Env = append(command.Env, environment...)
	said, err := command.CombinedOutput()
	return string(said), err
}

func (r repository) must(t *testing.T, environment []string, program string, arguments ...string) {
	t.Helper()
	said, err := r.try(t, environment, program, arguments...)
	require.NoError(t, err, said)
}

// called is every call of a stand-in: its name and its arguments.
func (r repository) called(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.out, "calls"))
	require.NoError(t, err, "no program was called")
	var calls [][]string
	for words := range strings.SplitSeq(strings.TrimSuffix(string(text), "\x00\x00"), "\x00\x00") {
		calls = append(calls, strings.Split(words, "\x00"))
	}
	return calls
}

// assertNothingTouched says that no command of a hostile text was run: nothing new lies in the repository.
func (r repository) assertNothingTouched(t *testing.T) {
	t.Helper()
	for _, name := range []string{"c", "d", "e", "f", "g", "h"} {
		assert.NoFileExists(t, filepath.Join(r.dir, name), "a command of the text was run")
	}
}

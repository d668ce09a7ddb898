package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mutations are those of a function's body, without what is said of the rest.
func mutations(t *testing.T, signature, body string) []string {
	t.Helper()
	_, all, err := instrument("p", "p.go", "package p\n\nfunc f"+signature+" {\n"+body+"\n}\n", 0)
	require.NoError(t, err)
	var found []string
	for _, m := range all {
		found = append(found, m.Mutation)
	}
	return found
}

func TestEachOperatorMakesItsFaults(t *testing.T) {
	for name, c := range map[string]struct {
		signature, body string
		want            []string
	}{
		"a condition":          {"(a bool)", "if a { }", []string{"always: a", "never: a"}},
		"a loop":               {"(a bool)", "for a { }", []string{"never: a"}},
		"a case of a switch":   {"(a bool)", "switch { case a: }", []string{"always: a", "never: a"}},
		"a body of a case":     {"(a int)", "switch a { case 1: f(2) }", []string{"does nothing in case 1", "without f(2)"}},
		"a conjunction":        {"(a, b bool)", "_ = f(a && b)", []string{"without the condition a", "without the condition b"}},
		"an alternative":       {"(a, b bool)", "_ = f(a || b)", []string{"without the alternative a", "without the alternative b"}},
		"a bound":              {"(a int)", "_ = f(a < 1, a >= 2)", []string{"or equal: a < 1", "not equal: a >= 2"}},
		"an equation":          {"(a int)", "_ = f(a == 1)", []string{"the opposite of a == 1"}},
		"a negation":           {"(a bool)", "_ = f(!a)", []string{"without the ! of !a"}},
		"statements":           {"(a int)", "f(a)\na = 1\na++\nb := 1\n_ = b", []string{"without f(a)", "without a = 1", "without a++"}},
		"branches":             {"()", "for { continue; break }", []string{"without continue", "without break"}},
		"results":              {"(a int, b error) (int, error)", "return a, b", []string{"the zero value for a", "the zero value for b"}},
		"a result that is yes": {"(a bool) bool", "return a", []string{"the zero value for a", "true for a"}},
		"zero values":          {"() (int, error)", "return 0, nil", nil},
		"a panic":              {"()", "panic(1)", nil},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, mutations(t, c.signature, c.body))
		})
	}
}

func TestNoLineMovesWhenFaultsAreWrittenIn(t *testing.T) {
	source := "package p\n\nfunc f(a, b int) bool {\n\tif a < b &&\n\t\ta > 0 {\n\t\ta++\n\t}\n\treturn a == b\n}\n"
	written, all, err := instrument("p", "p.go", source, 0)
	require.NoError(t, err)
	assert.Equal(t, strings.Count(source, "\n"), strings.Count(written, "\n"))
	assert.NotEmpty(t, all)
}

// module is a module of one package with its test, in a folder of its own.
func module(t *testing.T, code, tests string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.org/m\n\ngo 1.26\n", "p/p.go": code, "p/p_test.go": "package p\n\nimport \"testing\"\n\n" + tests} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	return root
}

// tried runs the command on such a module.
func tried(t *testing.T, code, tests, list string) (status int, out, problems string) {
	t.Helper()
	root := module(t, code, tests)
	var stdout, stderr strings.Builder
	status = run([]string{"p"}, root, []target{{".", "p", []string{"p"}, nil, nil}}, []byte(list), &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

const (
	positive = "package p\n\nfunc positive(n int) bool {\n\treturn n > 0\n}\n"
	loose    = "func TestPositive(t *testing.T) {\n\tif !positive(2) || positive(-1) {\n\t\tt.Fatal()\n\t}\n}\n"
	strict   = "func TestPositive(t *testing.T) {\n\tif !positive(2) || positive(0) {\n\t\tt.Fatal()\n\t}\n}\n"
	entry    = "- {package: p, function: positive, line: 'return n > 0', mutation: 'or equal: n > 0', reason: why}\n"
)

func TestAFaultThatNoTestNoticesSurvives(t *testing.T) {
	status, out, problems := tried(t, positive, loose, "[]")
	assert.Equal(t, 1, status, problems)
	assert.Contains(t, out, "p/p.go:4: positive\n  return n > 0\n  or equal: n > 0\n  survived: no test notices it")
	assert.Contains(t, out, "killed 2 of 3")
}

func TestFaultsThatAreAllNoticedAreSuccess(t *testing.T) {
	status, out, problems := tried(t, positive, strict, "[]")
	assert.Equal(t, 0, status, out+problems)
	assert.Contains(t, out, "killed 3 of 3")
}

func TestAnEquivalentFaultIsNoSurvivor(t *testing.T) {
	status, out, problems := tried(t, positive, loose, entry)
	assert.Equal(t, 0, status, out+problems)
	assert.Contains(t, out, "1 more are equivalent")
}

func TestAnEntryThatIsNotTrueIsAnError(t *testing.T) {
	for name, c := range map[string]struct{ tests, list, want string }{
		"a test notices it": {strict, entry, "a test notices what is said to be equivalent"},
		"nothing matches":   {strict, strings.Replace(entry, "n > 0'", "n > 1'", 1), "no fault matches this entry"},
		"no reason":         {loose, strings.Replace(entry, "why", "''", 1), "has no reason"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, problems := tried(t, positive, c.tests, c.list)
			assert.Equal(t, 2, status)
			assert.Contains(t, problems, c.want)
		})
	}
}

func TestASkippedTestHasNoticedNothing(t *testing.T) {
	status, out, _ := tried(t, positive, strings.ReplaceAll(strict, "t.Fatal", "t.Skip"), "[]")
	assert.Equal(t, 1, status)
	assert.Contains(t, out, "killed 0 of 3")
}

func TestATestThatFailsAnywayNoticesNothing(t *testing.T) {
	status, _, problems := tried(t, positive, strings.Replace(loose, "!positive", "positive", 1), "[]")
	assert.Equal(t, 2, status)
	assert.Contains(t, problems, "TestPositive of p fails without a mutant")
}

func TestThePackageIsNotWrittenTo(t *testing.T) {
	root := module(t, positive, strict)
	var out, problems strings.Builder
	assert.Equal(t, 0, run([]string{"p"}, root, []target{{".", "p", []string{"p"}, nil, nil}}, []byte("[]"), &out, &problems), problems.String())
	left, err := os.ReadDir(filepath.Join(root, "p"))
	require.NoError(t, err)
	assert.Len(t, left, 2)
	code, err := os.ReadFile(filepath.Join(root, "p", "p.go"))
	require.NoError(t, err)
	assert.Equal(t, positive, string(code))
}

func TestALoopThatDoesNotEndIsCountedApart(t *testing.T) {
	defer func(was time.Duration) { patience = was }(patience)
	patience = time.Second
	status, out, problems := tried(t, "package p\n\nfunc count() (n int) {\n\tfor n < 3 {\n\t\tn++\n\t}\n\treturn\n}\n",
		"func TestCount(t *testing.T) {\n\tif count() != 3 {\n\t\tt.Fatal()\n\t}\n}\n", "[]")
	assert.Equal(t, 0, status, out+problems)
	assert.Contains(t, out, "killed 3 of 3 faults in 1 packages (1 of them by a loop that did not end)")
}

func TestWithoutAPackageTheHeldFilesAreTriedAndNoOthers(t *testing.T) {
	root := module(t, positive, strict)
	require.NoError(t, os.WriteFile(filepath.Join(root, "p", "q.go"), []byte("package p\n\nfunc loose() bool { return true }\n"), 0o644))
	var out, problems strings.Builder
	held := []target{{".", "p", []string{"p"}, nil, []string{"p.go"}}}
	assert.Equal(t, 0, run(nil, root, held, []byte("[]"), &out, &problems), problems.String())
	assert.Contains(t, out.String(), "killed 3 of 3")
	held[0].held = []string{"p.go", "gone.go"}
	assert.Equal(t, 2, run(nil, root, held, []byte("[]"), &out, &problems))
	assert.Contains(t, problems.String(), "gone.go")
}

func TestAnUnknownPackageIsRefusedWithThoseThereAre(t *testing.T) {
	var out, problems strings.Builder
	assert.Equal(t, 2, run([]string{"nowhere"}, ".", targets, []byte("[]"), &out, &problems))
	assert.Contains(t, problems.String(), "hack/update")
}

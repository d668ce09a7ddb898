package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"cozy-kubevirt/internal/git"
)

// chart is what the tests commit as the base. Only the values set special reaches the TLS setting.
var chart = map[string]string{
	"charts/demo/Chart.yaml":  "apiVersion: v2\nname: demo\nversion: 0.1.0\n",
	"charts/demo/values.yaml": "size: 10\nspecial: false\n",
	"charts/demo/templates/map.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: demo
data:
  size: {{ .Values.size | quote }} # how many at once
  {{- if .Values.special }}
  # only over TLS
  tls: {{ .Values.tls | default "1.2" | quote }}
  {{- end }}
  {{- if semverCompare "<1.35-0" .Capabilities.KubeVersion.Version }}
  old: "true"
  {{- end }}
  list: |
    a # no comment
`,
	"charts/demo/templates/NOTES.txt":      "Thank you.\n",
	"charts/demo/ci/default-values.yaml":   "{}\n",
	"charts/demo/ci/special-values.yaml":   "special: true\n",
	"charts/demo/ci/untouched-values.yaml": "size: 3\n",
}

const template = "charts/demo/templates/map.yaml"

func TestATreeThatIsTheBaseHasNoRenderedChange(t *testing.T) {
	status, report := diff(t, repository(t), options{})
	assert.Equal(t, same, status)
	assert.Regexp(t, `^No rendered change: 3 values sets on Kubernetes 1\.34\.2 and 1\.35\.0, compared with HEAD \([0-9a-f]{7}\)\.\n$`, report)
}

func TestAChangeThatOnlyTheTemplateShowsIsNoRenderedChange(t *testing.T) {
	dir := repository(t)
	edit(t, dir, template, "  list:", "  {{- /* for the reader of the template */}}\n  list:")
	status, report := diff(t, dir, options{})
	assert.Equal(t, same, status)
	assert.Contains(t, report, "No rendered change")
}

func TestAChangedCommentIsToldAsOneByThePathItStandsAt(t *testing.T) {
	dir := repository(t)
	edit(t, dir, template, "# how many at once", "# VMs at once")
	status, report := diff(t, dir, options{})
	assert.Equal(t, different, status)
	assert.Contains(t, report, "Changed in the comments\n\nConfigMap demo: every values set\n@@ data.size @@\n- # how many at once\n+ # VMs at once\n\nNo rendered change but in comments or notes: ")
	assert.NotContains(t, report, string(inDocuments))
}

func TestAChangedValueIsToldOnceWithItsPath(t *testing.T) {
	dir := repository(t)
	edit(t, dir, "charts/demo/values.yaml", "size: 10", "size: 20")
	status, report := diff(t, dir, options{})
	assert.Equal(t, different, status)
	assert.Contains(t, report, "Changed in the documents\n\nConfigMap demo: values set default, special\n@@ data.size @@\n- \"10\"\n+ \"20\"\n\nRendered change: ")
	assert.NotContains(t, report, string(inComments))
}

func TestADefaultThatOneValuesSetReachesIsToldWithThatSet(t *testing.T) {
	dir := repository(t)
	edit(t, dir, template, `default "1.2"`, `default "1.3"`)
	status, report := diff(t, dir, options{})
	assert.Equal(t, different, status)
	assert.Contains(t, report, "ConfigMap demo: values set special\n@@ data.tls @@\n- \"1.2\"\n+ \"1.3\"\n")
}

func TestAChangeBelowKubernetes135IsToldWithTheVersion(t *testing.T) {
	dir := repository(t)
	edit(t, dir, template, `old: "true"`, `old: "yes"`)
	_, report := diff(t, dir, options{})
	assert.Contains(t, report, "ConfigMap demo: every values set on Kubernetes 1.34.2\n@@ data.old @@\n- \"true\"\n+ \"yes\"\n")
}

func TestAValueAndACommentThatChangeTogetherAreToldApart(t *testing.T) {
	dir := repository(t)
	edit(t, dir, template, `{{ .Values.size | quote }} # how many at once`, `"7" # seven`)
	_, report := diff(t, dir, options{})
	assert.Contains(t, report, "@@ data.size @@\n- \"10\"\n+ \"7\"\n")
	assert.Contains(t, report, "@@ data.size @@\n- # how many at once\n+ # seven\n")
}

func TestQuotesAndTheOrderOfKeysAreToldAsHowItIsWritten(t *testing.T) {
	dir := repository(t)
	edit(t, dir, template, "apiVersion: v1\nkind: ConfigMap", "kind: \"ConfigMap\"\napiVersion: v1")
	status, report := diff(t, dir, options{})
	assert.Equal(t, different, status)
	assert.Contains(t, report, string(inText))
	assert.Contains(t, report, "+ kind: \"ConfigMap\"\n")
	assert.Contains(t, report, "No document and no comment changes")
}

func TestAnEmptyLineMoreIsToldAsHowItIsWritten(t *testing.T) {
	dir := repository(t)
	edit(t, dir, template, "data:\n  size", "\ndata:\n  size")
	status, report := diff(t, dir, options{})
	assert.Equal(t, different, status)
	assert.Contains(t, report, "ConfigMap demo: every values set\n@@ lines @@\n+ \n")
}

func TestAQuoteThatChangesTheTypeIsAChangeOfTheDocument(t *testing.T) {
	dir := repository(t)
	edit(t, dir, template, `{{ .Values.size | quote }}`, `{{ .Values.size }}`)
	_, report := diff(t, dir, options{})
	assert.Contains(t, report, "@@ data.size @@\n- \"10\"\n+ 10\n")
	assert.Contains(t, report, string(inDocuments))
}

func TestACommentWithoutADocumentIsCompared(t *testing.T) {
	dir := repository(t)
	write(t, dir, "charts/demo/templates/remark.yaml", "# nothing to see\n")
	status, report := diff(t, dir, options{})
	assert.Equal(t, different, status)
	assert.Contains(t, report, "+ # nothing to see\n")
}

func TestNoCommentGetsLostWhereverItStands(t *testing.T) {
	for _, text := range []string{
		"# top\na: 1\n", "# top\n\na: 1\n", "a: 1\n# end\n", "a: 1\n\n# end\n",
		"a:\n  # in\n  - x # line\n  # between\n  - y\n# after\nb: {c: 1} # flow\n",
		"a: # key\n  b: 1\n", "a: # key\n- b: 1\n  # between\n  c: 2\n", "a:\n  # only\nb: 1\n",
		"a: [1, # one\n 2]\n", "a: >- # folded\n  x\n", "a: |\n  x # none\n# after\nb: 2\n",
		"- a\n# one\n\n# two\n\n- b\n", "a: &x # anchor\n  c: 1\nb: *x # alias\n", "a: {} # map\nb: # null\n",
		"# none but comments\n\n# two\n",
	} {
		documents, err := parse([]string{text})
		require.NoError(t, err)
		require.Len(t, documents, 1)
		for _, d := range documents {
			found := strings.Count(fmt.Sprint(d.comments), "#")
			assert.Equal(t, strings.Count(text, "#")-strings.Count(text, "# none\n"), found, "%q: %v", text, d.comments)
		}
	}
}

func TestACommentInAListGoesByNoIndex(t *testing.T) {
	documents, err := parse([]string{"a:\n- x\n- y # why\n"})
	require.NoError(t, err)
	for _, d := range documents {
		assert.Equal(t, map[string][]string{"a[]": {"# why"}}, d.comments)
	}
	assert.Len(t, documents, 1)
}

func TestDocumentsThatComeAndGoAreToldWhole(t *testing.T) {
	dir := repository(t)
	edit(t, dir, template, "name: demo", "name: other")
	_, report := diff(t, dir, options{})
	assert.Contains(t, report, "ConfigMap demo: values set default on Kubernetes 1.34.2")
	assert.Contains(t, report, "removed, as a whole\n- apiVersion: v1\n")
	assert.Contains(t, report, "added, as a whole\n+ apiVersion: v1\n")
}

func TestChangedNotesAreTold(t *testing.T) {
	dir := repository(t)
	edit(t, dir, "charts/demo/templates/NOTES.txt", "Thank you.", "Thanks.")
	status, report := diff(t, dir, options{})
	assert.Equal(t, different, status)
	assert.Contains(t, report, "Changed in the notes\n\nNOTES.txt: every values set\n")
	assert.Contains(t, report, "- Thank you.\n+ Thanks.\n")
}

func TestATemplateThatFailsOnOneSideIsADifference(t *testing.T) {
	dir := repository(t)
	edit(t, dir, template, "  list:", "  {{- if .Values.special }}{{ fail \"special is gone\" }}{{ end }}\n  list:")
	status, report := diff(t, dir, options{})
	assert.Equal(t, different, status)
	assert.Contains(t, report, "Rendered by one side only\n\nHEAD ")
	assert.Contains(t, report, ": values set special\nthe working tree fails: ")
	assert.Contains(t, report, "special is gone")

	commit(t, dir)
	gitIn(t, dir, "checkout", "--quiet", "HEAD~1", "--", ".")
	status, report = diff(t, dir, options{})
	assert.Equal(t, different, status)
	assert.Contains(t, report, "the working tree: values set special\nHEAD ")
}

func TestAChartThatDoesNotLoadFailsEveryRendering(t *testing.T) {
	dir := repository(t)
	write(t, dir, "charts/demo/Chart.yaml", "name: [\n")
	status, report := diff(t, dir, options{})
	assert.Equal(t, different, status)
	assert.Contains(t, report, ": every values set\nthe working tree fails: ")
}

func TestWhatFailsOnBothSidesIsTrouble(t *testing.T) {
	dir := repository(t)
	write(t, dir, "charts/demo/ci/special-values.yaml", "special: [\n")
	commit(t, dir)
	status, report, err := tryDiff(t, dir, options{})
	assert.Equal(t, trouble, status)
	assert.ErrorContains(t, err, "values set special, Kubernetes 1.34.2: neither side renders")
	assert.Contains(t, report, "Not compared: 2 of 6 renderings.")
}

func TestAValuesSetThatOneSideHasIsRenderedWithBothAndSaid(t *testing.T) {
	dir := repository(t)
	write(t, dir, "charts/demo/ci/new-values.yaml", "size: 99\n")
	require.NoError(t, os.Remove(filepath.Join(dir, "charts/demo/ci/untouched-values.yaml")))
	write(t, dir, "charts/demo/ci/special-values.yaml", "special: true\ntls: \"1.1\"\n")
	edit(t, dir, template, `default "1.2"`, `default "1.3"`)
	status, report := diff(t, dir, options{})
	assert.Equal(t, different, status)
	assert.Contains(t, report, "Only the working tree has the values set new; both charts are rendered with it.\n")
	assert.Regexp(t, `Only HEAD \([0-9a-f]{7}\) has the values set untouched; both charts are rendered with it\.\n`, report)
	assert.Contains(t, report, "The values set special differs; both charts are rendered with either version of it.\n")
	assert.Contains(t, report, "ConfigMap demo: values set special of the base\n@@ data.tls @@\n")
	assert.Contains(t, report, "Rendered change: 5 values sets")
}

func TestWithoutAnyValuesSetThereIsTrouble(t *testing.T) {
	dir := repository(t)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "charts/demo/ci")))
	commit(t, dir)
	status, _, err := tryDiff(t, dir, options{})
	assert.Equal(t, trouble, status)
	assert.ErrorContains(t, err, "ci/*-values.yaml")
}

func TestABaseThatIsNoCommitOrHasNoChartIsTrouble(t *testing.T) {
	dir := repository(t)
	for base, want := range map[string]string{
		"origin/gone": `BASE: "origin/gone" names no commit`,
		"--help":      `BASE: "--help" names no commit`,
		"":            `BASE: "" names no commit`,
		"before":      "BASE: before holds no folder charts/demo",
	} {
		status, report, err := tryDiff(t, dir, options{base: base, chart: "charts/demo"})
		assert.Equal(t, trouble, status)
		assert.ErrorContains(t, err, want)
		assert.Empty(t, report)
	}
}

func TestTheMarkdownHoldsTheDifferencesInCodeBlocks(t *testing.T) {
	dir := repository(t)
	edit(t, dir, template, "# how many at once", "# as in ```size```")
	status, report := diff(t, dir, options{markdown: true})
	assert.Equal(t, different, status)
	assert.Contains(t, report, "### Changed in the comments\n\n**ConfigMap demo**: every values set\n\n````diff\n@@ data.size @@\n- # how many at once\n+ # as in ```size```\n````\n")
}

func TestTheTreeIsFoundFromAFolderInIt(t *testing.T) {
	dir := repository(t)
	edit(t, dir, "charts/demo/values.yaml", "size: 10", "size: 20")
	status, report := diff(t, filepath.Join(dir, "charts/demo/ci"), options{})
	assert.Equal(t, different, status)
	assert.Contains(t, report, "@@ data.size @@")
}

// The wrapper sends this process the signal of ^C while git checks out, and then hangs until it is killed.
func TestAnInterruptLeavesNothingBehind(t *testing.T) {
	dir := repository(t)
	real, err := exec.LookPath("git")
	require.NoError(t, err)
	bin := t.TempDir()
	wrapper := "#!/bin/sh\nif [ \"$1\" = checkout-index ]; then\n  " + real + " \"$@\"\n  kill -INT $PPID\n  exec tail -f /dev/null\nfi\nexec " + real + " \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "git"), []byte(wrapper), 0o755))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt)
	defer stop()
	status, _, err := tryDiffContext(ctx, t, dir, options{})
	assert.Equal(t, trouble, status)
	assert.ErrorIs(t, err, git.ErrInterrupted)
}

// diff runs the comparison with HEAD, which must be no trouble.
func diff(t *testing.T, dir string, o options) (int, string) {
	t.Helper()
	status, report, err := tryDiff(t, dir, o)
	require.NoError(t, err)
	return status, report
}

func tryDiff(t *testing.T, dir string, o options) (int, string, error) {
	t.Helper()
	return tryDiffContext(t.Context(), t, dir, o)
}

// tryDiffContext also checks that the run left nothing behind: no temporary file, and the repository as it was.
func tryDiffContext(ctx context.Context, t *testing.T, dir string, o options) (int, string, error) {
	t.Helper()
	o.repository = dir
	if o.chart == "" {
		o.chart, o.base = "charts/demo", "HEAD"
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	before := state(t, dir)
	var report strings.Builder
	status, err := run(ctx, o, &report)
	left, readErr := os.ReadDir(temporary)
	require.NoError(t, readErr)
	assert.Empty(t, left, "left behind")
	assert.Equal(t, before, state(t, dir), "the repository changed")
	return status, report.String(), err
}

func state(t *testing.T, dir string) string {
	t.Helper()
	return gitIn(t, dir, "status", "--porcelain", "--ignored") + gitIn(t, dir, "worktree", "list") + gitIn(t, dir, "ls-files", "--stage")
}

// repository makes a git repository with the chart in it; the commit before it is tagged "before".
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	gitIn(t, dir, "init", "--quiet")
	commit(t, dir)
	gitIn(t, dir, "tag", "before")
	for name, text := range chart {
		write(t, dir, name, text)
	}
	commit(t, dir)
	return dir
}

func commit(t *testing.T, dir string) {
	t.Helper()
	gitIn(t, dir, "add", "--all")
	gitIn(t, dir, "-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "--quiet", "--allow-empty", "--message", "a change")
}

func gitIn(t *testing.T, dir string, arguments ...string) string {
	t.Helper()
	command := exec.Command("git", arguments...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	require.NoError(t, err, "git %v: %s", arguments, out)
	return string(out)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

func edit(t *testing.T, dir, name, old, new string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), old), "%s: %q", name, old)
	write(t, dir, name, strings.Replace(string(text), old, new, 1))
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// chartFile names the version where the real file does, and once in the history, which stays.
func chartFile(version string) string {
	return "version: 0.1.0\nappVersion: " + version + "\nannotations:\n  links: |\n    - name: Prerequisite, the KubeVirt operator " + version +
		"\n      url: https://github.com/kubevirt/kubevirt/releases/tag/" + version + "\n  images: |\n    - name: virt-api\n      image: quay.io/kubevirt/virt-api:" + version +
		"\n  changes: |\n    - description: The chart for KubeVirt v1.9.0.\n"
}

// goModBefore is the file with which the tests are built at the release before.
func goModBefore(version string) string {
	return "require (\n\tkubevirt.io/api " + version + "\n\tkubevirt.io/kubevirt v1.8.4\n)\nreplace kubevirt.io/api => kubevirt.io/api v1.8.4\n"
}

// aTree is a repository with just the pins, each in the form that the real file has.
func aTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for file, content := range map[string]string{
		"charts/kubevirt/Chart.yaml": chartFile("v1.9.0"),
		"tests/kubevirt/go.mod": "require (\n\tkubevirt.io/api v1.9.0\n\tkubevirt.io/client-go v1.9.0\n\tkubevirt.io/kubevirt v1.9.0\n" +
			"\tkubevirt.io/containerized-data-importer-api v1.64.0 // indirect\n)\n",
		"tests/kubevirt/go.v1.8.mod":       goModBefore("v1.9.0"),
		"cmd/kubectl-drain_preview/go.mod": "require (\n\tkubevirt.io/api v1.9.0\n)\n",
		"go.mod":                           "require kubevirt.io/api v1.9.0\n",
	} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestBumpMovesEveryPinAndNothingElse(t *testing.T) {
	root := aTree(t)
	changed, err := bump(root, "v1.10.0-rc.1")
	if err != nil || len(changed) != len(pins) {
		t.Fatalf("changed %v, %v; want all %d files", changed, err, len(pins))
	}
	module := read(t, root, "tests/kubevirt/go.mod")
	if n := strings.Count(module, " v1.10.0-rc.1\n"); n != 3 || !strings.Contains(module, "importer-api v1.64.0 ") {
		t.Errorf("%s: want KubeVirt's three modules moved and the importer's API left alone", module)
	}
	if chart := read(t, root, "charts/kubevirt/Chart.yaml"); chart != chartFile("v1.10.0-rc.1") {
		t.Errorf("Chart.yaml: %s", chart)
	}
	if before := read(t, root, "tests/kubevirt/go.v1.8.mod"); before != goModBefore("v1.10.0-rc.1") {
		t.Errorf("go.v1.8.mod: %s", before)
	}
	if again, err := bump(root, "v1.10.0-rc.1"); err != nil || len(again) != 0 {
		t.Errorf("again: %v, %v; want no change", again, err)
	}
}

func TestBumpChangesNothingIfAPinIsMissing(t *testing.T) {
	root := aTree(t)
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module m\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := bump(root, "v1.9.1"); err == nil || !strings.Contains(err.Error(), "go.mod") {
		t.Errorf("error %v; want one that names go.mod", err)
	}
	if chart := read(t, root, "charts/kubevirt/Chart.yaml"); !strings.Contains(chart, "appVersion: v1.9.0") {
		t.Errorf("Chart.yaml was changed: %s", chart)
	}
}

func TestBumpRefusesWhatIsNoVersion(t *testing.T) {
	for _, to := range []string{"", "1.9.1", "v1.9", "latest", "v1.9.1 "} {
		if _, err := bump(aTree(t), to); err == nil {
			t.Errorf("%q was taken", to)
		}
	}
}

// The repository itself has every pin, in a form that bump finds.
func TestBumpFindsThePinsOfThisRepository(t *testing.T) {
	for _, pin := range pins {
		if found := len(pin.pattern.FindAllString(read(t, "..", "..", pin.file), -1)); found < pin.least {
			t.Errorf("%s: found %d pins, want %d", pin.file, found, pin.least)
		}
	}
}

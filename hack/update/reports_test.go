package main

// The faults that the usual chain of sed and grep let through, each by its name: it exited 0 with a broken file.

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatASedChainLetThroughIsRestoredOrRefused(t *testing.T) {
	const eviction = "    evictionStrategy: LiveMigrateIfPossible"
	namespace, cpu, gates := named(t, "namespace"), named(t, "cpuAllocationRatio"), named(t, "extraFeatureGates")
	gatesEnd := named(t, "featureGates-end")
	devices, mediated := named(t, "permittedHostDevices"), named(t, "mediatedDevicesConfiguration")
	for _, c := range []struct {
		name     string
		old, new string
		want     string // in the message; empty if the template is to come back
	}{
		{"a lost end of a block", cpu.lines()[1] + "\n" + cpu.lines()[2] + "\n", cpu.lines()[1] + "\n",
			":15: block cpuAllocationRatio: its line 3 of 3 is missing"},
		{"a lost body of a block", cpu.lines()[1] + "\n", "", ":14: block cpuAllocationRatio: its line 2 of 3 is missing"},
		{"a doubled anchor", eviction, eviction + "\n" + eviction, ": key spec.configuration.evictionStrategy: stands a second time"},
		{"guard text that stands only in a comment", devices.text[1:], "    # permittedHostDevices: {{- . }}", ": block permittedHostDevices: stands only in a comment"},
		{"an unexpected namespace", namespace.lines()[0], "  namespace: cozy-kubevirt", ": block namespace: found `  namespace: cozy-kubevirt`, expected upstream's `  namespace: kubevirt`"},
		{"a missing anchor", eviction, "    evictionPolicy: LiveMigrateIfPossible", "restore the line `" + eviction + "` under `  configuration:`, right below line "},
		{"a list that ends in another item", gatesEnd.text[1:] + gates.text, "      - Snapshot", ""},
		{"a block that would come back in another order", devices.text[1:] + "\n", "", ""},
		{"two blocks in another order", devices.text + mediated.text, mediated.text + devices.text, ": block mediatedDevicesConfiguration: stands in lines 43-45, expected after block permittedHostDevices"},
	} {
		t.Run(c.name, func(t *testing.T) {
			damaged := strings.Replace(string(shipped(t)), c.old, c.new, 1)
			if damaged == string(shipped(t)) {
				t.Fatalf("%q is not in the template", c.old)
			}
			path := onDisk(t, "a path with blanks.yaml", []byte(damaged))
			status, out, errs := called(path)
			got := string(bytesOf(t, path))
			switch {
			case c.want == "":
				if again, _, _ := called(path); status != 0 || again != 0 || unsound(t, []byte(damaged), []byte(got)) != nil {
					t.Errorf("status %d, %s%s%s", status, out, errs, got)
				}
			case status != 1 || !strings.Contains(errs, c.want):
				t.Errorf("status %d, %s, expected %q", status, errs, c.want)
			case got != damaged:
				t.Error("the file was changed")
			}
		})
	}
	t.Run("a link that would become a file", func(t *testing.T) {
		path := onDisk(t, "cr.yaml", lostText(t))
		link := filepath.Join(filepath.Dir(path), "a link")
		if err := os.Symlink("cr.yaml", link); err != nil {
			t.Fatal(err)
		}
		status, _, errs := called(link)
		info, err := os.Lstat(link)
		if status != 0 || err != nil || info.Mode()&os.ModeSymlink == 0 || !bytes.Equal(bytesOf(t, path), shipped(t)) {
			t.Errorf("status %d, %s, %v", status, errs, err)
		}
	})
}

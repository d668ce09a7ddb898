package main

// Drives the command on real files: what is written, what is left as it was, and what a kill leaves behind.

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// lostText is the template without its host devices, so that there is something to write.
func lostText(t testing.TB) []byte {
	t.Helper()
	lost := strings.Replace("\n"+string(shipped(t)), named(t, "permittedHostDevices").text+"\n", "\n", 1)[1:]
	if len(lost) == len(shipped(t)) {
		t.Fatal("the block is not in the template")
	}
	return []byte(lost)
}

// onDisk writes a file that is to be updated into a directory of its own.
func onDisk(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func bytesOf(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// called runs the command in process.
func called(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(args, &out, &errs)
	return status, out.String(), errs.String()
}

// built is the directory of the program, once a test has needed it.
var built string

// program builds the command once for all tests and benchmarks that need a process.
var program = sync.OnceValues(func() (_ string, err error) {
	if built, err = os.MkdirTemp("", "update"); err != nil {
		return "", err
	}
	path := filepath.Join(built, "update")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func binary(t testing.TB) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMain(m *testing.M) {
	status := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(status)
}

func TestALostBlockIsWrittenAndReportedAndTheNextRunWritesNothing(t *testing.T) {
	path := onDisk(t, "name with blanks and 'quotes'.yaml", lostText(t))
	status, out, errs := called(path)
	if status != 0 || errs != "" || !bytes.Equal(bytesOf(t, path), shipped(t)) {
		t.Fatalf("status %d, %s%s", status, out, errs)
	}
	if want := path + ": block permittedHostDevices: inserted at line "; !strings.Contains(out, want) || strings.Count(out, "\n") != len(blocks) {
		t.Errorf("the report is\n%s\nexpected a line for each block and %q", out, want)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	status, out, errs = called(path)
	after, err := os.Stat(path)
	if err != nil || status != 0 || errs != "" || strings.Count(out, ": unchanged, line") != len(blocks) {
		t.Errorf("the second run: %v, status %d, %s%s", err, status, out, errs)
	}
	if !os.SameFile(before, after) || before.ModTime() != after.ModTime() {
		t.Error("the second run wrote the file again")
	}
}

func TestARefusedFileIsNotTouchedAndEveryFaultIsOnStderr(t *testing.T) {
	data := bytesOf(t, "testdata/faults_of_all_kinds_at_once.in.yaml")
	path := onDisk(t, "cr.yaml", data)
	before, _ := os.Stat(path)
	status, out, errs := called(path)
	after, _ := os.Stat(path)
	if status != 1 || !bytes.Equal(bytesOf(t, path), data) || !os.SameFile(before, after) {
		t.Errorf("status %d, or the file was touched", status)
	}
	want := strings.ReplaceAll(string(bytesOf(t, "testdata/faults_of_all_kinds_at_once.err.txt")), "kubevirt-cr.yaml:", path+":")
	if want += path + ": faults: 4; nothing was written\n"; errs != want {
		t.Errorf("stderr is\n%s\nexpected\n%s", errs, want)
	}
	if !strings.Contains(out, "block namespace: wrong, see line 5") || !strings.Contains(out, "block checkValues: lost, ") {
		t.Errorf("the report is\n%s", out)
	}
}

func TestCheckPrintsADiffThatGitAppliesAndWritesNothing(t *testing.T) {
	for name, text := range map[string]string{
		"the template less a block": string(lostText(t)),
		"without a last line end":   strings.TrimSuffix(string(lostText(t)), "\n"),
		"CRLF":                      strings.ReplaceAll(string(lostText(t)), "\n", "\r\n"),
		"all blocks lost":           string(bytesOf(t, "testdata/all_blocks_lost.in.yaml")),
		"a change on the last line": strings.TrimSuffix(string(bytesOf(t, "testdata/list_at_the_end.in.yaml")), "\n"),
	} {
		path := onDisk(t, "cr.yaml", []byte(text))
		status, diff, errs := called("-check", path)
		if status != 1 || errs != "" || string(bytesOf(t, path)) != text {
			t.Errorf("%s: status %d, %s, or the file was written", name, status, errs)
		}
		apply := exec.Command("git", "apply", "--unidiff-zero", "-")
		apply.Dir = filepath.Dir(path)
		apply.Stdin = strings.NewReader(strings.ReplaceAll(diff, " "+path, " x/cr.yaml"))
		if out, err := apply.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s\n%s", name, err, out, diff)
		}
		if got := bytesOf(t, path); !bytes.Equal(got, merge([]byte(text)).data) {
			t.Errorf("%s: git makes of the diff\n%s", name, got)
		}
		if status, out, errs := called("-check", path); status != 0 || out != "" || errs != "" {
			t.Errorf("%s: once applied, -check gives %d %s%s", name, status, out, errs)
		}
	}
	path := onDisk(t, "cr.yaml", []byte("a: b\n"))
	if status, out, errs := called("-check", path); status != 1 || !strings.Contains(errs, "kind is missing") {
		t.Errorf("a file that is refused gives %d %s%s", status, out, errs)
	}
}

func TestASymlinkStaysAndItsTargetIsUpdatedWithItsMode(t *testing.T) {
	path := onDisk(t, "cr.yaml", lostText(t))
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link to it")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := called(link); status != 0 {
		t.Fatal(out, errs)
	}
	if to, err := os.Readlink(link); err != nil || to != path {
		t.Errorf("the link is %q, %v", to, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o640 || !bytes.Equal(bytesOf(t, path), shipped(t)) {
		t.Errorf("the target is %v, %v", info.Mode(), err)
	}
}

func TestWhatIsNoFileToUpdateIsRefused(t *testing.T) {
	dir := t.TempDir()
	readOnly := onDisk(t, "cr.yaml", lostText(t))
	if err := os.Chmod(readOnly, 0o444); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), dangling); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "absent.yaml"): "no such file or directory; nothing was written",
		dir:                               "is no regular file, expected a KubeVirt CR",
		dangling:                          "no such file or directory",
	} {
		if status, _, errs := called(path); status != 1 || !strings.HasPrefix(errs, path+": ") || !strings.Contains(errs, want) {
			t.Errorf("status %d, %q, expected %q", status, errs, want)
		}
	}
	if status, _, errs := called(readOnly); os.Geteuid() != 0 && (status != 1 || !strings.Contains(errs, "permission denied")) {
		t.Errorf("a file that is read-only: status %d, %q", status, errs)
	}
	for _, args := range [][]string{{}, {"a", "b"}, {"-no-such-flag"}} {
		if status, _, errs := called(args...); status != 2 || !strings.Contains(errs, "usage: update [-check] file") {
			t.Errorf("%q: status %d, %q", args, status, errs)
		}
	}
}

func TestAFailedWriteLeavesTheFileAndNothingElse(t *testing.T) {
	path := onDisk(t, "cr.yaml", lostText(t))
	if err := os.Mkdir(tempName(path), 0o755); err != nil { // where the temporary file would go
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tempName(path), "in the way"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := called(path); status != 1 || !strings.Contains(errs, "nothing was written") || !bytes.Equal(bytesOf(t, path), lostText(t)) {
		t.Errorf("status %d, %q", status, errs)
	}
}

// big is a file that takes a while to write: the template less a block, and a comment of two megabytes.
func big(t testing.TB) (before, after []byte) {
	head := []byte("{{- /*\n" + strings.Repeat(strings.Repeat("x", 1<<16-1)+"\n", 32) + "*/}}\n")
	return slices.Concat(head, lostText(t)), slices.Concat(head, shipped(t))
}

// Kills the process when the new file has grown to a given share, which covers the time from before it is
// created to after the rename.
func TestAProcessThatIsKilledLeavesTheOldFileOrTheNewOne(t *testing.T) {
	before, after := big(t)
	path := onDisk(t, "cr.yaml", before)
	outcomes := map[string]int{}
	const kills = 40
	for i := range kills {
		if err := os.WriteFile(path, before, 0o644); err != nil {
			t.Fatal(err)
		}
		size := int64(len(after)) * int64(i) / (kills - 8) // the last ones wait for the rename
		cmd := exec.Command(binary(t), path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
	wait:
		for begun := false; ; runtime.Gosched() {
			info, err := os.Stat(tempName(path))
			if begun = begun || err == nil; begun && (err != nil || size <= int64(len(after)) && info.Size() >= size) {
				break
			}
			select {
			case <-done:
				done <- nil
				break wait
			default:
			}
		}
		_ = cmd.Process.Signal(syscall.SIGKILL)
		<-done
		got, outcome := bytesOf(t, path), "new"
		if bytes.Equal(got, before) {
			outcome = "old"
		} else if !bytes.Equal(got, after) {
			t.Fatalf("kill %d left a file of %d bytes that is neither the old one (%d) nor the new one (%d)", i, len(got), len(before), len(after))
		}
		if info, err := os.Stat(tempName(path)); err == nil {
			outcome += ", with a temporary file left"
			if info.Size() < int64(len(after)) {
				outcome += " half"
			}
		}
		outcomes[outcome]++
	}
	t.Logf("%d kills: %v", kills, outcomes)
	// How much of the temporary file is there depends on the disk; that it is there shows a kill before the rename.
	if outcomes["old, with a temporary file left half"]+outcomes["old, with a temporary file left"] == 0 || outcomes["new"] == 0 {
		t.Error("no kill came during the write, or none after it: the test has lost its grip")
	}
	if err := os.WriteFile(tempName(path), []byte("left by a kill"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(binary(t), path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 || !bytes.Equal(bytesOf(t, path), after) {
		t.Errorf("the next run leaves %v, %v", left, err)
	}
}

func TestAnInterruptedProcessLeavesNoTemporaryFile(t *testing.T) {
	before, after := big(t)
	interrupted := 0
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		path := onDisk(t, "cr.yaml", before)
		cmd := exec.Command(binary(t), path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		var err error
	wait:
		for {
			if _, err := os.Stat(tempName(path)); err == nil {
				_ = cmd.Process.Signal(s)
				err = <-done
				break
			}
			select {
			case err = <-done:
				break wait
			default:
				runtime.Gosched()
			}
		}
		if err != nil || cmd.ProcessState.ExitCode() == 128+int(s) {
			interrupted++
		}
		if got := bytesOf(t, path); !bytes.Equal(got, before) && !bytes.Equal(got, after) {
			t.Errorf("%v left half a file", s)
		}
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
			t.Errorf("%v left %v, %v", s, left, err)
		}
	}
	if interrupted == 0 {
		t.Error("no signal came during the write: the test has lost its grip")
	}
}

func TestTwoRunsAtOnceDoNotDisturbEachOther(t *testing.T) {
	path := onDisk(t, "cr.yaml", lostText(t))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if out, err := exec.Command(binary(t), path).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	group.Wait()
	if !bytes.Equal(bytesOf(t, path), shipped(t)) {
		t.Error("the file is not the template")
	}
}

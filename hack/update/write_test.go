package main

// Drives the command on real files: what is written, what is left as it was, and what a kill leaves behind.

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"cozy-kubevirt/hack/internal/lock"
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
	want := path + ": nothing was written; mend the 4 faults below, each as its line says, and run make update again\n"
	if want += strings.ReplaceAll(string(bytesOf(t, "testdata/faults_of_all_kinds_at_once.err.txt")), "kubevirt-cr.yaml:", path+":"); errs != want {
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
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), dangling); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "absent.yaml"): "name the file of the KubeVirt CR: cannot lstat: no such file or directory; nothing was written",
		dir:                               "name the file of the KubeVirt CR, this is no regular file; nothing was written",
		dangling:                          "no such file or directory",
	} {
		if status, _, errs := called(path); status != 1 || !strings.HasPrefix(errs, path+": ") || !strings.Contains(errs, want) {
			t.Errorf("status %d, %q, expected %q", status, errs, want)
		}
	}
	for _, args := range [][]string{{}, {"a", "b"}, {"-no-such-flag"}} {
		if status, _, errs := called(args...); status != 2 || !strings.Contains(errs, "usage: update [-check] file") {
			t.Errorf("%q: status %d, %q", args, status, errs)
		}
	}
}

func TestTheFirstLineOfARefusalSaysWhatToDo(t *testing.T) {
	whole := string(shipped(t))
	for _, c := range []struct{ old, new, want string }{
		{"      - CPUManager\n", "      {{- end }}\n      - CPUManager\n", "nothing was written; delete line 22, or declare it as a block in hack/update/blocks.go\n"},
		{"      - CPUManager\n      {{- end }}\n", "      {{- end }}\n      - CPUManager\n", "nothing was written; delete line 22 and run make update again, or move it there\n"},
		{"  uninstallStrategy: BlockUninstallIfWorkloadsExist\n", "", "nothing was written; restore the line `  uninstallStrategy: BlockUninstallIfWorkloadsExist` under `spec:`, right below line 69, where block monitorNamespace ends\n"},
		{"    {{- with include \"cozy-kubevirt.permittedHostDevices\" . }}\n", "", "nothing was written; delete lines 43-44, what is left of the block, and run make update again, or restore the block by hand\n"},
	} {
		text := strings.Replace(whole, c.old, c.new, 1)
		path := onDisk(t, "cr.yaml", []byte(text))
		for _, args := range [][]string{{path}, {"-check", path}} {
			status, _, errs := called(args...)
			if first, _, _ := strings.Cut(errs, "\n"); text == whole || status != 1 || first+"\n" != path+": "+c.want {
				t.Errorf("%q: status %d, the first line is %q, expected %q", args, status, first, c.want)
			}
		}
	}
}

func TestAFileWithNothingToDoNeedsNoLock(t *testing.T) {
	path := onDisk(t, "cr.yaml", shipped(t))
	unlock, err := lock.Folder(filepath.Dir(path), "test", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if status, out, errs := called(path); status != 0 || errs != "" {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
}

func TestARunThatWaitsForAnotherSaysSoAndThenWrites(t *testing.T) {
	path := onDisk(t, "cr.yaml", lostText(t))
	unlock, err := lock.Folder(filepath.Dir(path), "test", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	cmd := exec.Command(binary(t), path)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first, err := bufio.NewReader(stderr).ReadString('\n')
	if want := "waiting for another make update in " + filepath.Dir(path) + "\n"; err != nil || first != want {
		t.Errorf("stderr begins with %q, %v, expected %q", first, err, want)
	}
	if !bytes.Equal(bytesOf(t, path), lostText(t)) {
		t.Error("the file was written under the other's lock")
	}
	unlock()
	if err := cmd.Wait(); err != nil || !bytes.Equal(bytesOf(t, path), shipped(t)) {
		t.Errorf("%v, or the file is not the template", err)
	}
}

// A full file system stands for all that can fail between the first byte and the rename.
func TestAFailedWriteLeavesTheFileAndNothingElse(t *testing.T) {
	before, _ := big(t)
	path := onDisk(t, "cr.yaml", before)
	limited := exec.Command("bash", "-c", `ulimit -f 100; exec "$0" "$1"`, binary(t), path) // blocks of 1 KiB
	out, err := limited.CombinedOutput()
	if err == nil || !bytes.Equal(bytesOf(t, path), before) {
		t.Errorf("%v, or the file was touched: %s", err, out)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 || !bytes.Contains(out, []byte("nothing was written")) {
		t.Errorf("it leaves %v, %v, %s", left, err, out)
	}
}

// big is a file that takes a while to write: the template less a block, and a comment of two megabytes.
func big(t testing.TB) (before, after []byte) {
	head := []byte("{{- /*\n" + strings.Repeat(strings.Repeat("x", 1<<16-1)+"\n", 32) + "*/}}\n")
	return slices.Concat(head, lostText(t)), slices.Concat(head, shipped(t))
}

// temporary returns the temporary files beside the target.
func temporary(t testing.TB, path string) []string {
	t.Helper()
	left, err := lock.Leftovers(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// Signals the process when its temporary file is seen. A kill leaves the old file or the new one; another signal
// waits for the new one.
func TestAProcessThatIsStoppedLeavesTheOldFileOrTheNewOne(t *testing.T) {
	before, after := big(t)
	outcomes := map[string]int{}
	for i := range 12 {
		s := []syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGHUP}[i%6]
		path := onDisk(t, "cr.yaml", before)
		cmd := exec.Command(binary(t), path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		for ended := false; !ended && len(temporary(t, path)) == 0; runtime.Gosched() {
			select {
			case err := <-done:
				done <- err
				ended = true
			default:
			}
		}
		_ = cmd.Process.Signal(s)
		<-done
		outcome := "new"
		if got := bytesOf(t, path); bytes.Equal(got, before) {
			outcome = "old"
		} else if !bytes.Equal(got, after) {
			t.Fatalf("%v left a file of %d bytes that is neither the old one (%d) nor the new one (%d)", s, len(got), len(before), len(after))
		}
		if left := temporary(t, path); len(left) > 0 && s != syscall.SIGKILL {
			t.Errorf("%v left %v", s, left)
		} else if len(left) > 0 {
			outcome += ", with a temporary file left"
		}
		outcomes[fmt.Sprintf("%v: %s", s, outcome)]++
	}
	t.Log(outcomes)
	if outcomes["killed: old, with a temporary file left"] == 0 {
		t.Error("no kill came during the write: the test has lost its grip")
	}
}

func TestWhatAKilledRunLeftIsClearedAwayByTheNextThatWrites(t *testing.T) {
	path := onDisk(t, "cr [a].yaml", lostText(t))
	for _, name := range []string{".cr [a].yaml123", ".cr [a].yaml9876543210", ".cr [a].yaml", ".cr [a].yaml1.orig", ".cr a.yaml1"} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if status, _, errs := called(path); status != 0 || !bytes.Equal(bytesOf(t, path), shipped(t)) {
		t.Fatal(errs)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if want := []string{".cr [a].yaml", ".cr [a].yaml1.orig", ".cr a.yaml1", "cr [a].yaml"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("left are %q, %v, expected %q", names, err, want)
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

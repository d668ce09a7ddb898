package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// fate is what became of a mutant.
type fate int

const (
	survived fate = iota
	killed
	endless // a loop that does not end, or a wait
)

// test is one top-level test, with the mutants that it meets and the time it takes.
type test struct {
	binary, folder, name string
	meets                map[int]bool
	takes                time.Duration
}

// patience is what a test gets beyond ten times what it takes by itself.
var patience = 5 * time.Second

// trial has every mutant of a package compiled into its tests.
type trial struct {
	root, scratch string
	target        target
	mutants       []mutant
	tests         []*test
}

// newTrial writes only below scratch: the tree is compiled with an overlay.
func newTrial(root, scratch string, of target, heldOnly bool) (*trial, error) {
	t := &trial{root: root, scratch: scratch, target: of}
	folder, err := filepath.Abs(filepath.Join(root, of.module, of.folder))
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range of.held {
		if !slices.Contains(files, filepath.Join(folder, name)) {
			return nil, fmt.Errorf("%s: %s is held and not there; mend packages.go", of.name(), name)
		}
	}
	overlay := map[string]string{}
	put := func(path, text string) error {
		to := filepath.Join(scratch, filepath.Base(path))
		overlay[path] = to
		return os.WriteFile(to, []byte(text), 0o600)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") || heldOnly && !slices.Contains(of.held, filepath.Base(path)) {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		text, all, err := instrument(of.name(), of.name()+"/"+filepath.Base(path), string(data), len(t.mutants))
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			continue
		}
		if len(t.mutants) == 0 {
			words := regexp.MustCompile(`(?m)^package (\w+)`).FindStringSubmatch(text)
			if err := put(filepath.Join(folder, "mutatego_switchboard.go"), fmt.Sprintf(switchboard, words[1])); err != nil {
				return nil, err
			}
		}
		t.mutants = append(t.mutants, all...)
		if err := put(path, text); err != nil {
			return nil, err
		}
	}
	if len(t.mutants) == 0 {
		return nil, fmt.Errorf("%s: there is nothing to change; expected Go files", of.name())
	}
	listed, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(scratch, "overlay.json"), listed, 0o600); err != nil {
		return nil, err
	}
	for i, tests := range of.tests {
		if err := t.load(i, tests); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// load builds the tests of a folder and sees what each of them meets.
func (t *trial) load(i int, folder string) error {
	binary := filepath.Join(t.scratch, fmt.Sprintf("%d.test", i))
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(t.scratch, "overlay.json"), "-o", binary, "./"+folder)
	build.Dir = filepath.Join(t.root, t.target.module)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("the tests of %s don't compile with the mutants of %s in them: %w\n%s", folder, t.target.name(), err, out)
	}
	in := filepath.Join(build.Dir, folder)
	list := exec.Command(binary, "-test.list", "^(Test|Fuzz|Example)")
	list.Dir = in
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("the tests of %s can't be listed: %w", folder, err)
	}
	for name := range strings.Lines(string(out)) {
		if slices.Contains(t.target.without, strings.TrimSpace(name)) {
			continue
		}
		one := &test{binary: binary, folder: in, name: strings.TrimSpace(name), meets: map[int]bool{}}
		trace := filepath.Join(t.scratch, fmt.Sprintf("%d.%s", i, one.name))
		start := time.Now()
		ended, output := one.run([]string{"MUTATEGO_TRACE=" + trace}, 10*time.Minute)
		one.takes = time.Since(start)
		if ended != survived {
			return fmt.Errorf("%s of %s fails without a mutant, so it can notice nothing:\n%s", one.name, folder, output)
		}
		met, err := os.ReadFile(trace)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		for number := range strings.Lines(string(met)) {
			n, err := strconv.Atoi(strings.TrimSpace(number))
			if err != nil {
				return fmt.Errorf("%s of %s: %w", one.name, folder, err)
			}
			one.meets[n] = true
		}
		t.tests = append(t.tests, one)
	}
	// What is quick is asked first.
	slices.SortStableFunc(t.tests, func(a, b *test) int { return int(a.takes - b.takes) })
	return nil
}

// run runs the test by itself. A test that is skipped has noticed nothing.
func (t *test) run(environment []string, limit time.Duration) (fate, []byte) {
	patient, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	process := exec.CommandContext(patient, t.binary, "-test.run", "^"+t.name+"$", "-test.failfast", "-test.timeout", "0")
	process.Dir = t.folder
	process.Env = append(os.Environ(), append(environment, "GOMAXPROCS=2")...)
	// What a test starts ends with it.
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	process.Cancel = func() error { return syscall.Kill(-process.Process.Pid, syscall.SIGKILL) }
	process.WaitDelay = time.Second
	var output bytes.Buffer
	process.Stdout, process.Stderr = &output, &output
	err := process.Run()
	switch {
	case err == nil:
		return survived, output.Bytes()
	case patient.Err() != nil:
		return endless, output.Bytes()
	}
	return killed, output.Bytes()
}

// verdicts tries every mutant on the tests that meet it.
func (t *trial) verdicts() []fate {
	all := make([]fate, len(t.mutants))
	slots := make(chan struct{}, runtime.NumCPU())
	var group sync.WaitGroup
	for n := range t.mutants {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			for _, one := range t.tests {
				if !one.meets[n] {
					continue
				}
				if all[n], _ = one.run([]string{"MUTATEGO_MUTANT=" + strconv.Itoa(n)}, 10*one.takes+patience); all[n] != survived {
					return
				}
			}
		})
	}
	group.Wait()
	return all
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"cozy-kubevirt/hack/internal/render"
)

// task is a mutant on its way to a worker process.
type task struct {
	Dir, Suites, File, Data string
}

// verdict is what became of a mutant. One of the first three is set.
type verdict struct {
	// Killer is the case that notices the change.
	Killer string `json:"killer,omitempty"`
	// Equivalent is the reason why there is nothing to notice.
	Equivalent string `json:"equivalent,omitempty"`
	// Witness is an input that shows the change, which no case notices.
	Witness string `json:"witness,omitempty"`
	// Unparsable is set where the killer is Helm itself, which cannot even read the chart.
	Unparsable bool `json:"unparsable,omitempty"`
	// Error is set where the worker could not do its work.
	Error string `json:"error,omitempty"`
}

// workerVariable makes this program a worker.
const workerVariable = "MUTATE_WORKER"

// work reads tasks and writes verdicts, one JSON value after the other.
func work(in io.Reader, out io.Writer) error {
	var w *worker
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var t task
		if err := decoder.Decode(&t); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var v verdict
		var err error
		if w == nil {
			w, err = newWorker(t.Dir, t.Suites)
		}
		if err == nil {
			v = w.verdict(t.File, []byte(t.Data))
		}
		if err != nil {
			v = verdict{Error: err.Error()}
		}
		if err := encoder.Encode(v); err != nil {
			return err
		}
	}
}

type worker struct {
	chart *render.Chart
	cases []unitProbe
}

// unitProbe is a case with its input.
type unitProbe struct {
	*unitCase
	probe
}

func newWorker(dir, suites string) (*worker, error) {
	chart, err := render.Open(dir)
	if err != nil {
		return nil, err
	}
	cases, err := loadCases(dir, chart.Helm().Name(), suites)
	if err != nil {
		return nil, err
	}
	w := &worker{chart: chart}
	marked := marked(chart)
	for _, c := range cases {
		p, err := c.probe()
		if err == nil {
			err = p.see(chart, marked)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name(), err)
		}
		w.cases = append(w.cases, unitProbe{c, p})
	}
	return w, nil
}

// verdict says which case kills a mutant. It is empty if none does, except where Helm shows why.
func (w *worker) verdict(file string, data []byte) verdict {
	changed, err := w.chart.With(file, data)
	if err != nil {
		return verdict{Killer: "Helm: " + firstLine(err.Error()), Unparsable: true}
	}
	if strings.HasPrefix(file, "templates/") {
		if _, err := parsed(string(data)); err != nil {
			return verdict{Killer: "Helm: " + firstLine(err.Error()), Unparsable: true}
		}
		if sameTree(w.chart.Data(file), data) {
			return verdict{Equivalent: "the same template once parsed: only a comment, or blanks that are trimmed"}
		}
	}
	lists := changedLists(file, w.chart.Data(file), data)
	witness := ""
	for i, c := range w.cases {
		// A case whose input is treated as before has nothing to notice.
		if !c.reach.runs(lists) && !c.opaque() {
			continue
		}
		difference := c.difference(file, changed)
		if difference == "" && !c.opaque() {
			continue
		}
		if c.run(changed) != nil {
			// The next mutant stands beside this one, and often falls to the same case.
			copy(w.cases[1:i+1], w.cases[:i])
			w.cases[0] = c
			return verdict{Killer: c.unitCase.name()}
		}
		if witness == "" && difference != "" && !strings.HasPrefix(difference, otherWords) {
			witness = c.probe.name + ": " + difference
		}
	}
	return verdict{Witness: witness}
}

// dispatch hands mutants to worker processes, and calls done once for each.
func dispatch(dir, suites string, workers int, all []mutant, done func(int, verdict)) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	next := make(chan int)
	stop := make(chan struct{})
	var once sync.Once
	var failure error
	fail := func(err error) { once.Do(func() { failure = err; close(stop) }) }
	var lock sync.Mutex
	var group sync.WaitGroup
	for range min(workers, len(all)) {
		group.Go(func() {
			if err := feed(self, dir, suites, all, next, func(i int, v verdict) {
				lock.Lock()
				defer lock.Unlock()
				done(i, v)
			}); err != nil {
				fail(err)
			}
		})
	}
feeding:
	for i := range all {
		select {
		case next <- i:
		case <-stop:
			break feeding
		}
	}
	close(next)
	group.Wait()
	return failure
}

// feed runs one worker process until there are no more mutants.
func feed(self, dir, suites string, all []mutant, next <-chan int, done func(int, verdict)) (failure error) {
	var stderr strings.Builder
	process := exec.Command(self)
	process.Env = append(os.Environ(), workerVariable+"=1", "GOMAXPROCS=1", "GOGC=800")
	process.Stderr = &stderr
	in, err := process.StdinPipe()
	if err != nil {
		return err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return err
	}
	defer func() {
		_ = in.Close() // ends the process
		if err := process.Wait(); err != nil && failure == nil {
			failure = fmt.Errorf("a worker ended: %w\n%s", err, stderr.String())
		}
	}()
	encoder, decoder := json.NewEncoder(in), json.NewDecoder(out)
	for i := range next {
		var v verdict
		if err := encoder.Encode(task{dir, suites, all[i].File, all[i].data}); err != nil {
			return fmt.Errorf("%s:%d: a worker ended: %w", all[i].File, all[i].Line, err)
		}
		if err := decoder.Decode(&v); err != nil {
			return fmt.Errorf("%s:%d: a worker gave no verdict: %w\n%s", all[i].File, all[i].Line, err, stderr.String())
		}
		if v.Error != "" {
			return errors.New(v.Error)
		}
		done(i, v)
	}
	return nil
}

package command

import (
	"io"
	"time"

	"github.com/briandowns/spinner"
)

// waiting shows on a terminal that something is being read, and nothing elsewhere.
type waiting struct{ spinner *spinner.Spinner }

func startSpinner(w io.Writer) waiting {
	if !isTerminal(w) {
		return waiting{}
	}
	s := spinner.New(spinner.CharSets[14], 100*time.Millisecond, spinner.WithWriter(w))
	s.Start()
	return waiting{s}
}

func (w waiting) say(what string) {
	if w.spinner == nil {
		return
	}
	w.spinner.Lock()
	defer w.spinner.Unlock()
	w.spinner.Suffix = " " + what
}

func (w waiting) stop() {
	if w.spinner != nil {
		w.spinner.Stop()
	}
}

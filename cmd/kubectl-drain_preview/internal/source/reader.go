package source

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// This file reads the objects that a splitter hands on, on all processors.

type reader struct {
	splitter
	batches chan *batch
	batch   *batch
	spare   sync.Pool // of batches that have been read
	running sync.WaitGroup
	workers []worker
}

type worker struct {
	objects Objects
	failed  place // of the first that could not be read
	err     error
	nested  splitter
	is      *jsontext.Decoder
	unsaid  []item // those that do not say what they are
}

// batch is what is handed to a worker at once. Its memory is used again.
type batch struct {
	items []item
	text  []byte
}

// batchSize is how many bytes of text a batch has.
const batchSize = 512 << 10

func newReader() *reader {
	r := &reader{batches: make(chan *batch, runtime.GOMAXPROCS(0)), workers: make([]worker, runtime.GOMAXPROCS(0))}
	r.splitter = splitter{hand: r.add, listed: map[Kind]bool{}}
	for i := range r.workers {
		w := &r.workers[i]
		w.is = jsontext.NewDecoder(bytes.NewReader(nil), asKubernetes)
		w.nested = splitter{hand: w.read, listed: map[Kind]bool{}}
		r.running.Go(func() {
			for b := range r.batches {
				for _, one := range b.items {
					w.read(one)
				}
				b.items, b.text = b.items[:0], b.text[:0]
				r.spare.Put(b)
			}
		})
	}
	return r
}

func (r *reader) add(i item) {
	if r.batch != nil && len(r.batch.text)+len(i.text) > cap(r.batch.text) {
		r.flush()
	}
	if r.batch == nil {
		r.batch, _ = r.spare.Get().(*batch)
	}
	if r.batch == nil || cap(r.batch.text) < len(i.text) {
		r.batch = &batch{text: make([]byte, 0, max(batchSize, len(i.text)))}
	}
	from := len(r.batch.text)
	r.batch.text = append(r.batch.text, i.text...)
	i.text = r.batch.text[from:len(r.batch.text):len(r.batch.text)]
	r.batch.items = append(r.batch.items, i)
}

func (r *reader) flush() {
	if r.batch != nil {
		r.batches <- r.batch
		r.batch = nil
	}
}

// finish waits for the workers. The earliest object that could not be read is the error.
func (r *reader) finish() (*Objects, error) {
	r.flush()
	close(r.batches)
	r.running.Wait()
	all := &Objects{listed: r.listed}
	var first *worker
	for i := range r.workers {
		w := &r.workers[i]
		w.readUnsaid()
		all.merge(&w.objects)
		for kind := range w.nested.listed {
			all.listed[kind] = true
		}
		if w.err != nil && (first == nil || w.failed.before(first.failed)) {
			first = w
		}
	}
	if first != nil {
		return nil, misplaced{first.failed, first.err}
	}
	all.settle()
	return all, nil
}

func (w *worker) read(i item) {
	is, err := w.whatIs(i.text)
	switch {
	case w.err != nil:
	case err != nil:
		w.fail(i.place, err)
	case is.kind == "":
		i.text = bytes.Clone(i.text)
		w.unsaid = append(w.unsaid, i)
	case strings.HasSuffix(is.kind, "List") && len(i.items) > 0:
		in := jsontext.NewDecoder(bytes.NewReader(bytes.Clone(i.text)), asKubernetes)
		if err := w.nested.object(in, i.place, &what{}); err != nil {
			w.fail(i.place, err)
		}
	default:
		w.fail(i.place, w.objects.read(is, i.text))
	}
}

// readUnsaid reads the items that are what their list says.
func (w *worker) readUnsaid() {
	for _, i := range w.unsaid {
		is := i.list.item()
		switch {
		case w.err != nil && !i.place.before(w.failed):
		case is.kind == "":
			w.fail(i.place, fmt.Errorf("it has no kind; expected an object of Kubernetes, as kubectl get -o json prints"))
		default:
			w.fail(i.place, w.objects.read(is, i.text))
		}
	}
}

func (w *worker) fail(at place, err error) {
	if known, isKnown := err.(misplaced); isKnown {
		at, err = known.place, known.err
	}
	if err != nil && (w.err == nil || at.before(w.failed)) {
		w.failed, w.err = at, err
	}
}

func (o *Objects) read(is what, text []byte) error {
	k, err := kindOf(is.apiVersion, is.kind)
	if err != nil {
		return err
	}
	if k == nil {
		o.others++
		return nil
	}
	return k.add(o, text)
}

// whatIs reads apiVersion and kind, which kubectl prints first, and no further.
func (w *worker) whatIs(text []byte) (is what, err error) {
	w.is.Reset(bytes.NewBuffer(text), asKubernetes)
	if _, err := w.is.ReadToken(); err != nil {
		return is, err
	}
	for w.is.PeekKind() != '}' && (is.apiVersion == "" || is.kind == "") {
		name, err := w.is.ReadToken()
		if err != nil {
			return is, err
		}
		var into *string
		switch name.String() {
		case "apiVersion":
			into = &is.apiVersion
		case "kind":
			into = &is.kind
		}
		if into == nil || w.is.PeekKind() != '"' {
			if err := w.is.SkipValue(); err != nil {
				return is, err
			}
			continue
		}
		value, err := w.is.ReadToken()
		if err != nil {
			return is, err
		}
		*into = value.String()
	}
	return is, nil
}

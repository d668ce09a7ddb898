package source

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// This file reads a dump: what kubectl get prints of the kinds that a preview needs, in YAML or JSON, also gzipped.

// gzipped is how a gzip file begins (RFC 1952, 2.3.1).
var gzipped = []byte{0x1f, 0x8b}

// Dump reads a dump. Errors name the document, and the item of a list, that they are about, and say what was expected.
// A kind of which the dump has no object is a gap if no cluster is without it.
func Dump(r io.Reader) (*Objects, error) {
	buffered := bufio.NewReaderSize(r, 1<<20)
	if start, _ := buffered.Peek(len(gzipped)); bytes.Equal(start, gzipped) {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("not a gzip file after all: %w", err)
		}
		buffered = bufio.NewReaderSize(unzipped, 1<<20)
	}
	objects, err := parse(buffered)
	if err != nil {
		return nil, err
	}
	objects.FromDump = true
	objects.Gaps = map[Kind]string{}
	for kind, n := range map[Kind]int{KubeVirts: len(objects.KubeVirts), Nodes: len(objects.Nodes), Pods: len(objects.Pods)} {
		if n == 0 {
			objects.Gaps[kind] = fmt.Sprintf("the dump has no %s", kind)
		}
	}
	return objects, nil
}

// worker parses some of the pieces.
type worker struct {
	objects Objects
	failed  piece // the first piece that could not be read
	err     error
}

// batch is how many pieces are handed to a worker at once: a channel is slow beside a small object.
const batch = 64

// parse reads all objects of a dump, on all processors.
func parse(r *bufio.Reader) (*Objects, error) {
	pieces := make(chan []piece, 2*runtime.GOMAXPROCS(0))
	workers := make([]worker, runtime.GOMAXPROCS(0))
	var running sync.WaitGroup
	for i := range workers {
		running.Go(func() {
			for some := range pieces {
				for _, p := range some {
					workers[i].read(p)
				}
			}
		})
	}
	var some []piece
	err := split(r, func(p piece) {
		if some = append(some, p); len(some) == batch {
			pieces <- some
			some = nil
		}
	})
	pieces <- some
	close(pieces)
	running.Wait()

	all := &Objects{}
	var first *worker
	for i := range workers {
		all.merge(&workers[i].objects)
		if workers[i].err != nil && (first == nil || workers[i].failed.before(first.failed)) {
			first = &workers[i]
		}
	}
	if first != nil {
		return nil, fmt.Errorf("%s: %w; expected what kubectl get -o yaml prints of %s", first.failed, first.err, names())
	}
	return all, err
}

func (p piece) before(other piece) bool {
	return p.document < other.document || p.document == other.document && p.item < other.item
}

func (w *worker) read(p piece) {
	if w.err != nil {
		return
	}
	if err := w.objects.read(p.text); err != nil {
		w.failed, w.err = p, err
	}
}

func (o *Objects) read(text []byte) error {
	apiVersion, name, err := typeOf(text)
	if err != nil {
		return err
	}
	kind, err := kindOf(apiVersion, name)
	if err != nil {
		return err
	}
	return kind.add(o, func(object any) error { return unmarshal(text, kind.keep, object) })
}

// typeOf reads what an object says that it is.
func typeOf(text []byte) (apiVersion, kind string, err error) {
	apiVersion, kind = valueOf(text, "apiVersion"), valueOf(text, "kind")
	if kind != "" {
		return apiVersion, kind, nil
	}
	var meta metav1.TypeMeta
	if err := unmarshal(text, nil, &meta); err != nil {
		return "", "", err
	}
	if meta.Kind == "" {
		return "", "", fmt.Errorf("has no kind")
	}
	return meta.APIVersion, meta.Kind, nil
}

// unmarshal reads JSON, or YAML of which only some fields are needed.
func unmarshal(text []byte, keep fields, object any) error {
	if bytes.HasPrefix(text, []byte("{")) {
		return json.Unmarshal(text, object)
	}
	if kept, ok := readBlock(text, keep); ok {
		return json.Unmarshal(kept, object)
	}
	return yaml.Unmarshal(text, object)
}

func names() string {
	text := ""
	for i, kind := range kinds {
		if i > 0 {
			text += ","
		}
		text += string(kind.name)
	}
	return text
}

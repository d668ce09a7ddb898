package source

import (
	"reflect"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// This file keeps what many objects of a cluster have in common only once: requests, selectors, tolerations.

// The most different values of a type that are kept for later, and the longest, as text: what does not repeat is not worth it.
const (
	mostShared    = 4096
	longestShared = 4096 // bytes
)

// shared is a value that other objects may have as well, so that nobody may change it.
type shared[T any] struct{ value T }

func (s *shared[T]) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	text, err := in.ReadValue()
	if err != nil {
		return err
	}
	of, _ := tables.LoadOrStore(reflect.TypeFor[T](), &table[T]{known: map[string]T{}})
	s.value, err = of.(*table[T]).decode(text)
	return err
}

// tables are by the type of their values.
var tables sync.Map

// table is the values of a type by their JSON.
type table[T any] struct {
	mu    sync.Mutex
	known map[string]T
}

func (t *table[T]) decode(text []byte) (value T, err error) {
	t.mu.Lock()
	known, is := t.known[string(text)]
	t.mu.Unlock()
	if is {
		return known, nil
	}
	if err = json.Unmarshal(text, &value, asKubernetes); err != nil || len(text) > longestShared {
		return value, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) < mostShared {
		t.known[string(text)] = value
	}
	return value, nil
}

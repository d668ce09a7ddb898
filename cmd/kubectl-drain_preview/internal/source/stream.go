package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// This file takes JSON apart into its objects, Lists and Lists in Lists alike, without reading them.

// place says where in the input an object is: the document, and in it the items on the way, all counted from 1.
type place struct {
	file     string
	document int
	items    []int
}

func (p place) String() string {
	text := fmt.Sprintf("document %d", p.document)
	for _, item := range p.items {
		text += fmt.Sprintf(", item %d", item)
	}
	if p.file != "" {
		text = p.file + ": " + text
	}
	return text
}

func (p place) next() place {
	p.document++
	return p
}

func (p place) item(n int) place {
	p.items = append(slices.Clone(p.items), n)
	return p
}

func (p place) before(other place) bool {
	if p.file != other.file {
		return false // files are read one after the other, so the first failure that is met is the first
	}
	return slices.Compare(append([]int{p.document}, p.items...), append([]int{other.document}, other.items...)) < 0
}

// misplaced is an error that knows where it belongs.
type misplaced struct {
	place
	err error
}

func (m misplaced) Error() string { return m.place.String() + ": " + m.err.Error() }

func (p place) fault(format string, args ...any) error {
	return misplaced{p, fmt.Errorf(format, args...)}
}

// what an object says that it is.
type what struct{ apiVersion, kind string }

// item is what the items of a list are, if they do not say so: kubectl get --raw prints PodList, and pods without a kind.
func (is what) item() what {
	if is.kind == "List" {
		return what{}
	}
	return what{is.apiVersion, strings.TrimSuffix(is.kind, "List")}
}

// item is the text of an object. It only keeps until the next is handed on.
type item struct {
	place
	text []byte
	list *what // of which it is an item; complete once all has been taken apart
}

// splitter hands objects on.
type splitter struct {
	hand   func(item)
	listed map[Kind]bool // kinds of which there was a list of their own, be it an empty one
}

// document reads one document, an object or a list, and leaves the decoder behind it.
func (s *splitter) document(in *jsontext.Decoder, at place) error {
	err := s.value(in, at, &what{})
	var known misplaced
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return at.fault("it ends in the middle")
	}
	return misplaced{at, err}
}

// value reads an object that may be a list.
func (s *splitter) value(in *jsontext.Decoder, at place, list *what) error {
	if kind := in.PeekKind(); kind != '{' {
		found, err := in.ReadValue()
		if err != nil {
			return err
		}
		return at.fault("%s is no object; expected one of Kubernetes, or a List of them", shortened(found))
	}
	if len(at.items) > 0 {
		text, err := in.ReadValue()
		if err == nil {
			s.hand(item{at, text, list})
		}
		return err
	}
	return s.object(in, at, list)
}

// object reads an object of which it is not known yet whether it is a list.
func (s *splitter) object(in *jsontext.Decoder, at place, list *what) error {
	if _, err := in.ReadToken(); err != nil {
		return err
	}
	is, isList := &what{}, false
	kept := bytes.NewBufferString("{")
	for in.PeekKind() != '}' {
		token, err := in.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		if name == "items" && in.PeekKind() != '{' {
			isList = true
			if err := s.items(in, at, is); err != nil {
				return err
			}
			continue
		}
		value, err := in.ReadValue()
		if err != nil {
			return err
		}
		switch name {
		case "apiVersion":
			is.apiVersion = unquoted(value)
		case "kind":
			is.kind = unquoted(value)
		}
		if kept.Len() > 1 {
			kept.WriteByte(',')
		}
		quoted, err := jsontext.AppendQuote(nil, name)
		if err != nil {
			return err
		}
		kept.Write(quoted)
		kept.WriteByte(':')
		kept.Write(value)
	}
	if _, err := in.ReadToken(); err != nil {
		return err
	}
	if !isList {
		kept.WriteByte('}')
		s.hand(item{at, kept.Bytes(), list})
		return nil
	}
	if !strings.HasSuffix(is.kind, "List") {
		return at.fault("it has items, but its kind is %q; expected a List, as kubectl get -o json prints", is.kind)
	}
	if k, _ := kindOf(is.apiVersion, strings.TrimSuffix(is.kind, "List")); k != nil {
		s.listed[k.name] = true
	}
	return nil
}

// items reads the items of a list, null for none.
func (s *splitter) items(in *jsontext.Decoder, at place, list *what) error {
	if in.PeekKind() == 'n' {
		return in.SkipValue()
	}
	if in.PeekKind() != '[' {
		found, err := in.ReadValue()
		if err != nil {
			return err
		}
		return at.fault("its items are %s; expected a list", shortened(found))
	}
	if _, err := in.ReadToken(); err != nil {
		return err
	}
	for n := 1; in.PeekKind() != ']'; n++ {
		if err := s.value(in, at.item(n), list); err != nil {
			return err
		}
	}
	_, err := in.ReadToken()
	return err
}

func unquoted(value []byte) string {
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(text)
}

func shortened(value []byte) string {
	if len(value) > 40 {
		return string(value[:40]) + "…"
	}
	return string(value)
}

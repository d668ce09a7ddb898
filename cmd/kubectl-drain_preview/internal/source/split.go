package source

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// This file cuts a dump into its objects, without reading them: documents of YAML or JSON, one object or a list each.

// longestLine is far beyond what kubectl prints on one.
const longestLine = 64 << 20

// piece is the text of one object.
type piece struct {
	document, item int // counted from 1; item is 0 if the object is the whole document
	text           []byte
}

func (p piece) String() string {
	if p.item == 0 {
		return fmt.Sprintf("document %d", p.document)
	}
	return fmt.Sprintf("document %d, item %d", p.document, p.item)
}

// split hands every object of a dump on.
func split(r *bufio.Reader, emit func(piece)) error {
	for {
		first, err := r.Peek(1)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case bytes.ContainsAny(first, " \r\n\t"):
			_, _ = r.Discard(1)
		case first[0] == '{':
			return splitJSON(r, emit)
		default:
			return splitYAML(r, emit)
		}
	}
}

// yamlSplitter reads YAML line by line. In the block style that kubectl prints, the items of a list start with a dash in
// one column, and nothing else of theirs is as far to the left.
type yamlSplitter struct {
	emit     func(piece)
	document int
	item     int
	column   int    // of the items' dashes; -1 outside of a list
	head     []byte // the document without its items
	object   []byte // the item that is being read
}

func splitYAML(r io.Reader, emit func(piece)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<20), longestLine)
	s := &yamlSplitter{emit: emit, column: -1}
	for lines.Scan() {
		if err := s.line(lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("document %d: %w", s.document+1, err)
	}
	return s.endDocument()
}

func (s *yamlSplitter) line(line []byte) error {
	rest := bytes.TrimLeft(line, " ")
	column := len(line) - len(rest)
	switch {
	case column == 0 && (bytes.HasPrefix(line, []byte("---")) || bytes.Equal(line, []byte("..."))):
		return s.endDocument()
	case s.column >= 0 && bytes.HasPrefix(rest, []byte("- ")) && (s.item == 0 || column == s.column):
		s.endItem()
		s.item, s.column = s.item+1, column
		s.add(line)
		s.object[column] = ' ' // in place of the dash
		return nil
	case s.column >= 0 && (column > 0 || len(rest) == 0):
		s.add(line)
	case bytes.HasPrefix(line, []byte("items:")):
		s.column = 0
	default:
		s.endItem()
		s.column = -1
		s.head = append(append(s.head, line...), '\n')
	}
	return nil
}

// slab is how much memory is taken at once for the text of objects.
const slab = 1 << 20

// add adds a line to the item that is being read.
func (s *yamlSplitter) add(line []byte) {
	if cap(s.object)-len(s.object) <= len(line) {
		s.object = append(make([]byte, 0, slab+2*(len(s.object)+len(line))), s.object...)
	}
	s.object = append(append(s.object, line...), '\n')
}

func (s *yamlSplitter) endItem() {
	if end := len(s.object); end > 0 {
		s.emit(piece{s.document + 1, s.item, s.object[:end:end]})
		s.object = s.object[end:]
	}
}

func (s *yamlSplitter) endDocument() error {
	s.endItem()
	head, items := s.head, s.item
	isList := items > 0 || s.column >= 0 || bytes.Contains(head, []byte("\nkind: List\n"))
	s.head, s.item, s.column = nil, 0, -1
	if len(bytes.TrimSpace(withoutComments(head))) == 0 && items == 0 {
		return nil
	}
	s.document++
	whole := piece{document: s.document, text: head}
	if !isList {
		s.emit(whole)
		return nil
	}
	return whole.isList(valueOf(head, "kind"))
}

func withoutComments(text []byte) []byte {
	var rest []byte
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("#")) {
			rest = append(rest, line...)
		}
	}
	return rest
}

// isList says what is wrong with a document that has items.
func (p piece) isList(kind string) error {
	if !strings.HasSuffix(kind, "List") {
		return fmt.Errorf("%s has items, but its kind is %q; expected a List, as kubectl get -o yaml prints", p, kind)
	}
	return nil
}

// valueOf is a scalar of a mapping in block style, or "". The mapping's first line says in which column its keys are.
func valueOf(text []byte, key string) string {
	column := -1
	for line := range bytes.Lines(text) {
		rest := bytes.TrimLeft(line, " ")
		if column == -1 && len(bytes.TrimSpace(rest)) > 0 {
			column = len(line) - len(rest)
		}
		if len(line)-len(rest) == column && bytes.HasPrefix(rest, []byte(key+":")) {
			return strings.Trim(string(bytes.TrimSpace(rest[len(key)+1:])), `"'`)
		}
	}
	return ""
}

func splitJSON(r io.Reader, emit func(piece)) error {
	decoder := json.NewDecoder(r)
	for document := 1; ; document++ {
		opened, err := decoder.Token()
		switch {
		case err == io.EOF:
			return nil
		case err == nil && opened != json.Delim('{'):
			err = fmt.Errorf("%v is no object", opened)
		case err == nil:
			err = splitJSONDocument(decoder, document, emit)
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", document, err)
		}
	}
}

// splitJSONDocument reads on in a document that has been opened.
func splitJSONDocument(decoder *json.Decoder, document int, emit func(piece)) error {
	head, isList := map[string]json.RawMessage{}, false
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		if key == "items" {
			isList = true
			if err := splitJSONItems(decoder, document, emit); err != nil {
				return err
			}
			continue
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		head[fmt.Sprint(key)] = slices.Clone(value)
	}
	if _, err := decoder.Token(); err != nil {
		return err
	}
	whole := piece{document: document}
	if isList {
		return whole.isList(strings.Trim(string(head["kind"]), `"`))
	}
	var err error
	whole.text, err = json.Marshal(head)
	emit(whole)
	return err
}

func splitJSONItems(decoder *json.Decoder, document int, emit func(piece)) error {
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for item := 1; decoder.More(); item++ {
		var text json.RawMessage
		if err := decoder.Decode(&text); err != nil {
			return err
		}
		emit(piece{document, item, text})
	}
	_, err := decoder.Token()
	return err
}

package source

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json/jsontext"
	"sigs.k8s.io/yaml"
)

// This file reads dumps: what kubectl get prints of the kinds that a preview needs, in JSON or YAML, also gzipped.

// Dumps are where to read from, and how.
type Dumps struct {
	Files []string // "-" is standard input
	In    io.Reader
	// Complete says that Command made them: a kind of which they have no object has none in the cluster either.
	Complete bool
	// MaxUnpacked is how many bytes a gzipped file may unpack to.
	MaxUnpacked int64
}

// gzipped is how a gzip file begins (RFC 1952, 2.3.1).
var gzipped = []byte{0x1f, 0x8b}

// Read reads them all, and adds them up. Errors name the file, the document and the item that they are about.
func (d Dumps) Read() (*Objects, error) {
	r := newReader()
	var failed error
	for _, name := range d.Files {
		if failed = d.read(r, name); failed != nil {
			failed = inFile(name, failed)
			break
		}
	}
	objects, err := r.finish()
	if err == nil { // what a worker could not read comes before what could not be taken apart
		err = failed
	}
	if err != nil {
		return nil, err
	}
	objects.lackFromDump(d.Complete)
	return objects, nil
}

// inFile names the file of an error that does not.
func inFile(name string, err error) error {
	var known misplaced
	if errors.As(err, &known) && known.file != "" || errors.As(err, new(*os.PathError)) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

func (d Dumps) read(r *reader, name string) error {
	in := d.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	buffered := bufio.NewReaderSize(in, 1<<20)
	if start, _ := buffered.Peek(len(gzipped)); bytes.Equal(start, gzipped) {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return fmt.Errorf("not a gzip file after all: %w", err)
		}
		buffered = bufio.NewReaderSize(&bounded{unzipped, d.MaxUnpacked, d.MaxUnpacked}, 1<<20)
	}
	return r.documents(buffered, place{file: name})
}

// bounded ends in an error where it should have ended.
type bounded struct {
	io.Reader
	left, most int64
}

func (b *bounded) Read(into []byte) (int, error) {
	n, err := b.Reader.Read(into)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("it unpacks to more than %d bytes; raise --max-unpacked if it should", b.most)
	}
	return n, err
}

// documents reads all documents of a file, each as JSON or YAML.
func (r *reader) documents(in *bufio.Reader, at place) error {
	if bom, _ := in.Peek(3); bytes.Equal(bom, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3)
	}
	directives := ""
	for {
		first, err := firstByte(in)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case first == '{' || first == '[' || first == '"':
			if in, err = r.json(in, &at); err != nil {
				return err
			}
			continue
		}
		text, err := document(in)
		if err != nil && err != io.EOF {
			return at.next().fault("%w", err)
		}
		if head, isHead := directivesOf(text); isHead {
			directives += head
			continue
		}
		at = at.next()
		if directives != "" {
			text, directives = append([]byte(directives+"---\n"), text...), ""
		}
		read, err := yaml.YAMLToJSON(text)
		if err != nil {
			return at.fault("%w", err)
		}
		if err := r.document(jsontext.NewDecoder(bytes.NewReader(read), asKubernetes), at); err != nil {
			return err
		}
	}
}

// firstByte is the next byte that is no white space; what stands before it on its line is kept, as YAML needs it.
func firstByte(in *bufio.Reader) (byte, error) {
	for n := 1; ; n++ {
		read, err := in.Peek(n)
		if len(read) < n {
			if err == bufio.ErrBufferFull {
				return ' ', nil
			}
			return 0, err
		}
		switch c := read[n-1]; c {
		case ' ', '\t':
		case '\r', '\n':
			_, _ = in.Discard(n)
			n = 0
		default:
			return c, nil
		}
	}
}

// json reads documents of JSON for as long as there are some, and returns what follows.
func (r *reader) json(in *bufio.Reader, at *place) (*bufio.Reader, error) {
	decoder := jsontext.NewDecoder(in, asKubernetes)
	for {
		*at = at.next()
		if err := r.document(decoder, *at); err != nil {
			return nil, err
		}
		switch decoder.PeekKind() {
		case '{', '[', '"':
			continue
		}
		rest := bytes.Clone(decoder.UnreadBuffer())
		return bufio.NewReaderSize(io.MultiReader(bytes.NewReader(rest), in), 1<<20), nil
	}
}

// document reads up to the next line that ends a YAML document: no scalar can hold such a line (YAML 1.2.2, 9.1.2). What
// follows the dashes belongs to the document after them.
func document(in *bufio.Reader) ([]byte, error) {
	var text []byte
	for first := true; ; first = false {
		if !first || len(text) == 0 {
			if marker, _ := in.Peek(4); isMarker(marker, "---") && len(text) > 0 {
				return text, nil
			} else if isMarker(marker, "---") {
				_, _ = in.Discard(3)
			} else if isMarker(marker, "...") {
				_, err := in.ReadBytes('\n')
				return text, err
			}
		}
		line, err := in.ReadBytes('\n')
		text = append(text, line...)
		if err != nil {
			return text, err
		}
	}
}

func isMarker(line []byte, marker string) bool {
	return bytes.HasPrefix(line, []byte(marker)) && (len(line) == len(marker) || bytes.IndexByte([]byte(" \t\r\n"), line[len(marker)]) >= 0)
}

// directivesOf says whether a text is all comments and directives, and which directives the next document needs. Which
// release of YAML it is, is not asked: kubectl's reader knows one.
func directivesOf(text []byte) (directives string, isHead bool) {
	for line := range bytes.Lines(text) {
		rest := bytes.TrimSpace(line)
		switch {
		case len(rest) == 0 || rest[0] == '#' || bytes.HasPrefix(line, []byte("%YAML")):
		case line[0] == '%':
			directives += string(line)
		default:
			return "", false
		}
	}
	return directives, true
}

// The archive without what differs from run to run. Helm writes the time of packaging into it.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// reproducible is the content of a gzipped tar with every file dated epoch, with one mode and no owner, in the same order.
func reproducible(archive string, epoch time.Time) ([]byte, error) {
	content, err := os.ReadFile(archive)
	if err != nil {
		return nil, err
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	zipped.Extra, zipped.Comment = unzipped.Extra, unzipped.Comment // Helm knows its archives by them
	writer := tar.NewWriter(zipped)
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		clean := &tar.Header{Name: header.Name, Typeflag: header.Typeflag, Size: header.Size, Mode: 0o644, ModTime: epoch, Format: tar.FormatUSTAR}
		if err := writer.WriteHeader(clean); err != nil {
			return nil, fmt.Errorf("%s of %s: %w", header.Name, epoch.Format(time.RFC3339), err)
		}
		if _, err := io.Copy(writer, reader); err != nil {
			return nil, err
		}
	}
	err = errors.Join(writer.Close(), zipped.Close())
	return out.Bytes(), err
}

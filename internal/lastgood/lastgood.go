// Package lastgood keeps what a program has read last from a node in a file, from which it starts while the servers cannot be reached.
package lastgood

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// ErrBadFile is returned for a file that is damaged, half written, of another kind or of another path.
var ErrBadFile = errors.New("not a file with the last good value")

// Kind is a kind of files.
type Kind struct {
	Name string
	Most int // bytes of a file
}

// Content is what a file keeps: the last good value of one path.
type Content struct {
	Path    string    `json:"path"` // with the client's root
	Version int64     `json:"version"`
	Written time.Time `json:"written"`
	Data    []byte    `json:"-"`
}

// magic begins the first line, which has the checksum of the rest. The second line is the JSON of Content, the rest the value's bytes.
func (k Kind) magic() string { return "lockstep " + k.Name + " 1 " }

func (k Kind) encode(c Content) ([]byte, error) {
	head, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	rest := append(append(head, '\n'), c.Data...)
	return append(fmt.Appendf(nil, "%s%s\n", k.magic(), checksum(rest)), rest...), nil
}

func checksum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Decode reads a file's bytes. The error wraps ErrBadFile.
func (k Kind) Decode(b []byte, path string) (c Content, err error) {
	first, rest, complete := bytes.Cut(b, []byte("\n"))
	sum, isFile := bytes.CutPrefix(first, []byte(k.magic()))
	if !complete || !isFile {
		return c, fmt.Errorf("%w: it does not begin as one", ErrBadFile)
	}
	if string(sum) != checksum(rest) {
		return c, fmt.Errorf("%w: its checksum is wrong", ErrBadFile)
	}
	head, data, complete := bytes.Cut(rest, []byte("\n"))
	if !complete {
		return c, fmt.Errorf("%w: it has no value", ErrBadFile)
	}
	if err := json.Unmarshal(head, &c); err != nil {
		return c, fmt.Errorf("%w: %w", ErrBadFile, err)
	}
	if c.Path != path {
		return c, fmt.Errorf("%w: it is of %q and not of %q", ErrBadFile, c.Path, path)
	}
	c.Data = data
	return c, nil
}

// Read reads the file; a missing one is os.ErrNotExist.
func (k Kind) Read(name, path string) (Content, error) {
	f, err := os.Open(name)
	if err != nil {
		return Content{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(k.Most)+1))
	if err != nil {
		return Content{}, err
	}
	if len(b) > k.Most {
		return Content{}, fmt.Errorf("%w: it has more than %d bytes", ErrBadFile, k.Most)
	}
	return k.Decode(b, path)
}

// Write replaces the file, which gets the mode 0600, so that a crash leaves the former one or this one.
func (k Kind) Write(name string, c Content) (err error) {
	b, err := k.encode(c)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.tmp") // has the mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	_ = dir.Sync() // some file systems cannot; then the rename lasts a little later
	return nil
}

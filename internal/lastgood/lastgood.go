// Package lastgood stores the last good value that a program has read from a node in a file. The
// program starts with that value while it cannot reach the servers.
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
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/failure"
)

// ErrBadFile is returned for a file that is damaged, incomplete, of another kind or of another
// path.
var ErrBadFile = failure.KindOf(failure.ErrBadRecord, "not a file with the last good value")

// Kind is a kind of file.
type Kind struct {
	Name     string
	MaxBytes int // the largest size of a file
}

// Content is what a file stores: the last good value of one path.
type Content struct {
	Path    string    `json:"path"` // with the client's root
	Version int64     `json:"version"`
	Written time.Time `json:"written"`
	Data    []byte    `json:"-"`
}

// magic begins the first line. The rest of this line is the checksum of all that follows: a line
// with the JSON of Content, and then the bytes of the value.
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

// Decode decodes the bytes of a file with the value of path. The error wraps ErrBadFile.
func (k Kind) Decode(b []byte, path string) (c Content, err error) {
	first, rest, complete := bytes.Cut(b, []byte("\n"))
	sum, isFile := bytes.CutPrefix(first, []byte(k.magic()))
	if !complete || !isFile {
		return c, fmt.Errorf("%w: its first line is not %q with a checksum", ErrBadFile, k.magic())
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
		return c, fmt.Errorf("%w: it has the value of %q, not of %q", ErrBadFile, c.Path, path)
	}
	c.Data = data
	return c, nil
}

// Read reads a file with the value of path. If the file is missing, the error wraps os.ErrNotExist.
// Read first deletes what crashes have left of files that were not written to their end.
func (k Kind) Read(name, path string) (Content, error) {
	deleteLeftovers(name)
	if err := checkRegular(name); err != nil {
		return Content{}, err
	}
	f, err := os.Open(name)
	if err != nil {
		return Content{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(k.MaxBytes)+1))
	if err != nil {
		return Content{}, err
	}
	if len(b) > k.MaxBytes {
		return Content{}, fmt.Errorf("%w: it has more than %d bytes", ErrBadFile, k.MaxBytes)
	}
	return k.Decode(b, path)
}

// checkRegular refuses what is not a file: a named pipe without a writer would not open, and a
// rename would replace a device.
func checkRegular(name string) error {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is not a regular file (%v)", ErrBadFile, name, info.Mode().Type())
	}
	return err
}

const (
	unfinished  = ".tmp"    // ends the name of a file that Write has not written to its end
	leftoverAge = time.Hour // another process may still write a younger one
)

// deleteLeftovers deletes the files that Write has left beside a file when its process ended
// meanwhile.
func deleteLeftovers(name string) {
	entries, _ := os.ReadDir(filepath.Dir(name))
	for _, e := range entries {
		random, isOurs := strings.CutPrefix(e.Name(), filepath.Base(name)+".")
		random, isUnfinished := strings.CutSuffix(random, unfinished)
		if _, err := strconv.ParseUint(random, 10, 64); err != nil || !isOurs || !isUnfinished {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > leftoverAge {
			_ = os.Remove(filepath.Join(filepath.Dir(name), e.Name()))
		}
	}
}

// Write replaces the file atomically: after a crash, the former file or the new one is there. The
// file has the mode 0600. Write refuses a content that Read would refuse because of MaxBytes; the
// former file stays then.
func (k Kind) Write(name string, c Content) (err error) {
	b, err := k.encode(c)
	if err != nil {
		return err
	}
	if len(b) > k.MaxBytes {
		return fmt.Errorf("the file would have %d bytes, of at most %d", len(b), k.MaxBytes)
	}
	if err := checkRegular(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*"+unfinished) // with the mode 0600
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
	_ = dir.Sync() // some file systems cannot sync a directory; there a crash may undo the rename
	return nil
}

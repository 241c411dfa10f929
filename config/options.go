package config

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/stored"
)

// Option changes how a Value works. Its error is returned by every use.
type Option[T any] func(*valueOptions[T]) error

type valueOptions[T any] struct {
	validate   func(T) error
	file       string
	fallback   T
	hasDefault bool
	quiet      time.Duration // of a Tree
}

// WithDefault sets the value that is shown while the node does not exist, and until the servers are
// reached if there is no file. WithValidate does not check it.
func WithDefault[T any](value T) Option[T] {
	return func(o *valueOptions[T]) error {
		o.fallback, o.hasDefault = value, true
		return nil
	}
}

// WithValidate refuses the values for which validate returns an error: in Set before they are
// written, and in each reader before they are shown. validate must not block, and several
// goroutines may call it at once.
func WithValidate[T any](validate func(T) error) Option[T] {
	return func(o *valueOptions[T]) error {
		if validate == nil {
			return errors.New("WithValidate: the function is nil")
		}
		o.validate = validate
		return nil
	}
}

// WithFile keeps the last good value in a file, which New reads: so a program starts with it while
// the servers cannot be reached. Its directory must exist. Each good value of the servers replaces
// the file atomically (written beside it, synced, renamed), with the mode 0600. A file that is
// damaged or of another path is ignored with a warning. Each value needs a file of its own.
func WithFile[T any](name string) Option[T] {
	return func(o *valueOptions[T]) error {
		if name == "" {
			return errors.New("WithFile: the name is empty")
		}
		var err error
		o.file, err = filepath.Abs(name)
		return err
	}
}

// pendingWrite is one call of Set or Rollback.
type pendingWrite struct {
	data        []byte
	note        string
	conditional bool
	wanted      int64 // the version that the value must have, if conditional

	id      string
	unknown bool   // a try was sent, and its reply was lost
	newest  string // the newest record before the first such try

	hasForeign  bool // the latest try has a record of a value that another program wrote
	omitForeign bool // without its data: the transaction was too large with them
}

func newWrite(data []byte, opts []SetOption) (*pendingWrite, error) {
	w, err := recipe.ApplyOptions(pendingWrite{data: data, id: uuid.NewString()}, opts)
	if err != nil {
		return nil, err
	}
	return &w, nil
}

// SetOption changes one Set or Rollback.
type SetOption func(*pendingWrite) error

// WithExpectedVersion makes Set write only over this version, which a Snapshot or a Record has. 0
// stands for a missing node. If the node has another version, Set returns a *ConflictError.
func WithExpectedVersion(version int64) SetOption {
	return func(w *pendingWrite) error {
		if version < 0 {
			return errors.New("WithExpectedVersion: a version is 0 or more")
		}
		w.wanted, w.conditional = version, true
		return nil
	}
}

// WithNote stores a text in the value's record, such as the reason for the change. U+FFFD replaces
// bytes that are not UTF-8.
func WithNote(text string) SetOption {
	return func(w *pendingWrite) error {
		w.note = stored.Text(text)
		return nil
	}
}

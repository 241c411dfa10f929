package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/lastgood"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/usercode"
)

// Source says where a value comes from.
type Source string

// The sources of a value.
const (
	FromDefault Source = "default" // WithDefault, or the zero value
	FromFile    Source = "file"    // WithFile: no value of the servers was accepted yet
	FromServers Source = "servers"
)

// Snapshot is a value and where it comes from. All readers share the value: do not modify what it
// refers to.
type Snapshot[T any] struct {
	// Value is the value.
	Value T
	// Version is the transaction that wrote it (mzxid), which rises with each change, also when the
	// node is deleted and created again. It is 0 for the default.
	Version int64
	// Source says where the value comes from.
	Source Source
	// Since is the time of the write, by the clock of the ensemble's leader. It is zero for the
	// default.
	Since time.Time
}

// Value is a configuration value in one node; see New. It is safe for concurrent use.
type Value[T any] struct {
	store  valueStore
	source func(context.Context) iter.Seq2[framework.NodeValue, error] // of the node's values
	// the nodes of a tree change without its keys: the same bytes are no change
	ofKeys bool
	codec  codec.Codec[T]
	opts   valueOptions[T]
	tel    telemetry
	err    error

	current atomic.Pointer[Snapshot[T]]

	mu      sync.Mutex
	seen    bool                // the servers have shown a value, or that there is no node
	taken   framework.NodeValue // the newest value that the servers have shown, accepted or refused
	refused error               // why the newest value is not the current one

	fileMu sync.Mutex
	inFile int64 // the version that was last written to the file
}

// New returns the value at a path. It reads the file of WithFile, and does not wait for ZooKeeper.
// Without Run or a loop over Follow, it does not follow the node.
func New[T any](client *framework.Client, path string, values codec.Codec[T], opts ...Option[T]) *Value[T] {
	o, err := recipe.ApplyOptions(valueOptions[T]{}, opts)
	if err == nil {
		err = recipe.CheckClientAndPath(client, path, "a value")
	}
	v := newValue(client, path, values, o, err)
	v.source = func(ctx context.Context) iter.Seq2[framework.NodeValue, error] { return client.Follow(ctx, path) }
	return v
}

// newValue returns a value that still needs a source of node values. err is the error of wrong
// arguments, or nil.
func newValue[T any](client *framework.Client, path string, values codec.Codec[T], o valueOptions[T],
	err error) *Value[T] {
	v := &Value[T]{store: valueStore{client, path}, codec: values, opts: o, err: err}
	v.current.Store(&Snapshot[T]{Value: v.opts.fallback, Source: FromDefault})
	if v.err == nil && values == nil {
		v.err = errors.New("the codec is nil")
	}
	if v.err != nil {
		v.err = failure.Wrap("config", path, v.err)
		return v
	}
	v.tel = newTelemetry(client)
	v.readFile()
	return v
}

// Validate returns what is wrong with the arguments of New, as every call but Get, Current and
// Refused does, or nil. It sends no request.
func (v *Value[T]) Validate() error { return v.err }

// Get returns the current value. It is an atomic load, without blocking or allocation. All callers
// share the maps, slices and pointers in the value: do not modify them.
func (v *Value[T]) Get() T { return v.current.Load().Value }

// Current returns the current value, its version and its source. It is an atomic load.
func (v *Value[T]) Current() Snapshot[T] { return *v.current.Load() }

// Refused returns why the servers' newest value is not the current one, or nil: it wraps
// framework.ErrBadValue, or ErrNoValue if there is no node.
func (v *Value[T]) Refused() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.refused
}

// Run keeps the value current until ctx ends, and returns nil then. It goes on after errors that
// may pass, such as a permission that is missing, with pauses. The error is that of Err, or wraps
// framework.ErrClosed or framework.ErrAuthFailed.
func (v *Value[T]) Run(ctx context.Context) error {
	if v.err != nil {
		return v.err
	}
	pauses := recipe.NewBackoff(v.store.client)
	for {
		err := v.followNode(ctx, func() bool { pauses.Reset(); return true })
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, framework.ErrClosed), errors.Is(err, framework.ErrAuthFailed):
			return err
		}
		v.store.client.Logger().Warn("a configuration value cannot be read; the last good one stays", "path",
			v.store.path, "error", err)
		if pauses.Pause(ctx) != nil {
			return nil
		}
	}
}

// Follow yields the current value, which may be of the file or the default, and then each one that
// follows; a slow reader skips to the latest. It keeps the value current as Run does. Refused
// values are not yielded. It ends silently when ctx ends, and yields any other error last: that of
// Err, or what Client.Follow ends with.
func (v *Value[T]) Follow(ctx context.Context) iter.Seq2[Snapshot[T], error] {
	return func(yield func(Snapshot[T], error) bool) {
		if v.err != nil {
			yield(Snapshot[T]{}, v.err)
			return
		}
		last := v.current.Load()
		if ctx.Err() != nil || !yield(*last, nil) {
			return
		}
		left := false
		err := v.followNode(ctx, func() bool {
			if now := v.current.Load(); now != last {
				last = now
				left = !yield(*now, nil)
			}
			return !left
		})
		if !left && ctx.Err() == nil {
			yield(Snapshot[T]{}, err)
		}
	}
}

// Load reads the servers' present value behind a sync, and returns it as the new current value. It
// waits until the servers answer. The error wraps framework.ErrBadValue, or ErrNoValue if there is
// no node and no default; the current value stays then.
func (v *Value[T]) Load(ctx context.Context) (Snapshot[T], error) {
	if v.err != nil {
		return Snapshot[T]{}, v.err
	}
	var refused error
	err := v.followNode(ctx, func() bool { refused = v.Refused(); return false })
	if err == nil {
		err = refused
	}
	if err != nil {
		return Snapshot[T]{}, err
	}
	return v.Current(), nil
}

// followNode takes the node's values, and calls taken after each, until taken returns false. Then
// it returns nil.
func (v *Value[T]) followNode(ctx context.Context, taken func() bool) error {
	for node, err := range v.source(ctx) {
		if err != nil {
			return err
		}
		v.takeValue(node)
		if !taken() {
			return nil
		}
	}
	return failure.Wrap("config", v.store.path, failure.Ended(ctx))
}

// takeValue makes a node's value the current one, if it is valid and newer than all values so far.
// Several loops of this Value may decode a value at once; one of them takes it.
func (v *Value[T]) takeValue(node framework.NodeValue) {
	if !v.isNewer(node) {
		return
	}
	next, err := v.decodeValue(node)
	if !v.commitValue(node, next, err) {
		return
	}
	if err != nil {
		v.tel.countRefusal()
		v.store.client.Logger().Warn("a configuration value is refused; the last good one stays", "path", v.store.path,
			"version", node.Zxid, "error", err)
		return
	}
	v.tel.countChange()
	if node.Exists {
		v.writeFile(next, node.Data)
	}
}

// isNewer reports whether a node's value has to be decoded. It takes a newer node with the same
// keys at once.
func (v *Value[T]) isNewer(node framework.NodeValue) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.seen && node.Zxid <= v.taken.Zxid { // another loop has taken it, or a newer one
		return false
	}
	if v.seen && v.ofKeys && bytes.Equal(node.Data, v.taken.Data) {
		v.taken = node
		return false
	}
	return true
}

// commitValue makes a decoded value the current one, or keeps the reason why it is refused. It
// returns false if another loop has taken the value, or a newer one, meanwhile.
func (v *Value[T]) commitValue(node framework.NodeValue, next *Snapshot[T], refused error) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.seen && node.Zxid <= v.taken.Zxid {
		return false
	}
	v.seen, v.taken, v.refused = true, node, refused
	if refused == nil {
		v.current.Store(next)
	}
	return true
}

// decodeValue returns a node's value. Without a node it is the default, if there is one.
func (v *Value[T]) decodeValue(node framework.NodeValue) (*Snapshot[T], error) {
	if !node.Exists {
		if !v.opts.hasDefault {
			return nil, failure.Wrap("config", v.store.path, ErrNoValue)
		}
		return &Snapshot[T]{Value: v.opts.fallback, Source: FromDefault}, nil
	}
	value, err := v.decodeBytes(node.Data)
	if err != nil {
		return nil, err
	}
	return &Snapshot[T]{Value: value, Version: node.Zxid, Source: FromServers, Since: node.Stat.Mtime.UTC()}, nil
}

func (v *Value[T]) decodeBytes(data []byte) (value T, err error) {
	err = usercode.Try(func() (err error) { value, err = v.codec.Decode(data); return err })
	if err == nil {
		err = v.validateValue(value)
	}
	if err != nil {
		return value, failure.Wrap("config", v.store.path, fmt.Errorf("%w: %w", errRefused, err))
	}
	return value, nil
}

func (v *Value[T]) validateValue(value T) error {
	if v.opts.validate == nil {
		return nil
	}
	return usercode.Try(func() error { return v.opts.validate(value) })
}

// Set writes the value, for all readers. If the value cannot be encoded or is not valid, or its
// bytes do not decode to a valid value, the error wraps framework.ErrBadValue and Set writes
// nothing. With WithExpectedVersion, the error may wrap a *ConflictError. It wraps
// framework.ErrTooLarge if the value and its record are too large for one request: a value of 440
// kB always fits. Without WithExpectedVersion, the last Set wins.
//
// When a reply was lost, Set looks for its record and otherwise tries again. The error wraps
// framework.ErrOutcomeUnknown if ctx ends first, or if others have meanwhile written so many values
// that the record may be gone: the last 20 are kept, and a value that another program wrote has
// one, too.
func (v *Value[T]) Set(ctx context.Context, value T, opts ...SetOption) (err error) {
	if v.err != nil {
		return v.err
	}
	defer func() { v.tel.countSet(err) }()
	if err := v.validateValue(value); err != nil {
		return failure.Wrap("set", v.store.path, fmt.Errorf("%w: %w", errRefused, err))
	}
	var data []byte
	err = usercode.Try(func() (err error) { data, err = v.codec.Encode(value); return err })
	if err != nil {
		return failure.Wrap("set", v.store.path, fmt.Errorf("%w: %w", errRefused, err))
	}
	return v.setBytes(ctx, data, opts)
}

func (v *Value[T]) setBytes(ctx context.Context, data []byte, opts []SetOption) error {
	if _, err := v.decodeBytes(data); err != nil { // readers would refuse it
		return err
	}
	w, err := newWrite(data, opts)
	if err == nil {
		err = v.store.writeValue(ctx, w)
	}
	return failure.Wrap("set", v.store.path, err)
}

// History returns the records of the latest values, at most 20, the newest first; and before them
// the present value if another program wrote it, without a record. It reads behind a sync.
func (v *Value[T]) History(ctx context.Context) ([]Record, error) {
	if v.err != nil {
		return nil, v.err
	}
	records, err := v.store.readHistory(ctx)
	return records, failure.Wrap("history", v.store.path, err)
}

// Rollback writes the bytes of an earlier version again, as a new version. The error wraps
// ErrNoValue if the history does not have it, the record's error if it cannot be read, or is one of
// Set's. Its note is "rollback to <version>" unless an option says otherwise.
func (v *Value[T]) Rollback(ctx context.Context, version int64, opts ...SetOption) (err error) {
	if v.err != nil {
		return v.err
	}
	defer func() { v.tel.countSet(err) }()
	records, err := v.History(ctx)
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Version != version {
			continue
		}
		if r.Err != nil {
			return failure.Wrap("rollback", v.store.path, r.Err)
		}
		return v.setBytes(ctx, r.Data, append([]SetOption{WithNote(fmt.Sprintf("rollback to %d", version))}, opts...))
	}
	return failure.Wrap("rollback", v.store.path, fmt.Errorf("%w of version %d in the history", ErrNoValue, version))
}

// filePath is the value's path with the client's root, as a file names it.
func (v *Value[T]) filePath() string {
	return strings.TrimSuffix(v.store.client.Config().Root, "/") + v.store.path
}

// lastGoodFile is the kind of files with a last good value. It may be larger than a node.
var lastGoodFile = lastgood.Kind{Name: "config", MaxBytes: 2 << 20}

// readFile reads the last good value from the file, and makes it the current value.
func (v *Value[T]) readFile() {
	if v.opts.file == "" {
		return
	}
	content, err := lastGoodFile.Read(v.opts.file, v.filePath())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var value T
	if err == nil {
		value, err = v.decodeBytes(content.Data)
	}
	if err != nil {
		v.store.client.Logger().Warn("the file with the last good value is ignored", "path", v.store.path, "file",
			v.opts.file, "error", err)
		return
	}
	v.current.Store(&Snapshot[T]{Value: value, Version: content.Version, Source: FromFile, Since: content.Written})
}

// writeFile stores a good value.
func (v *Value[T]) writeFile(s *Snapshot[T], data []byte) {
	if v.opts.file == "" {
		return
	}
	v.fileMu.Lock()
	var err error
	if s.Version > v.inFile { // several loops write; the newest value stays
		v.inFile = s.Version
		err = lastGoodFile.Write(v.opts.file,
			lastgood.Content{Path: v.filePath(), Version: s.Version, Written: s.Since, Data: data})
	}
	v.fileMu.Unlock()
	if err != nil {
		v.store.client.Logger().Warn("the last good value cannot be stored in a file", "path", v.store.path, "file",
			v.opts.file, "error", err)
	}
}

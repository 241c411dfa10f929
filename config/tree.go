package config

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// Tree is a configuration value of many nodes: each key is a node below a directory, as in Spring
// Cloud ZooKeeper. See NewTree. It is safe for concurrent use.
//
// Guarantee: each value that it shows was the state of all its nodes at one moment, so keys that
// one transaction writes (Session.Multi) show together. No value is older than one shown before.
// Values that cannot be decoded or that WithValidate refuses are not shown.
//
// Not guaranteed: anything about keys that are written by several requests, as zkCli does: a moment
// between them may be shown; WithQuietTime makes that rare. While keys change without a pause of a
// few round trips, the last value stays.
type Tree[T any] struct{ value *Value[T] }

// NewTree returns the value of the keys below directories. If several directories have a key, in
// whichever style, the first directory's value counts. SpringContexts returns the directories of a
// Spring application. NewTree does not wait for ZooKeeper. Its options are those of New.
//
// T is a struct. A node's path below its directory names a field, with dots for slashes:
// db/pool/max and db.pool.max are DB.Pool.Max. A field has the name in its json tag, or its own
// name; case, dashes and underscores do not count. A field is text, a number, a bool, a
// time.Duration, an encoding.TextUnmarshaler, a struct, a pointer, a map by text, or a slice, whose
// elements are separated by commas. A field without a key has the value of WithDefault; a node
// without data is no key; keys without a field are ignored.
//
// The client needs two watches for each node.
func NewTree[T any](client *framework.Client, dirs []string, opts ...Option[T]) *Tree[T] {
	dirs = slices.Clone(dirs)
	o, err := recipe.ApplyOptions(valueOptions[T]{}, opts)
	if err == nil {
		err = checkTree[T](client, dirs)
	}
	values := keysCodec[T]{func() T { return o.fallback }}
	v := newValue(client, strings.Join(dirs, "+"), values, o, err)
	v.ofKeys = true
	v.source = func(ctx context.Context) iter.Seq2[framework.NodeValue, error] {
		return followTree(ctx, client, dirs, func(key string) string { return relaxedKey(reflect.TypeFor[T](), key) },
			o.quiet)
	}
	return &Tree[T]{v}
}

func checkTree[T any](client *framework.Client, dirs []string) (err error) {
	if reflect.TypeFor[T]().Kind() != reflect.Struct {
		return fmt.Errorf("a tree needs a struct, and not %v", reflect.TypeFor[T]())
	}
	if len(dirs) == 0 {
		return fmt.Errorf("%w: a tree needs a directory", failure.ErrInvalidPath)
	}
	for _, dir := range dirs {
		err = errors.Join(err, recipe.CheckClientAndPath(client, dir, "a tree"))
	}
	return err
}

// SpringContexts are the directories in which Spring Cloud ZooKeeper looks for an application's
// keys, the most specific one first: root/app,profile, root/app, root/application,profile,
// root/application. Of several profiles the last one counts most.
func SpringContexts(root, app string, profiles ...string) (dirs []string) {
	for _, name := range []string{app, "application"} {
		for _, profile := range slices.Backward(profiles) {
			dirs = append(dirs, root+"/"+name+","+profile)
		}
		dirs = append(dirs, root+"/"+name)
	}
	return dirs
}

// WithQuietTime makes a Tree show a value only after a time without a change of any key. It is for
// writers that change several keys one after the other.
func WithQuietTime[T any](quiet time.Duration) Option[T] {
	return func(o *valueOptions[T]) error {
		if quiet < 0 {
			return fmt.Errorf("WithQuietTime: %v is below 0", quiet)
		}
		o.quiet = quiet
		return nil
	}
}

// Validate returns what is wrong with the arguments of NewTree, or nil; see Value.Validate.
func (t *Tree[T]) Validate() error { return t.value.Validate() }

// Get returns the current value. It is an atomic load, without blocking or allocation. All callers
// share the maps, slices and pointers in the value: do not modify them.
func (t *Tree[T]) Get() T { return t.value.Get() }

// Current returns the current value, its version and its source. Version is the newest transaction
// on the nodes when this value was read. It rises with each change of a key. It stays if a
// transaction leaves all keys as they were, such as one that writes the same bytes or creates an
// empty node.
func (t *Tree[T]) Current() Snapshot[T] { return t.value.Current() }

// Refused returns why the servers' newest value is not the current one, or nil; see Value.Refused.
func (t *Tree[T]) Refused() error { return t.value.Refused() }

// Run keeps the value current until ctx ends; see Value.Run.
func (t *Tree[T]) Run(ctx context.Context) error { return t.value.Run(ctx) }

// Follow yields the current value and each one that follows; see Value.Follow.
func (t *Tree[T]) Follow(ctx context.Context) iter.Seq2[Snapshot[T], error] {
	return t.value.Follow(ctx)
}

// Load reads the servers' present value; see Value.Load.
func (t *Tree[T]) Load(ctx context.Context) (Snapshot[T], error) { return t.value.Load(ctx) }

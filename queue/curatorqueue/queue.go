// Package curatorqueue is a queue in the layout of Apache Curator's SimpleDistributedQueue, to
// share with Java:
//
//	<path>        container
//	<path>/qn-#   persistent: an item, the bytes as they are
//
// Not guaranteed: that an item is worked on. Take removes an item before it returns it, so a crash
// just then loses the item. Each item wakes all consumers, and each take lists all items. Prefer
// package queue unless Curator has to read the queue.
package curatorqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/queue"
)

const itemPrefix = "qn-"

// Queue is a queue at one path. Many goroutines may use it at once.
type Queue struct {
	client *framework.Client
	path   string
	err    error // of the arguments
}

// New returns a queue at path. It sends no request; Put and Take create the path. If an argument is
// invalid, each call returns an error that says so.
func New(client *framework.Client, path string) *Queue {
	q := &Queue{client: client, path: path}
	if client == nil {
		q.err = fmt.Errorf("%w: the client is nil", framework.ErrInvalid)
	} else {
		q.err = recipe.CheckClientAndPath(client, path, "a queue")
	}
	return q
}

// Path is the queue's path.
func (q *Queue) Path() string { return q.path }

// Validate returns what is wrong with the arguments of New, as every call does, or nil. It sends no
// request.
func (q *Queue) Validate() error { return q.err }

// Put puts data at the end. Its errors wrap framework.ErrTooLarge, framework.ErrNoAuth,
// framework.ErrClosed or the end of ctx, or framework.ErrOutcomeUnknown: the reply was lost, and
// the item may be in the queue.
func (q *Queue) Put(ctx context.Context, data []byte) error {
	return q.doOnSessions(ctx, "put", func(s *framework.Session) error {
		for {
			_, err := s.Multi(ctx, framework.CreateOp(znode.Join(q.path, itemPrefix), data,
				framework.PersistentSequential))
			if !errors.Is(err, framework.ErrNoNode) {
				return err
			}
			if err := s.MakeDirs(ctx, q.path); err != nil {
				return err
			}
		}
	})
}

// Take waits for an item, removes the first one and returns its data. If the error wraps
// framework.ErrOutcomeUnknown, the reply to the removal was lost, and an item may be gone. Other
// errors wrap framework.ErrNoAuth, framework.ErrClosed or the end of ctx.
func (q *Queue) Take(ctx context.Context) (data []byte, err error) {
	err = q.doOnSessions(ctx, "take", func(s *framework.Session) error {
		for {
			names, _, changed, err := s.WatchChildren(ctx, q.path)
			if errors.Is(err, framework.ErrNoNode) {
				err = s.MakeDirs(ctx, q.path)
				if err == nil {
					continue
				}
			}
			if err != nil {
				return err
			}
			data, err = q.readFirst(ctx, s, names, true)
			if !errors.Is(err, queue.ErrEmpty) {
				changed.Stop()
				return err
			}
			select {
			case <-changed.C():
			case <-s.Done():
				return context.Cause(s.Context())
			case <-ctx.Done():
				changed.Stop()
				return failure.Ended(ctx)
			}
		}
	})
	return data, err
}

// TryTake is Take without waiting, as Curator's poll: it reads behind a sync, and returns
// queue.ErrEmpty if there is no item.
func (q *Queue) TryTake(ctx context.Context) (data []byte, err error) {
	return q.firstNow(ctx, "try to take", true)
}

// Peek reads behind a sync and returns the first item's data without removing it, or
// queue.ErrEmpty.
func (q *Queue) Peek(ctx context.Context) (data []byte, err error) {
	return q.firstNow(ctx, "peek", false)
}

func (q *Queue) firstNow(ctx context.Context, op string, remove bool) (data []byte, err error) {
	err = q.doOnSessions(ctx, op, func(s *framework.Session) error {
		if err := s.Sync(ctx, q.path); err != nil {
			return err
		}
		names, _, err := s.Children(ctx, q.path)
		if errors.Is(err, framework.ErrNoNode) {
			return queue.ErrEmpty
		}
		if err == nil {
			data, err = q.readFirst(ctx, s, names, remove)
		}
		return err
	})
	return data, err
}

// readFirst reads the first item that still exists, and on request removes it.
func (q *Queue) readFirst(ctx context.Context, s *framework.Session, names []string,
	remove bool) ([]byte, error) {
	var items []int64
	for _, name := range names {
		if n, ok := queuelayout.ParseNumber(name, itemPrefix); ok {
			items = append(items, n)
		}
	}
	slices.Sort(items)
	for _, n := range items {
		path := znode.Join(q.path, itemPrefix+queuelayout.FormatNumber(n))
		data, _, err := s.Get(ctx, path)
		if err == nil && remove {
			_, err = s.Multi(ctx, framework.DeleteOp(path, framework.AnyVersion))
		}
		if !errors.Is(err, framework.ErrNoNode) {
			return data, err
		}
	}
	return nil, queue.ErrEmpty
}

// doOnSessions runs f on session after session: it repeats f if the session was lost before
// anything was sent.
func (q *Queue) doOnSessions(ctx context.Context, op string, f func(*framework.Session) error) error {
	if q.err != nil {
		return failure.Wrap(op, q.path, q.err)
	}
	for {
		s, err := q.client.Session(ctx)
		if err == nil {
			err = f(s)
		}
		written := errors.Is(err, framework.ErrOutcomeUnknown)
		if errors.Is(err, framework.ErrSessionLost) && !written && ctx.Err() == nil {
			continue
		}
		return failure.Wrap(op, q.path, err)
	}
}

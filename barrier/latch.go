package barrier

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
)

// Latch opens when it was counted down to zero, each caller counting once. It holds no state but its
// arguments, and may be used by many goroutines at once.
//
//	<path>           persistent: the number of counts
//	<path>/by/<id>   persistent: this caller has counted
//	<path>/at/c-#    persistent sequential: one count; the last one's name opens the latch
//
// Guarantee: a count is one transaction, and a caller's second one counts nothing, so that it may be
// repeated until it succeeds. The last count opens the latch by itself: nobody has to live on for that.
// Each waiter is woken once, however many counts there are.
type Latch struct {
	client       *framework.Client
	path, by, at string
	size         int
	tel          telemetry
	err          error // of the arguments
}

// NewLatch returns a latch of so many counts at path, 1 to 1000 (less if the path is longer than some 280 bytes,
// since one transaction resets it). Nothing is created before it is used. An
// argument that cannot be used makes every call return an error that says so.
func NewLatch(client *framework.Client, path string, counts int) *Latch {
	l := &Latch{client: client, path: path, size: counts}
	if l.err = check(client, path); l.err != nil {
		return l
	}
	l.err = checkSize(counts, l.mostCounts())
	l.by, l.at, l.tel = framework.Join(path, "by"), framework.Join(path, "at"), newTelemetry(client)
	return l
}

// Path is the latch's path.
func (l *Latch) Path() string { return l.path }

// Remaining is how many counts are missing.
func (l *Latch) Remaining(ctx context.Context) (n int, err error) {
	err = l.each(ctx, "look at", func(s *framework.Session) error {
		if err := s.Sync(ctx, l.by); err != nil {
			return err
		}
		st, err := s.Exists(ctx, l.by)
		n = max(0, l.size-int(st.NumChildren))
		return err
	})
	return n, err
}

// Wait waits until the latch has opened. Its error is that of ctx when that ended the wait, or wraps
// ErrMismatch, ErrForeign, framework.ErrClosed or framework.ErrNoAuth.
func (l *Latch) Wait(ctx context.Context) (err error) {
	if l.err != nil {
		return framework.Wrap("wait at", l.path, l.err)
	}
	ctx, end := l.tel.wait(ctx, "latch.wait", l.path)
	defer func() { end(err) }()
	first := int32(-1) // the count that this wait is for
	return l.each(ctx, "wait at", func(s *framework.Session) error {
		if err := s.Sync(ctx, l.path); err != nil { // who has reset it may have done so on another server
			return err
		}
		for {
			open, err := l.watch(ctx, s, &first)
			if open || err != nil {
				return err
			}
		}
	})
}

// watch looks once, and waits for a change.
func (l *Latch) watch(ctx context.Context, s *framework.Session, first *int32) (open bool, err error) {
	if *first < 0 {
		if *first, err = l.read(ctx, s); err != nil {
			return false, err
		}
	}
	_, w, err := s.WatchExists(ctx, l.last())
	if err == nil {
		w.Stop()
		return true, nil
	}
	if !errors.Is(err, framework.ErrNoNode) {
		return false, err
	}
	defer w.Stop()
	count, err := l.read(ctx, s)
	if err != nil || count != *first { // it has opened, and was reset
		return err == nil, err
	}
	select {
	case ev := <-w.C():
		return ev.Kind == framework.NodeCreated, nil
	case <-ctx.Done():
		return false, framework.Ended(ctx)
	case <-s.Done():
		return false, context.Cause(s.Context())
	}
}

// Reset begins a new count on a latch that has opened; those who wait for the former one go on all the
// same. The error wraps ErrCounting if the latch has not opened.
func (l *Latch) Reset(ctx context.Context) error {
	first := int32(-1)
	return l.each(ctx, "reset", func(s *framework.Session) error {
		if err := s.Sync(ctx, l.path); err != nil {
			return err
		}
		count, err := l.read(ctx, s)
		switch {
		case err != nil:
			return err
		case first < 0:
			first = count
		case count != first: // an earlier try, or somebody else, has done it
			return nil
		}
		if _, err := s.Exists(ctx, l.last()); errors.Is(err, framework.ErrNoNode) {
			return ErrCounting
		}
		return l.clear(ctx, s, count)
	})
}

// clear deletes all counts in one transaction, if this is still the count.
func (l *Latch) clear(ctx context.Context, s *framework.Session, count int32) error {
	ops := []framework.Op{framework.SetOp(l.path, record{Kind: latchKind, Size: l.size}.encode(), count)}
	for _, dir := range []string{l.by, l.at} {
		names, _, err := s.Children(ctx, dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			ops = append(ops, framework.DeleteOp(framework.Join(dir, name), framework.AnyVersion))
		}
		ops = append(ops, framework.DeleteOp(dir, framework.AnyVersion), framework.CreateOp(dir, nil, framework.Persistent))
	}
	_, err := s.Multi(ctx, ops...)
	var refused *framework.TxError
	if errors.Is(err, framework.ErrSuspended) || errors.As(err, &refused) && !errors.Is(err, framework.ErrNoAuth) {
		return errAgain
	}
	return err
}

// read reads the record, and returns its version: it changes with each reset.
func (l *Latch) read(ctx context.Context, s *framework.Session) (int32, error) {
	data, st, err := s.Get(ctx, l.path)
	if err != nil {
		return 0, err
	}
	r, err := parseSized(l.path, latchKind, data, mostMembers)
	if err == nil && r.Size != l.size {
		err = &MismatchError{l.path, r.Size, l.size}
	}
	return st.Version, err
}

// each does something on session after session until it is done, with a latch that is there.
func (l *Latch) each(ctx context.Context, op string, f func(*framework.Session) error) error {
	if l.err != nil {
		return framework.Wrap(op, l.path, l.err)
	}
	return framework.Wrap(op, l.path, each(ctx, l.client, func(s *framework.Session) error {
		if err := l.prepare(ctx, s); err != nil {
			return err
		}
		return f(s)
	}))
}

// prepare makes the latch, or checks what there is.
func (l *Latch) prepare(ctx context.Context, s *framework.Session) error {
	_, err := l.read(ctx, s)
	if !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	_, err = s.Multi(ctx, framework.CreateOp(l.path, record{Kind: latchKind, Size: l.size}.encode(), framework.Persistent),
		framework.CreateOp(l.by, nil, framework.Persistent), framework.CreateOp(l.at, nil, framework.Persistent))
	switch {
	case errors.Is(err, framework.ErrNoNode):
		dir, _ := framework.Split(l.path)
		if err := s.MakeDirs(ctx, dir); err != nil {
			return err
		}
		return errAgain
	case errors.Is(err, framework.ErrNodeExists), errors.Is(err, framework.ErrSuspended):
		return errAgain
	}
	return err
}

package barrier

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Latch opens when its callers have counted it down to zero. Each caller counts once. It holds no state but its
// arguments, and may be used by many goroutines at once.
//
//	<path>           persistent: the number of counts
//	<path>/by/<id>   persistent: this caller has counted
//	<path>/at/c-#    persistent sequential: one count; the last one's name opens the latch
//
// Guarantee: a count is one transaction, and a caller's second count has no effect, so a caller may
// repeat it until it succeeds. The last count opens the latch by itself, also if all callers die afterwards.
// Each waiter is woken once, for any number of counts.
type Latch struct {
	client       *framework.Client
	path, by, at string
	size         int
	tel          telemetry
	err          error // of the arguments
}

// NewLatch returns a latch of so many counts at path, 1 to 1000 (less if the path is longer than some 280 bytes,
// since one transaction resets it). The first call creates its nodes. If an
// argument is invalid, every call returns an error that says so.
func NewLatch(client *framework.Client, path string, counts int) *Latch {
	l := &Latch{client: client, path: path, size: counts}
	if l.err = recipe.CheckClientAndPath(client, path, "a barrier"); l.err != nil {
		return l
	}
	l.err = checkSize(counts, l.maxCounts())
	l.by, l.at, l.tel = znode.Join(path, "by"), znode.Join(path, "at"), newTelemetry(client)
	return l
}

// Path is the latch's path.
func (l *Latch) Path() string { return l.path }

// CountDown counts for the caller id, unless it has counted already. An id is a node's name, such as a host's
// or a task's. One transaction must be able to reset the latch, so an id has at most some 350 bytes with 1000 counts at a path of
// 150. The error wraps ErrTooMany if others have counted the latch down to zero, ErrCaller,
// ErrMismatch or ErrForeign, or is that of ctx: then it is unknown whether the call counted; repeat it.
func (l *Latch) CountDown(ctx context.Context, id string) error {
	if err := l.checkCaller(id); err != nil {
		return failure.Wrap("count down", l.path, err)
	}
	return l.onSessions(ctx, "count down", func(s *framework.Session) error {
		rs, err := s.Multi(ctx, framework.CreateOp(znode.Join(l.by, id), nil, framework.Persistent),
			framework.CreateOp(znode.Join(l.at, countName), []byte(id), framework.PersistentSequential))
		switch {
		case errors.Is(err, framework.ErrNodeExists):
			return l.checkEarlierCount(ctx, s, id)
		case errors.Is(err, framework.ErrSuspended):
			return recipe.ErrAgain
		case err != nil:
			return err
		}
		if rs[1].Path > l.lastCountNode() {
			return l.undoCount(ctx, s, id, rs[1].Path)
		}
		return nil
	})
}

// checkCaller refuses an id that cannot be a node's name, or is so long that one transaction cannot delete all counts.
func (l *Latch) checkCaller(id string) error {
	if l.err != nil {
		return nil // every call returns it
	}
	if longest := transactionBytes/l.size - l.countBytes(); len(id) > longest {
		return fmt.Errorf("%w: %.20q... has %d bytes, at most %d fit %d counts", ErrCaller, id, len(id), longest, l.size)
	}
	if id == "" || framework.ValidatePath(znode.Join(l.by, id)) != nil || strings.Contains(id, "/") {
		return fmt.Errorf("%w: %q", ErrCaller, id)
	}
	return nil
}

// checkEarlierCount checks the count that a caller has already made. If it came after the last count, it was one too many, and the reply
// was lost.
func (l *Latch) checkEarlierCount(ctx context.Context, s *framework.Session, id string) error {
	if err := s.Sync(ctx, l.path); err != nil { // another server may have said that the count exists
		return err
	}
	own, err := s.Exists(ctx, znode.Join(l.by, id))
	if errors.Is(err, framework.ErrNoNode) { // taken back, or the latch was reset
		return recipe.ErrAgain
	}
	if err != nil {
		return err
	}
	last, err := s.Exists(ctx, l.lastCountNode())
	switch {
	case errors.Is(err, framework.ErrNoNode), err == nil && own.Czxid <= last.Czxid:
		return nil
	case err != nil:
		return err
	}
	count, err := l.countMadeBy(ctx, s, own.Czxid)
	if err != nil {
		return err
	}
	return l.undoCount(ctx, s, id, count)
}

// countMadeBy returns the count after the last one that this transaction has created.
func (l *Latch) countMadeBy(ctx context.Context, s *framework.Session, zxid int64) (string, error) {
	names, _, err := s.Children(ctx, l.at)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		count := znode.Join(l.at, name)
		if count <= l.lastCountNode() {
			continue
		}
		st, err := s.Exists(ctx, count)
		switch {
		case err == nil && st.Czxid == zxid:
			return count, nil
		case err != nil && !errors.Is(err, framework.ErrNoNode):
			return "", err
		}
	}
	return "", recipe.ErrAgain
}

// undoCount deletes a count that came after the last one.
func (l *Latch) undoCount(ctx context.Context, s *framework.Session, id, count string) error {
	_, err := s.Multi(ctx, framework.DeleteOp(znode.Join(l.by, id), framework.AnyVersion), framework.DeleteOp(count, framework.AnyVersion))
	switch {
	case errors.Is(err, framework.ErrSuspended):
		return recipe.ErrAgain
	case err != nil && !errors.Is(err, framework.ErrNoNode):
		return err
	}
	return fmt.Errorf("%w: all %d counts were counted by others than %q", ErrTooMany, l.size, id)
}

// Wait waits until the latch has opened. Its error is that of ctx if ctx ended the wait, or wraps
// ErrMismatch, ErrForeign, framework.ErrClosed or framework.ErrNoAuth.
func (l *Latch) Wait(ctx context.Context) (err error) {
	if l.err != nil {
		return failure.Wrap("wait at", l.path, l.err)
	}
	ctx, end := l.tel.startWaitSpan(ctx, "latch.wait", l.path)
	defer func() { end(err) }()
	first := int32(-1) // the count that this wait is for
	return l.onSessions(ctx, "wait at", func(s *framework.Session) error {
		if err := s.Sync(ctx, l.path); err != nil { // another client may have reset it on another server
			return err
		}
		for {
			open, err := l.waitForChange(ctx, s, &first)
			if open || err != nil {
				return err
			}
		}
	})
}

// waitForChange reads once, and waits for a change.
func (l *Latch) waitForChange(ctx context.Context, s *framework.Session, first *int32) (open bool, err error) {
	if *first < 0 {
		if *first, err = l.readRecord(ctx, s); err != nil {
			return false, err
		}
	}
	_, w, err := s.WatchExists(ctx, l.lastCountNode())
	if err == nil {
		w.Stop()
		return true, nil
	}
	if !errors.Is(err, framework.ErrNoNode) {
		return false, err
	}
	defer w.Stop()
	count, err := l.readRecord(ctx, s)
	if err != nil || count != *first { // it has opened, and was reset
		return err == nil, err
	}
	event, err := recipe.WaitForWatch(ctx, s, w)
	return event.Kind == framework.NodeCreated, err
}

// Reset begins a new count on a latch that has opened. Waiters for the former count go on all the
// same. The error wraps ErrCounting if the latch has not opened.
func (l *Latch) Reset(ctx context.Context) error {
	first := int32(-1)
	return l.onSessions(ctx, "reset", func(s *framework.Session) error {
		if err := s.Sync(ctx, l.path); err != nil {
			return err
		}
		count, err := l.readRecord(ctx, s)
		switch {
		case err != nil:
			return err
		case first < 0:
			first = count
		case count != first: // an earlier try, or another client, has done it
			return nil
		}
		if _, err := s.Exists(ctx, l.lastCountNode()); errors.Is(err, framework.ErrNoNode) {
			return ErrCounting
		}
		return l.deleteCounts(ctx, s, count)
	})
}

// deleteCounts deletes all counts in one transaction, if this is still the count.
func (l *Latch) deleteCounts(ctx context.Context, s *framework.Session, count int32) error {
	ops := []framework.Op{framework.SetOp(l.path, nodeRecord{Kind: latchKind, Size: l.size}.encode(), count)}
	for _, dir := range []string{l.by, l.at} {
		names, _, err := s.Children(ctx, dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			ops = append(ops, framework.DeleteOp(znode.Join(dir, name), framework.AnyVersion))
		}
		ops = append(ops, framework.DeleteOp(dir, framework.AnyVersion), framework.CreateOp(dir, nil, framework.Persistent))
	}
	_, err := s.Multi(ctx, ops...)
	var refused *framework.TxError
	if errors.Is(err, framework.ErrSuspended) || errors.As(err, &refused) && !errors.Is(err, framework.ErrNoAuth) {
		return recipe.ErrAgain
	}
	return err
}

// Remaining returns the number of missing counts.
func (l *Latch) Remaining(ctx context.Context) (n int, err error) {
	err = l.onSessions(ctx, "look at", func(s *framework.Session) error {
		if err := s.Sync(ctx, l.by); err != nil {
			return err
		}
		st, err := s.Exists(ctx, l.by)
		n = max(0, l.size-int(st.NumChildren))
		return err
	})
	return n, err
}

// onSessions runs f on session after session until it is done. It creates the latch first if it is missing.
func (l *Latch) onSessions(ctx context.Context, op string, f func(*framework.Session) error) error {
	if l.err != nil {
		return failure.Wrap(op, l.path, l.err)
	}
	return failure.Wrap(op, l.path, recipe.OnSession(ctx, l.client, func(s *framework.Session) error {
		if err := l.createOrCheck(ctx, s); err != nil {
			return err
		}
		return f(s)
	}))
}

// createOrCheck creates the latch, or checks the existing one.
func (l *Latch) createOrCheck(ctx context.Context, s *framework.Session) error {
	_, err := l.readRecord(ctx, s)
	if !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	_, err = s.Multi(ctx, framework.CreateOp(l.path, nodeRecord{Kind: latchKind, Size: l.size}.encode(), framework.Persistent),
		framework.CreateOp(l.by, nil, framework.Persistent), framework.CreateOp(l.at, nil, framework.Persistent))
	switch {
	case errors.Is(err, framework.ErrNoNode):
		dir, _ := znode.Split(l.path)
		if err := s.MakeDirs(ctx, dir); err != nil {
			return err
		}
		return recipe.ErrAgain
	case errors.Is(err, framework.ErrNodeExists), errors.Is(err, framework.ErrSuspended):
		return recipe.ErrAgain
	}
	return err
}

// readRecord reads the record, and returns its version: it changes with each reset.
func (l *Latch) readRecord(ctx context.Context, s *framework.Session) (int32, error) {
	data, st, err := s.Get(ctx, l.path)
	if err != nil {
		return 0, err
	}
	r, err := parseSizedRecord(l.path, latchKind, data, maxMembers)
	if err == nil && r.Size != l.size {
		err = &MismatchError{l.path, r.Size, l.size}
	}
	return st.Version, err
}

// countName is the name of a count's node, without its number.
const countName = "c-"

// lastCountNode is the node whose creation opens the latch.
func (l *Latch) lastCountNode() string {
	return znode.Join(l.at, fmt.Sprintf("%s%010d", countName, l.size-1))
}

// countBytes is the size of a count's two nodes in a transaction, without the caller's id.
func (l *Latch) countBytes() int {
	return 2 * (nodeBytes + len(l.path) + len(l.client.Config().Root))
}

// maxCounts is the number of counts that one transaction can delete.
func (l *Latch) maxCounts() int {
	const id = 100 // bytes that every caller's id may have
	return min(maxMembers, transactionBytes/(l.countBytes()+id))
}

package barrier

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
)

// countName is what counts' nodes are called, before their numbers.
const countName = "c-"

// last is the node whose creation opens the latch.
func (l *Latch) last() string {
	return framework.Join(l.at, fmt.Sprintf("%s%010d", countName, l.size-1))
}

// countBytes is what the two nodes of a count take in a transaction, beside the caller's id.
func (l *Latch) countBytes() int {
	return 2 * (nodeBytes + len(l.path) + len(l.client.Config().Root))
}

// mostCounts is how many one transaction can delete.
func (l *Latch) mostCounts() int {
	const id = 100 // bytes that any caller's may have
	return min(mostMembers, transactionBytes/(l.countBytes()+id))
}

// checkCaller refuses an id that is no node's name, or of which one transaction cannot delete as many as there are counts.
func (l *Latch) checkCaller(id string) error {
	if l.err != nil {
		return nil // each says so
	}
	if longest := transactionBytes/l.size - l.countBytes(); len(id) > longest {
		return fmt.Errorf("%w: %.20q... has %d bytes, at most %d fit %d counts", ErrCaller, id, len(id), longest, l.size)
	}
	if id == "" || framework.ValidatePath(framework.Join(l.by, id)) != nil || strings.Contains(id, "/") {
		return fmt.Errorf("%w: %q", ErrCaller, id)
	}
	return nil
}

// CountDown counts for the caller id, unless it has counted already. An id is a node's name, such as a host's
// or a task's, and may be so long that one transaction resets the latch: some 350 bytes with 1000 counts at a path of
// 150. The error wraps ErrTooMany when others have counted the latch down to zero, ErrCaller,
// ErrMismatch, ErrForeign, or is that of ctx: whether it was counted is unknown then; ask again.
func (l *Latch) CountDown(ctx context.Context, id string) error {
	if err := l.checkCaller(id); err != nil {
		return framework.Wrap("count down", l.path, err)
	}
	return l.each(ctx, "count down", func(s *framework.Session) error {
		rs, err := s.Multi(ctx, framework.CreateOp(framework.Join(l.by, id), nil, framework.Persistent),
			framework.CreateOp(framework.Join(l.at, countName), []byte(id), framework.PersistentSequential))
		switch {
		case errors.Is(err, framework.ErrNodeExists):
			return l.counted(ctx, s, id)
		case errors.Is(err, framework.ErrSuspended):
			return errAgain
		case err != nil:
			return err
		}
		if rs[1].Path > l.last() {
			return l.undo(ctx, s, id, rs[1].Path)
		}
		return nil
	})
}

// counted judges the count that a caller has already: if it came after the last, it was one too many, and the reply that
// would have said so was lost.
func (l *Latch) counted(ctx context.Context, s *framework.Session, id string) error {
	if err := s.Sync(ctx, l.path); err != nil { // whose server said that it is there may be another
		return err
	}
	own, err := s.Exists(ctx, framework.Join(l.by, id))
	if errors.Is(err, framework.ErrNoNode) { // taken back, or the latch was reset
		return errAgain
	}
	if err != nil {
		return err
	}
	last, err := s.Exists(ctx, l.last())
	switch {
	case errors.Is(err, framework.ErrNoNode), err == nil && own.Czxid <= last.Czxid:
		return nil
	case err != nil:
		return err
	}
	count, err := l.madeBy(ctx, s, own.Czxid)
	if err != nil {
		return err
	}
	return l.undo(ctx, s, id, count)
}

// madeBy returns the count that a transaction has made after the last.
func (l *Latch) madeBy(ctx context.Context, s *framework.Session, zxid int64) (string, error) {
	names, _, err := s.Children(ctx, l.at)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		count := framework.Join(l.at, name)
		if count <= l.last() {
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
	return "", errAgain
}

// undo takes back a count of an open latch.
func (l *Latch) undo(ctx context.Context, s *framework.Session, id, count string) error {
	_, err := s.Multi(ctx, framework.DeleteOp(framework.Join(l.by, id), framework.AnyVersion), framework.DeleteOp(count, framework.AnyVersion))
	switch {
	case errors.Is(err, framework.ErrSuspended):
		return errAgain
	case err != nil && !errors.Is(err, framework.ErrNoNode):
		return err
	}
	return fmt.Errorf("%w: all %d counts were counted by others than %q", ErrTooMany, l.size, id)
}

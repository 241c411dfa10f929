package barrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Latch opens when its callers have counted it down to zero. Each caller counts once. It holds no
// state but its arguments, and may be used by many goroutines at once.
//
//	<path>           persistent: the number of counts
//	<path>/by/<id>   persistent: this caller has counted
//	<path>/at/c-#    persistent sequential: one count; the last one's name opens the latch
//
// Guarantee: a count is one transaction, and a caller's second count has no effect until Reset, so
// a caller may repeat it until it succeeds. The last count opens the latch by itself, also if all
// callers die afterwards. Each waiter is woken once, for any number of counts.
type Latch struct {
	client       *framework.Client
	path, by, at string
	size         int
	tel          telemetry
	err          error // of the arguments
}

// NewLatch returns a latch of so many counts at path, 1 to 1000 (less if the path is longer than
// some 280 bytes, since one transaction resets it). It sends no request. The first call of a method
// creates the nodes, also of Wait and Missing. If an argument is invalid, every call returns an
// error that says so.
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

// Validate returns what is wrong with the arguments of NewLatch, as every call does, or nil. It
// sends no request.
func (l *Latch) Validate() error { return l.err }

// CountDown counts for the caller with this id, unless that caller has counted already. An id is
// the name of a node: of a host or a task, say, without a slash. One transaction must be able to
// reset the latch, so an id has at most some 350 bytes with 1000 counts at a path of 150. The error
// wraps ErrTooMany if others have counted the latch down to zero, framework.ErrInvalid,
// framework.ErrMismatch, framework.ErrForeign or framework.ErrNewer, or is that of ctx: then it is
// unknown whether the call counted; repeat it.
//
// A call counts at most once, also if replies are lost. If a reply is lost, and the latch was
// reset, or deleted and created again, before the call has found out, the call does not count in
// the new count. The error then wraps framework.ErrOutcomeUnknown: the call may have counted in the
// former count. A call after the reset can get this error, too, if its server lags behind and the
// reply is lost. If the call knows that others have counted the latch down to zero before it, the
// error wraps ErrTooMany instead.
func (l *Latch) CountDown(ctx context.Context, id string) error {
	if err := l.checkCaller(id); err != nil {
		return failure.Wrap("count down", l.path, err)
	}
	var sent latchCount // in which a try was sent that may have counted: the call counts in no other
	var tooMany error   // set once a count of this call was one too many
	return l.onSessions(ctx, "count down", func(s *framework.Session, count latchCount) error {
		extra, counted := "", false // the path of a count that came after the last one
		var err error
		if sent != (latchCount{}) {
			counted, err = l.hasCounted(ctx, s, id, sent)
			if errors.Is(err, errOtherCount) {
				return cmp.Or(tooMany, fmt.Errorf(
					"%w: the latch was reset, or made again, before the servers' answer to the count of %q came",
					framework.ErrOutcomeUnknown, id))
			}
			if err != nil || !counted && tooMany != nil {
				return cmp.Or(err, tooMany)
			}
			count = sent // if it has not counted, it will not: the servers have got that try before a sync
		}
		if !counted {
			var rs []framework.OpResult
			rs, err = s.Multi(ctx, framework.CheckOp(l.path, count.version),
				framework.CreateOp(znode.Join(l.by, id), nil, framework.Persistent),
				framework.CreateOp(znode.Join(l.at, countName), []byte(id), framework.PersistentSequential))
			switch {
			case errors.Is(err, framework.ErrNodeExists): // it has counted in a try or a call before
				counted = true
			case err == nil, errors.Is(err, framework.ErrOutcomeUnknown):
				sent = count
			default:
				sent = latchCount{}
			}
			switch {
			case errors.Is(err, framework.ErrBadVersion), errors.Is(err, framework.ErrSuspended), isLatchGone(err):
				// the first: the latch was reset meanwhile
				return recipe.ErrAgain
			case err == nil && rs[2].Path > l.lastCountNode():
				extra = rs[2].Path
			}
		}
		if counted {
			extra, err = l.checkEarlierCount(ctx, s, id)
		}
		if err != nil || extra == "" {
			return err
		}
		sent = count // the call may not count in another one
		tooMany = fmt.Errorf("%w: others have counted all %d counts before %q", ErrTooMany, l.size, id)
		return cmp.Or(l.undoCount(ctx, s, count, id, extra), tooMany)
	})
}

// isLatchGone reports whether a transaction that checks the latch first was refused because the
// latch was deleted.
func isLatchGone(err error) bool {
	var refused *framework.TxError
	return errors.As(err, &refused) && refused.Index == 0 && errors.Is(err, framework.ErrNoNode)
}

// errOtherCount says that a latch was reset, or made again.
var errOtherCount = errors.New("another count")

// hasCounted finds out whether a caller has counted in a count, behind a sync. If the latch has
// another count by now, the error is errOtherCount.
func (l *Latch) hasCounted(ctx context.Context, s *framework.Session, id string,
	in latchCount) (counted bool, err error) {
	if err := s.Sync(ctx, l.path); err != nil {
		return false, err
	}
	_, err = s.Exists(ctx, znode.Join(l.by, id))
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return false, err
	}
	counted = err == nil
	now, err := l.readRecord(ctx, s) // after the caller's node: a reset between the two is seen
	if errors.Is(err, framework.ErrNoNode) || err == nil && now.latchCount != in {
		err = errOtherCount
	}
	return counted, err
}

// checkCaller refuses an id that cannot be a node's name, or is so long that one transaction cannot
// delete all counts.
func (l *Latch) checkCaller(id string) error {
	if l.err != nil {
		return nil // every call returns it
	}
	if longest := transactionBytes/l.size - l.countBytes(); len(id) > longest {
		return fmt.Errorf("%w: %.20q... has %d bytes, at most %d fit %d counts", errCaller, id, len(id),
			longest, l.size)
	}
	if id == "" || framework.ValidatePath(znode.Join(l.by, id)) != nil || strings.Contains(id, "/") {
		return fmt.Errorf("%w: %q", errCaller, id)
	}
	return nil
}

// checkEarlierCount checks the count that a caller has already made. If it came after the last
// count, it was one too many, and the reply was lost. Then checkEarlierCount returns the count's
// path.
func (l *Latch) checkEarlierCount(ctx context.Context, s *framework.Session, id string) (extra string, err error) {
	if err := s.Sync(ctx, l.path); err != nil { // another server may have said that the count exists
		return "", err
	}
	own, err := s.Exists(ctx, znode.Join(l.by, id))
	if errors.Is(err, framework.ErrNoNode) { // taken back, or the latch was reset
		return "", recipe.ErrAgain
	}
	if err != nil {
		return "", err
	}
	last, err := s.Exists(ctx, l.lastCountNode())
	switch {
	case errors.Is(err, framework.ErrNoNode), err == nil && own.Czxid <= last.Czxid:
		return "", nil
	case err != nil:
		return "", err
	}
	return l.countMadeBy(ctx, s, own.Czxid)
}

// countMadeBy returns the path of the count that this transaction has created. The count came after
// the one that opened the latch.
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
		stat, err := s.Exists(ctx, count)
		switch {
		case err == nil && stat.Czxid == zxid:
			return count, nil
		case err != nil && !errors.Is(err, framework.ErrNoNode):
			return "", err
		}
	}
	return "", recipe.ErrAgain
}

// undoCount deletes a count that came after the last one.
func (l *Latch) undoCount(ctx context.Context, s *framework.Session, in latchCount, id, count string) error {
	_, err := s.Multi(ctx, framework.CheckOp(l.path, in.version),
		framework.DeleteOp(znode.Join(l.by, id), framework.AnyVersion), framework.DeleteOp(count, framework.AnyVersion))
	switch {
	case errors.Is(err, framework.ErrSuspended):
		return recipe.ErrAgain
	case errors.Is(err, framework.ErrNoNode), errors.Is(err, framework.ErrBadVersion):
		// undone by an earlier try, or the latch was reset
		return nil
	}
	return err
}

// Wait waits until the latch has opened. Its error is that of ctx if ctx ended the wait, or wraps
// framework.ErrMismatch, framework.ErrForeign, framework.ErrNewer, framework.ErrClosed or
// framework.ErrNoAuth.
//
// If the latch is deleted and created again, Wait waits until the new latch has opened. If Wait
// finds, after a reconnect, that the latch is gone, its error wraps framework.ErrNoNode.
func (l *Latch) Wait(ctx context.Context) (err error) {
	if l.err != nil {
		return failure.Wrap("wait at", l.path, l.err)
	}
	ctx, end := l.tel.startWaitSpan(ctx, "latch.wait", l.path)
	defer func() { end(err) }()
	var first latchCount // for which this call waits
	return l.onSessions(ctx, "wait at", func(s *framework.Session, _ latchCount) error {
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

// waitForChange reads the latch once, and waits for a change if it has not opened. It reports
// whether the latch has opened since first was read. If the latch was created again, waitForChange
// sets first to the new latch's count.
func (l *Latch) waitForChange(ctx context.Context, s *framework.Session, first *latchCount) (open bool, err error) {
	before, err := l.readRecord(ctx, s)
	if err != nil {
		return false, err
	}
	if before.czxid != first.czxid {
		*first = before.latchCount
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
	after, err := l.readRecord(ctx, s)
	if err != nil || after.latchCount != *first { // it has opened and was reset, or was created again
		return err == nil && after.czxid == first.czxid, err
	}
	event, err := recipe.WaitForWatch(ctx, s, w)
	return event.Kind == framework.NodeCreated, err
}

// Reset begins a new count on a latch that has opened, in one transaction. Waiters for the former
// count return as if the latch had not been reset. If other clients reset the latch at the same
// time, it is reset once. The error wraps ErrCounting if the latch has not opened, is that of ctx,
// or wraps framework.ErrMismatch, framework.ErrForeign, framework.ErrNewer, framework.ErrClosed or
// a refusal of the servers, such as framework.ErrNoAuth or framework.ErrQuotaExceeded.
func (l *Latch) Reset(ctx context.Context) error {
	var first latchCount
	return l.onSessions(ctx, "reset", func(s *framework.Session, _ latchCount) error {
		if err := s.Sync(ctx, l.path); err != nil {
			return err
		}
		count, err := l.readRecord(ctx, s)
		switch {
		case err != nil:
			return err
		case first.czxid == 0:
			first = count.latchCount
		case count.latchCount != first: // an earlier try, or another client, has done it
			return nil
		}
		switch _, err := s.Exists(ctx, l.lastCountNode()); {
		case errors.Is(err, framework.ErrNoNode):
			return ErrCounting
		case err != nil:
			return err
		}
		return l.deleteCounts(ctx, s, count)
	})
}

// deleteCounts deletes all counts in one transaction, if the latch was not reset since this record
// was read. It writes the record again as it was.
func (l *Latch) deleteCounts(ctx context.Context, s *framework.Session, record latchRecord) error {
	ops := []framework.Op{framework.SetOp(l.path, record.encode(), record.version)}
	for _, dir := range []string{l.by, l.at} {
		names, _, err := s.Children(ctx, dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			ops = append(ops, framework.DeleteOp(znode.Join(dir, name), framework.AnyVersion))
		}
		ops = append(ops, framework.DeleteOp(dir, framework.AnyVersion),
			framework.CreateOp(dir, nil, framework.Persistent))
	}
	_, err := s.Multi(ctx, ops...)
	var refused *framework.TxError
	switch {
	case errors.Is(err, framework.ErrSuspended), errors.Is(err, framework.ErrBadVersion),
		errors.Is(err, framework.ErrNoNode):
		return recipe.ErrAgain
	case errors.As(err, &refused) && errors.Is(err, framework.ErrNotEmpty):
		if refused.Path == l.by || refused.Path == l.at { // a count that is one too many has come meanwhile
			return recipe.ErrAgain
		}
		return fmt.Errorf("%w: %s has children", errForeign, refused.Path)
	}
	return err
}

// Missing returns the number of counts that are missing until the latch opens. It reads behind a
// sync. The error wraps framework.ErrMismatch, framework.ErrForeign or framework.ErrNewer.
func (l *Latch) Missing(ctx context.Context) (n int, err error) {
	err = l.onSessions(ctx, "look at", func(s *framework.Session, _ latchCount) error {
		if err := s.Sync(ctx, l.by); err != nil {
			return err
		}
		stat, err := s.Exists(ctx, l.by)
		n = max(0, l.size-int(stat.NumChildren))
		return err
	})
	return n, err
}

// onSessions runs f on session after session until it is done, with the latch's present count. It
// creates the latch first if it is missing.
func (l *Latch) onSessions(ctx context.Context, op string, f func(s *framework.Session, count latchCount) error) error {
	if l.err != nil {
		return failure.Wrap(op, l.path, l.err)
	}
	return failure.Wrap(op, l.path, recipe.OnSession(ctx, l.client, func(s *framework.Session) error {
		count, err := l.createOrCheck(ctx, s)
		if err != nil {
			return err
		}
		return f(s, count)
	}))
}

// createOrCheck creates the latch, or checks the existing one. It returns the present count.
func (l *Latch) createOrCheck(ctx context.Context, s *framework.Session) (latchCount, error) {
	record, err := l.readRecord(ctx, s)
	if !errors.Is(err, framework.ErrNoNode) {
		return record.latchCount, err
	}
	rs, err := s.Multi(ctx, framework.CreateOp(l.path, nodeRecord{Kind: latchKind, Size: l.size}.encode(),
		framework.Persistent),
		framework.CreateOp(l.by, nil, framework.Persistent), framework.CreateOp(l.at, nil, framework.Persistent))
	switch {
	case errors.Is(err, framework.ErrNoNode):
		dir, _ := znode.Split(l.path)
		if err := s.MakeDirs(ctx, dir); err != nil {
			return latchCount{}, err
		}
		return latchCount{}, recipe.ErrAgain
	case errors.Is(err, framework.ErrNodeExists), errors.Is(err, framework.ErrSuspended):
		return latchCount{}, recipe.ErrAgain
	case err != nil:
		return latchCount{}, err
	}
	return latchCount{czxid: rs[0].Zxid}, nil
}

// latchRecord is a latch's record, and which count it belongs to.
type latchRecord struct {
	nodeRecord
	latchCount
}

// latchCount identifies one count of a latch: the time between two resets.
type latchCount struct {
	czxid   int64 // the transaction that has created the latch
	version int32 // of the record: each reset raises it
}

// readRecord reads the record.
func (l *Latch) readRecord(ctx context.Context, s *framework.Session) (latchRecord, error) {
	data, stat, err := s.Get(ctx, l.path)
	if err != nil {
		return latchRecord{}, err
	}
	r, err := parseSizedRecord(l.path, latchKind, data, maxMembers)
	if err == nil && r.Size != l.size {
		err = &MismatchError{l.path, r.Size, l.size}
	}
	return latchRecord{r, latchCount{stat.Czxid, stat.Version}}, err
}

// countName is the name of a count's node, without its number.
const countName = "c-"

// lastCountNode is the node that opens the latch when it is created.
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

package election

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/lifetime"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
)

// Term is the time for which one candidate leads: a lease on leadership.
//
// Guarantee: Context is done before the servers can let another candidate lead, as long as this
// process is scheduled. Not guaranteed: that a paused process notices the end in time; use Token
// and Guard against its late writes.
type Term struct {
	client  *framework.Client
	path    string // of the election
	config  electionConfig
	line    *waitline.Line
	waiting *waitingGroup
	grant   *waitline.Grant    // its node is the first in line
	life    *lifetime.Lifetime // within the grant
	began   time.Time
	watches sync.WaitGroup // goroutines that may end the term
	onEnd   func()         // called once, before the grant is released

	trace  map[string]string // of its campaign
	number int64
	since  time.Time
	record termWriter

	mu        sync.Mutex
	led       bool // by Lead, which gives the term up once its function has returned
	successor *termSuccessor
	givenUp   sync.Once
}

// Context is done when the term has ended. Its cause wraps locks.ErrReleased, ErrTransferred,
// locks.ErrMaxHold, ErrUnhealthy, ErrDisconnected, framework.ErrSessionLost,
// framework.ErrNodeGone or framework.ErrClosed. It carries the values of the context that Campaign
// got, and does not end with that one.
func (t *Term) Context() context.Context { return t.life.Context() }

// Token is the term's fencing token: it rises with every term of the election.
func (t *Term) Token() int64 { return t.grant.Node().Zxid }

// Number counts the election's terms. Java candidates do not count their terms, and a leader that
// is lost at once may skip a number. Two terms have different numbers.
func (t *Term) Number() int64 { return t.number }

// Since is when the term began, by this machine's clock.
func (t *Term) Since() time.Time { return t.since }

// Trace is the trace context of the campaign that has won the term, in the form of the client's
// propagators (framework.WithPropagators). A span of work within the term can link to that
// campaign. The term's record has the same trace context. Do not change the map.
func (t *Term) Trace() map[string]string { return t.trace }

// ID is the leader's id; see WithID.
func (t *Term) ID() string { return t.config.id }

// Node is the path of the leader's node.
func (t *Term) Node() string { return t.grant.Node().Path }

// Session is the number of the session that the term belongs to.
func (t *Term) Session() framework.SessionID { return t.grant.Session().ID() }

// Remaining is the time until the term ends, unless a later proof of life extends the time; see
// locks.Lease.Remaining.
func (t *Term) Remaining() time.Duration {
	if t.Err() != nil {
		return 0
	}
	return t.grant.Session().LeaseRemaining()
}

// Err is nil while the term stands, else why it ended. It reads the clock, so it is right at once
// in a process that was paused.
func (t *Term) Err() error { return t.life.Err() }

// Guard is an operation for a transaction (Client.Multi) that lets it happen only while the term
// stands. After the term's end, the client refuses to send the transaction. The servers refuse it
// once the leader's node is gone.
func (t *Term) Guard() framework.Op {
	return primitives.When(framework.CheckOp(t.Node(), framework.AnyVersion), t.Err)
}

// beginTerm records the term, in a transaction that the leader's node guards. It fails for a
// candidate whose node is gone, or that a transfer has passed over: Campaign does not return a term
// to such a candidate.
func (t *Term) beginTerm(ctx context.Context) error {
	t.since = time.Now().UTC()
	err := t.record.updateRecord(ctx, func(old termRecord) termRecord {
		if old.Token == t.Token() { // already written, but the reply was lost
			return old
		}
		return t.recordAfter(old, old.Number+1, t.config.metadata)
	})
	t.number = t.record.last.Number
	return err
}

// recordAfter returns this term's record, to replace an old one. It keeps the fields of later
// releases.
func (t *Term) recordAfter(old termRecord, number int64, m map[string]string) termRecord {
	_, name := znode.Split(t.Node())
	return termRecord{Number: number, Token: t.Token(), Node: name, ID: t.ID(), Since: t.since, Metadata: m,
		Trace: t.trace, unknown: old.unknown}
}

// watchForReasonsToEnd ends the term after its longest time, when a health check fails, with the
// connection if WithStepDown says so, or in favour of a preferred candidate. Its goroutines end
// with the term's context.
func (t *Term) watchForReasonsToEnd() {
	if t.config.maxTerm > 0 {
		timer := time.AfterFunc(t.config.maxTerm, func() { t.endTerm(errMaxTerm) })
		context.AfterFunc(t.Context(), func() { timer.Stop() })
	}
	if t.config.health != nil {
		t.watches.Go(func() {
			if err := t.config.health.waitUntilUnhealthy(t.Context()); t.Context().Err() == nil {
				t.endTerm(err)
			}
		})
	}
	if t.config.stepDown == AtSuspended {
		changes := t.client.FollowState(t.Context()) // from now on
		t.watches.Go(func() {
			for c := range changes { // each: the session may be connected again by now
				if c.SessionID == t.Session() {
					t.stepDownUnlessConnected(c.State)
				}
			}
		})
		if s := t.grant.Session(); s.Err() == nil {
			t.stepDownUnlessConnected(s.State())
		}
	}
	t.watches.Go(t.watchPreferred)
}

func (t *Term) stepDownUnlessConnected(state framework.State) {
	if state != framework.Connected {
		t.endTerm(fmt.Errorf("%w: the session is %v", ErrDisconnected, state))
	}
}

// watchPreferred hands the term to a candidate of a higher priority when it is due.
func (t *Term) watchPreferred() {
	w := &preferredWatch{id: t.config.id, waiting: t.waiting, priority: t.config.priority,
		earliest: t.began.Add(t.config.minTerm), listWaiting: t.listWaiting,
		handTo: func(s *termSuccessor, cause error) error {
			_, err := t.endInFavourOf(s, cause)
			return err
		}}
	pauses := recipe.NewBackoff(t.client)
	for t.Context().Err() == nil {
		err := w.watchUntilEnd(t.Context(), t.grant.Session())
		if t.Context().Err() != nil {
			return
		}
		t.client.Logger().Warn("preferred candidates cannot be watched", "path", t.path, "error", err)
		_ = pauses.Pause(t.Context()) // the loop's condition notices its end
	}
}

// leadUntilEnd runs the function of Lead for this term and then gives the term up, even if the
// function panics. It returns the function's error. If the function's context had ended, it returns
// only an error that ends Lead.
func (t *Term) leadUntilEnd(ctx context.Context, f func(ctx context.Context, term *Term) error) error {
	t.mu.Lock()
	t.led = true
	t.mu.Unlock()
	defer t.giveUp(ctx)
	both := t.life.Child(t.Context()) // ends with the term and with ctx
	defer both.End(context.Canceled)
	stop := context.AfterFunc(ctx, func() { both.End(context.Cause(ctx)) })
	defer stop()
	if ctx.Err() != nil { // AfterFunc would end it a moment later
		both.End(context.Cause(ctx))
	}
	within := both.Context()
	if within.Err() != nil {
		return nil
	}
	err := f(within, t)
	var permanent *permanentError
	switch {
	case err == nil:
		_ = recipe.Pause(within, time.Until(t.began.Add(t.config.minTerm)))
		return nil
	case errors.Is(err, ErrStop), errors.As(err, &permanent), within.Err() == nil:
		return err
	}
	return nil
}

// SetMetadata replaces the leader's metadata. It writes only while the term stands: otherwise the
// error is why the term ended. An error of ctx leaves open whether the metadata was written. The
// next term begins with the metadata of WithMetadata.
func (t *Term) SetMetadata(ctx context.Context, m map[string]string) error {
	err := checkMetadata(m)
	if err == nil {
		m = maps.Clone(m)
		err = t.record.updateRecord(ctx, func(old termRecord) termRecord { return t.recordAfter(old, t.number, m) })
	}
	return failure.Wrap("set the metadata of", t.path, err)
}

// Resign ends the term's context, then deletes its node, so that the next candidate leads. It
// returns nil when the servers have confirmed that the node is gone; else the error wraps
// framework.ErrUnconfirmed and the reason. It is a cleanup (framework.Client.CleanupContext): it
// also waits if ctx has ended. After that the deletion goes on in the background, and Client.Close
// waits for its end. The term is over in any case. A second call waits for the same deletion.
//
// Within Lead, Resign does not wait, and returns nil: Lead deletes the node once its function has
// returned.
func (t *Term) Resign(ctx context.Context) error {
	if t.endTerm(locks.ErrReleased) {
		return nil
	}
	handedOver, err := t.release(ctx)
	t.logHandOver("leadership was given up, but did not go to the chosen candidate", handedOver)
	return failure.Wrap("resign", t.path, err)
}

// TransferTo ends the term in favour of the first candidate in line with this id. Candidates before
// it lose their places and join again, so that tokens still rise.
//
// The term's context ends at once, with ErrTransferred as its cause. Within Lead, leadership goes
// over once the function has returned. Otherwise TransferTo hands it over before it returns, and
// the term needs no Resign. The error wraps framework.ErrNotFound when no candidate with this id
// waits, and then the term stands. If the term had ended before, the error is why: of several
// transfers at once, one is done, and the others return its ErrTransferred. When the candidate
// leaves at the last moment, or the outcome is unknown, or no server answers for as long as a
// cleanup may last, the term is over, the first in line leads, and the error says so; Lead logs the
// error.
func (t *Term) TransferTo(ctx context.Context, id string) error {
	return failure.Wrap("transfer", t.path, t.transferTo(ctx, id))
}

func (t *Term) transferTo(ctx context.Context, id string) error {
	if err := t.Err(); err != nil {
		return err
	}
	if err := recipe.Sync(ctx, t.client, t.path); err != nil {
		// a candidate may be in line that a lagging server does not show yet
		return err
	}
	line, err := t.listWaiting(ctx)
	if err != nil {
		return err
	}
	s := chooseSuccessor(line, func(c waitline.Entry) bool { return string(c.Data) == id })
	if s == nil {
		if err := t.Err(); err != nil { // the line changes when a term ends
			return err
		}
		return fmt.Errorf("%w: no candidate in line has the id %q", errNoCandidate, id)
	}
	led, err := t.endInFavourOf(s, fmt.Errorf("%w: to %q", ErrTransferred, id))
	if led || err != nil {
		return err
	}
	handedOver, _ := t.release(ctx) // after a hand-over the node is gone
	return handedOver
}

// listWaiting lists the candidates behind the leader, in order.
func (t *Term) listWaiting(ctx context.Context) ([]waitline.Entry, error) {
	line, err := t.line.List(ctx, t.client)
	if err != nil {
		return nil, err
	}
	own := slices.IndexFunc(line, func(c waitline.Entry) bool { return c.Node == t.Node() })
	if own < 0 { // the server may lag, or the term is over
		return nil, nil
	}
	return line[own+1:], nil
}

// endInFavourOf ends the term in favour of a successor. When the term has ended already, it returns
// why, and does not record the successor: of several transfers at once, one is done and the others
// fail.
func (t *Term) endInFavourOf(s *termSuccessor, cause error) (led bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.Err(); err != nil {
		return false, err
	}
	t.successor = s
	t.life.End(cause)
	return t.led, nil
}

// endTerm ends the term's context, and reports whether Lead will give the term up. The lock keeps
// it out of endInFavourOf, between the check that the term stands and its end.
func (t *Term) endTerm(cause error) (led bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.life.End(cause)
	return t.led
}

// giveUp calls release and logs its errors.
func (t *Term) giveUp(ctx context.Context) {
	lost := t.grant.Err() // the client's log tells of it
	handedOver, err := t.release(ctx)
	t.logHandOver("leadership went to the first in line, not to the chosen candidate", handedOver)
	if err != nil && lost == nil {
		t.client.Logger().Warn("leadership was given up, and the servers have not confirmed it", "path",
			t.path, "error", err)
	}
}

// logHandOver logs the error of a hand-over, unless it is nil.
func (t *Term) logHandOver(message string, err error) {
	if err != nil {
		t.client.Logger().Warn(message, "path", t.path, "error", err)
	}
}

// release ends the term and gives leadership to the successor, or to the next in line.
// handedOver is the error of the hand-over, of the first call. err says that the servers have not
// confirmed that the node is gone.
func (t *Term) release(ctx context.Context) (handedOver, err error) {
	ctx, cancel := t.client.CleanupContext(ctx)
	defer cancel()
	t.endTerm(locks.ErrReleased)
	t.givenUp.Do(func() {
		t.watches.Wait()
		t.mu.Lock()
		s := t.successor
		t.mu.Unlock()
		if s != nil {
			handedOver = s.handOver(ctx, t.client, t.grant)
		}
		t.onEnd()
	})
	return handedOver, t.grant.Release(locks.ErrReleased, nil).Wait(ctx)
}

package ids

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// The next block has double the size of the present one if that has lasted less than shortLasting
// when four fifths of it are given, and half the size if more than longLasting.
const (
	shortLasting = time.Second
	longLasting  = 10 * time.Second
)

// Sequence gives numbers that are unique among all users of its path. It is safe for concurrent
// use.
//
//	<path>   persistent: the first number that no block contains
//
// Guarantee: a number is given at most once, also when replies are lost, sessions end, and
// processes die or stand still, unless somebody deletes the node or sets it back by hand. The
// numbers of one Sequence rise. If the node has a lower number than this Sequence has written, Next
// returns ErrSetBack.
//
// Not guaranteed: that there are no gaps. A process reserves blocks of numbers. It loses the rest
// of its blocks when it ends, and a block whose write got no answer. The numbers of several
// processes rise by block only: a later number may be lower than one that another process gave
// before.
//
// Next gives the numbers of a reserved block from memory, also while the session is suspended or
// lost: a block does not belong to a session.
type Sequence struct {
	client *framework.Client
	path   string
	opts   sequenceOptions
	err    error // of the arguments

	block atomic.Pointer[numberBlock] // the present block; nil before the first, and after Close

	reservations
	ready *numberBlock // the next block, or nil if it is not reserved yet; guarded by mu
	size  int64        // of the latest reserved block; guarded by mu

	// the number that this Sequence has last written into the node; used only by the reservation
	// under way
	written int64
}

// numberBlock is a block of numbers that only this Sequence may give.
type numberBlock struct {
	first, size int64
	reserveAt   int64        // how many numbers are given when the next block is reserved
	began       time.Time    // when the block became the present one
	asked       atomic.Int64 // how many numbers callers have asked for, which may be more than size
}

// NewSequence returns the sequence at path. It sends no request before the first Next. If an
// argument is invalid, Next returns an error that says so.
func NewSequence(client *framework.Client, path string, opts ...SequenceOption) *Sequence {
	s := &Sequence{client: client, path: path}
	s.opts, s.err = recipe.ApplyOptions(sequenceDefaults(), opts)
	if err := recipe.CheckClientAndPath(client, path, "a sequence"); err != nil {
		s.err = err
	}
	if s.err == nil {
		s.tel = newReserveTelemetry(client, "sequence")
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Path is the sequence's path.
func (s *Sequence) Path() string { return s.path }

// Validate returns what is wrong with the arguments of NewSequence, as every call does, or nil. It
// sends no request.
func (s *Sequence) Validate() error { return s.err }

// Next returns the next number. It takes a reserved number from memory, also when ctx has ended.
// Without a reserved number it waits for a reservation until ctx ends. The error is that of ctx or
// wraps framework.ErrForeign, framework.ErrNewer, ErrSetBack, ErrExhausted, framework.ErrClosed,
// framework.ErrInvalid or framework.ErrNoAuth. Next may be called again after any error.
func (s *Sequence) Next(ctx context.Context) (int64, error) {
	for {
		if b := s.block.Load(); b != nil {
			n := b.asked.Add(1)
			if n == b.reserveAt {
				s.reserveAhead()
			}
			if n <= b.size {
				return b.first + n - 1, nil
			}
		}
		if err := s.waitForBlock(ctx); err != nil {
			return 0, failure.Wrap("take a number of", s.path, err)
		}
	}
}

// Close drops the rest of the reserved blocks, ends a reservation that is under way, and waits for
// its end. It is a cleanup (framework.Client.CleanupContext): it also waits if ctx has ended. If
// that lasts longer, the error wraps framework.ErrUnconfirmed. Later calls of Next return
// framework.ErrClosed.
func (s *Sequence) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed, s.ready = true, nil
	s.block.Store(nil)
	s.cancel()
	s.mu.Unlock()
	return failure.Wrap("close", s.path, recipe.FinishCleanup(ctx, s.client, s.tasks.Done(), nil))
}

// waitForBlock waits until the present block may have a number to give. It makes the next block the
// present one when that is used up.
func (s *Sequence) waitForBlock(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	if b := s.block.Load(); b != nil && b.asked.Load() < b.size { // another caller has made this block the present one
		s.mu.Unlock()
		return nil
	}
	if s.ready != nil {
		s.ready.began = time.Now()
		s.block.Store(s.ready)
		s.ready = nil
		s.mu.Unlock()
		return nil
	}
	next := s.beginReservation()
	s.mu.Unlock()
	return s.waitFor(ctx, next)
}

// reserveAhead begins to reserve the next block before the present one is used up. If that fails,
// the next caller that needs the block tries again.
func (s *Sequence) reserveAhead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.ready == nil {
		s.beginReservation()
	}
}

// beginReservation begins to reserve the next block, unless a reservation is under way. Guarded by
// mu.
func (s *Sequence) beginReservation() *pendingReservation {
	var b *numberBlock
	size := s.nextSize()
	return s.begin(func() (err error) {
		b, err = s.reserveInNode(size)
		return err
	}, func(err error) {
		if err == nil {
			s.ready, s.size = b, size
		}
	})
}

// nextSize returns the size for the next block, by how long the present one has lasted. Guarded by
// mu.
func (s *Sequence) nextSize() int64 {
	b := s.block.Load()
	if b == nil {
		return max(s.size, s.opts.least)
	}
	switch lasted := time.Since(b.began); {
	case lasted < shortLasting:
		return min(2*s.size, s.opts.most)
	case lasted > longLasting:
		return max(s.size/2, s.opts.least)
	}
	return s.size
}

// reserveInNode reserves a block: it raises the node's number past the block. Only a write that was
// answered gives the block to this Sequence; after a write without an answer it reserves another
// block.
func (s *Sequence) reserveInNode(size int64) (b *numberBlock, err error) {
	err = recipe.OnSession(s.ctx, s.client, func(session *framework.Session) error {
		b, err = s.tryToReserve(session, size)
		return err
	}, failure.IsTransient, isUnknown)
	return b, err
}

// isUnknown reports whether the outcome of a write is unknown. OnSession repeats the step then,
// which reads the node again.
func isUnknown(err error) bool { return errors.Is(err, framework.ErrOutcomeUnknown) }

// tryToReserve reserves a block of this size, or of fewer numbers at the end of the sequence. It
// returns recipe.ErrAgain if another client has changed the node meanwhile.
func (s *Sequence) tryToReserve(session *framework.Session, size int64) (*numberBlock, error) {
	data, stat, err := session.Get(s.ctx, s.path)
	missing := errors.Is(err, framework.ErrNoNode)
	if err != nil && !missing {
		return nil, err
	}
	r := sequenceRecord{Next: s.opts.first}
	if !missing {
		if r, err = parseSequence(s.path, data); err != nil {
			return nil, err
		}
	}
	if missing && s.written > 0 || r.Next < s.written {
		return nil, s.checkSetBack(session)
	}
	first := r.Next
	if first > s.opts.last {
		return nil, fmt.Errorf("%w: the last one is %d", ErrExhausted, s.opts.last)
	}
	size = min(size, s.opts.last-first+1)
	r.Next = first + size
	if missing {
		err = session.Create(s.ctx, s.path, r.encode(), framework.Persistent)
	} else {
		_, err = session.Set(s.ctx, s.path, r.encode(), stat.Version)
	}
	switch {
	case missing && errors.Is(err, framework.ErrNoNode):
		dir, _ := znode.Split(s.path)
		if err := session.MakeDirs(s.ctx, dir); err != nil {
			return nil, err
		}
		return nil, recipe.ErrAgain
	case errors.Is(err, framework.ErrNoNode), errors.Is(err, framework.ErrNodeExists),
		errors.Is(err, framework.ErrBadVersion):
		return nil, recipe.ErrAgain // the server that refuses the write knows what another client has written before
	case err != nil:
		return nil, err
	}
	s.written = r.Next
	return &numberBlock{first: first, size: size, reserveAt: max(1, size*4/5)}, nil
}

// checkSetBack reads the node again after a sync, since a server that lags behind shows a lower
// number or no node, too. It returns ErrSetBack, or recipe.ErrAgain if the node is not set back.
func (s *Sequence) checkSetBack(session *framework.Session) error {
	if err := session.Sync(s.ctx, s.path); err != nil {
		return err
	}
	data, _, err := session.Get(s.ctx, s.path)
	if errors.Is(err, framework.ErrNoNode) {
		return fmt.Errorf("%w: there is no node, it had %d", ErrSetBack, s.written)
	}
	if err != nil {
		return err
	}
	r, err := parseSequence(s.path, data)
	switch {
	case err != nil:
		return err
	case r.Next < s.written:
		return fmt.Errorf("%w: it has %d, it had %d", ErrSetBack, r.Next, s.written)
	}
	return recipe.ErrAgain
}

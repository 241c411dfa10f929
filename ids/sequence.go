package ids

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/background"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// The next block has double the size if the present one has lasted less than shortLasting, and half the size if it has lasted more than longLasting.
const (
	shortLasting = time.Second
	longLasting  = 10 * time.Second
)

// Sequence gives numbers that are unique among all users of its path. It is safe for concurrent use.
//
//	<path>   persistent: the first number that no block contains
//
// Guarantee: a number is given at most once, also when replies are lost, sessions end, and processes die or stand still, unless somebody deletes the node or
// sets it back by hand. The numbers of one Sequence rise. If the node shows a lower number than before, Next fails with ErrSetBack.
//
// Not guaranteed: that there are no gaps. A process reserves blocks of numbers. It loses the rest of its blocks when it ends, and a block whose write got
// no answer. Numbers of several processes rise by block only: a later number may be lower than one that another process gave before.
//
// Next gives the numbers of a reserved block from memory, also while the session is suspended or lost: a block does not belong to a session.
type Sequence struct {
	client *framework.Client
	path   string
	opts   sequenceOptions
	tel    reserveTelemetry
	err    error // of the arguments

	block atomic.Pointer[numberBlock] // the present block; nil before the first, and after Close

	mu        sync.Mutex
	ready     *numberBlock        // reserved ahead
	reserving *pendingReservation // under way
	closed    bool
	size      int64 // of the latest block
	ctx       context.Context
	cancel    context.CancelFunc
	tasks     background.Tasks

	highestSeen int64 // the highest number that the node has shown; used by the reservation under way alone
}

// numberBlock is numbers that this process alone may give.
type numberBlock struct {
	first, size int64
	ahead       int64        // the number given, counted from 1, at which the next block is reserved
	began       time.Time    // when the first was given
	given       atomic.Int64 // how many numbers callers have asked for, which may be more than size
}

// pendingReservation is a reservation under way. err is valid after done is closed.
type pendingReservation struct {
	done chan struct{}
	err  error
}

// waitForEnd waits for the end of the reservation, until ctx ends.
func (r *pendingReservation) waitForEnd(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return failure.Ended(ctx)
	}
}

// NewSequence returns the sequence at path. It needs no request until the first Next. If an argument is invalid, every call returns an error that
// says so.
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

// Next returns the next number. It takes a reserved number from memory, also when ctx has ended. Without a reserved number it waits for a reservation until
// ctx ends. The error is that of ctx or wraps ErrForeign, ErrNewer, ErrSetBack, ErrExhausted, ErrClosed, framework.ErrClosed or framework.ErrNoAuth. Next may
// be called again after any error.
func (s *Sequence) Next(ctx context.Context) (int64, error) {
	for {
		if b := s.block.Load(); b != nil {
			n := b.given.Add(1)
			if n == b.ahead {
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

// Close ends a reservation that is under way and waits for its end, until ctx ends. It drops the rest of the reserved blocks.
func (s *Sequence) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed, s.ready = true, nil
	s.block.Store(nil)
	s.cancel()
	s.mu.Unlock()
	select {
	case <-s.tasks.Done():
		return nil
	case <-ctx.Done():
		return failure.Wrap("close", s.path, failure.Ended(ctx))
	}
}

// waitForBlock waits until a block may have a number to give.
func (s *Sequence) waitForBlock(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	if b := s.block.Load(); b != nil && b.given.Load() < b.size { // another caller was here before
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
	under, began := s.beginReservation(), time.Now()
	s.mu.Unlock()
	err := under.waitForEnd(ctx)
	s.tel.recordWait(began, err)
	return err
}

// reserveAhead reserves the next block before the present one is used up. After a failure, the next caller that needs the block tries again.
func (s *Sequence) reserveAhead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.ready == nil {
		s.beginReservation()
	}
}

// beginReservation begins to reserve the next block, unless that is under way. Guarded by mu.
func (s *Sequence) beginReservation() *pendingReservation {
	if s.reserving != nil {
		return s.reserving
	}
	r, size := &pendingReservation{done: make(chan struct{})}, s.nextSize()
	s.reserving = r
	s.tasks.Start(func() {
		b, err := s.reserveInNode(size)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil && s.closed {
			err = ErrClosed
		}
		if err == nil {
			s.ready, s.size = b, size
		} else if s.ctx.Err() != nil {
			err = ErrClosed
		}
		s.tel.countReservation(err)
		r.err, s.reserving = err, nil
		close(r.done)
	})
	return r
}

// nextSize is the size of the next block, by how long the present one has lasted. Guarded by mu.
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

// reserveInNode moves the node's number past a block. Only a write that was answered gives the block to this process.
func (s *Sequence) reserveInNode(size int64) (b *numberBlock, err error) {
	err = recipe.OnSession(s.ctx, s.client, func(session *framework.Session) error {
		b, err = s.tryToReserve(session, size)
		return err
	}, failure.IsTransient, isUnknown)
	return b, err
}

// isUnknown reports whether an error says that a write has no answer. OnSession repeats the step then, which reads the node again.
func isUnknown(err error) bool { return errors.Is(err, framework.ErrOutcomeUnknown) }

func (s *Sequence) tryToReserve(session *framework.Session, size int64) (*numberBlock, error) {
	data, st, err := session.Get(s.ctx, s.path)
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
	if missing && s.highestSeen > 0 || r.Next < s.highestSeen {
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
		_, err = session.Set(s.ctx, s.path, r.encode(), st.Version)
	}
	switch {
	case missing && errors.Is(err, framework.ErrNoNode):
		dir, _ := znode.Split(s.path)
		if err := session.MakeDirs(s.ctx, dir); err != nil {
			return nil, err
		}
		return nil, recipe.ErrAgain
	case errors.Is(err, framework.ErrNoNode), errors.Is(err, framework.ErrNodeExists), errors.Is(err, framework.ErrBadVersion):
		return nil, recipe.ErrAgain // with its refusal the server shows what was written before
	case err != nil:
		return nil, err
	}
	s.highestSeen = r.Next
	return &numberBlock{first: first, size: size, ahead: max(1, size*4/5)}, nil
}

// checkSetBack looks again behind a sync, since a server that is behind shows a lower number, too.
func (s *Sequence) checkSetBack(session *framework.Session) error {
	if err := session.Sync(s.ctx, s.path); err != nil {
		return err
	}
	data, _, err := session.Get(s.ctx, s.path)
	if errors.Is(err, framework.ErrNoNode) {
		return fmt.Errorf("%w: there is no node, it had %d", ErrSetBack, s.highestSeen)
	}
	if err != nil {
		return err
	}
	r, err := parseSequence(s.path, data)
	switch {
	case err != nil:
		return err
	case r.Next < s.highestSeen:
		return fmt.Errorf("%w: it has %d, it had %d", ErrSetBack, r.Next, s.highestSeen)
	}
	return recipe.ErrAgain
}

package framework

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// Why a proof of life has failed.
var (
	errConnectionGone = errors.New("connection lost")
	errOverdue        = errors.New("no answer to a proof of life")
)

// maxChecks bounds the nodes that one heartbeat checks.
const maxChecks = 100

// sendHeartbeat proves the session's life once on the connection of this generation: a write
// without effect, then a sync. Only what was acknowledged on that very connection counts.
func (s *Session) sendHeartbeat(generation int64) error {
	return s.sendHeartbeatWith(generation, func(l *sessionLease, _ time.Duration) { l.writeAcknowledged() })
}

// sendHeartbeatWith sends a heartbeat that moves the lease on when its write is acknowledged,
// before its sync.
func (s *Session) sendHeartbeatWith(generation int64, written func(l *sessionLease, now time.Duration)) (err error) {
	ctx, cancel := s.withHeartbeatTimeout()
	defer cancel()
	began := s.setup.clock.Now()
	defer func() { s.setup.measures.heartbeatEnded(s.setup.clock.Now()-began, err) }()
	sentAt, err := s.proofWrite(ctx, generation)
	if err != nil {
		return err
	}
	s.extendLease(written)
	if err := s.syncWithin(ctx, generation); err != nil {
		return err
	}
	pairs := s.transport.mon.PingPairs(generation)
	s.extendLease(func(l *sessionLease, now time.Duration) { l.syncAcknowledged(sentAt, pairs, now) })
	return nil
}

// beginLease begins a new lease from a packet, unless the answers come too late.
func (s *Session) beginLease(generation int64, packet wakingPacket) error {
	for range packet.writes - 1 {
		ctx, cancel := s.withHeartbeatTimeout()
		_, err := s.proofWrite(ctx, generation)
		cancel()
		if err != nil {
			return err
		}
	}
	return s.sendHeartbeatWith(generation, func(l *sessionLease, now time.Duration) { l.beginFrom(packet, now) })
}

// nextPacket returns the packet from which a lease may begin after a wait, if there is a reason to
// be awake.
func (s *Session) nextPacket(generation int64) (packet wakingPacket, wait time.Duration, found bool) {
	pairs := s.transport.mon.PingPairs(generation)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isNeeded() {
		return packet, 0, false
	}
	return s.lease.nextPacket(pairs, s.setup.clock.Now())
}

// proofWrite sends a write without effect. It returns a reading of the clock before that.
//
// A server that has too much to do answers a request by itself, without the ensemble
// (ErrOverloaded). That does not prove the session's life, but the connection works: the request is
// repeated there. An overdue proof tries another server, as without an answer.
func (s *Session) proofWrite(ctx context.Context, generation int64) (sentAt time.Duration, err error) {
	err = s.whileOverloaded(ctx, func() error {
		sentAt = s.setup.clock.Now()
		return s.writeHeartbeat(ctx)
	})
	if err == nil && !s.isCurrentConnection(generation) {
		err = errConnectionGone
	}
	return sentAt, err
}

// withHeartbeatTimeout begins a proof. It returns a context that ends, with errOverdue, when the
// proof is overdue.
func (s *Session) withHeartbeatTimeout() (context.Context, context.CancelFunc) {
	s.unproven.writes = s.writesAnswered.Load()
	if s.unproven.since == 0 {
		s.unproven.since = max(1, s.setup.clock.Now())
	}
	return context.WithTimeoutCause(s.ctx, heartbeatTimeout(s.Timeout(), s.setup.cfg.furtherBack()), errOverdue)
}

// proofSync sends ZooKeeper's own sync, which the server answers while it follows a leader, or
// believes that it leads.
func (s *Session) proofSync(generation int64) error {
	ctx, cancel := s.withHeartbeatTimeout()
	defer cancel()
	return s.syncWithin(ctx, generation)
}

func (s *Session) syncWithin(ctx context.Context, generation int64) error {
	err := s.whileOverloaded(ctx,
		func() error { return requester{ctx, s.transport, true}.zkSync(s.transport.ns.serverPath("/")) })
	if err == nil && !s.isCurrentConnection(generation) {
		err = errConnectionGone
	}
	if err == nil {
		s.unproven.since = 0
	}
	return err
}

// whileOverloaded repeats a request, with pauses, while the server throttles it. When ctx ends
// meanwhile, the error wraps ErrOverloaded too.
func (s *Session) whileOverloaded(ctx context.Context, request func() error) error {
	back := backoff.New(s.setup.cfg.RetryBase, s.setup.cfg.RetryMax)
	for {
		err := request()
		if !errors.Is(err, ErrOverloaded) {
			return err
		}
		if ended := s.transport.pauseBeforeRetry(ctx, back); ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// isCurrentConnection reports whether the connection of this generation is still the present one.
func (s *Session) isCurrentConnection(generation int64) bool {
	st := s.transport.mon.Status()
	return st.Up && st.Generation == generation
}

// writeHeartbeat checks held nodes in a transaction. A refusal names a node that another client has
// deleted, and ends its hold. The transaction counts all the same: the servers have put it in their
// order as they do an accepted one, and answer it in that order
// (docs/adr/0093-a-refused-heartbeat-counts.md). They have not checked the nodes behind that one,
// so these get their watches now.
func (s *Session) writeHeartbeat(ctx context.Context) error {
	held := s.holds.nodesToCheck(maxChecks)
	rs, err := requester{ctx, s.transport, true}.multi(s.heartbeatChecks(held)).asRead()
	if err := errorUnlessOrdered(rs, err); err != nil {
		return err
	}
	if i := indexOfRefused(rs); i >= 0 && i < len(held) { // else the root is missing or forbidden
		held[i].endHold(rs[i].Err)
		s.holds.watchSoon(held[i+1:])
	}
	return nil
}

// heartbeatChecks checks the held nodes, or the root while no node is held.
func (s *Session) heartbeatChecks(held []*heldNode) []wire.MultiPart {
	if len(held) == 0 {
		return []wire.MultiPart{checkOpPart(s.transport.ns.serverPath("/"), AnyVersion)}
	}
	parts := make([]wire.MultiPart, len(held))
	for i, n := range held {
		parts[i] = checkOpPart(n.full, AnyVersion)
	}
	return parts
}

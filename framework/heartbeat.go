package framework

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/internal/backoff"
	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// Why a proof of life has failed.
var (
	errConnectionGone = errors.New("connection lost")
	errOverdue        = errors.New("no answer to a proof of life")
)

// maxChecks bounds the nodes that one heartbeat checks.
const maxChecks = 100

// heartbeats proves a session's life on one connection after the other. Only what was acknowledged
// on conn itself counts. It belongs to the session's loop.
type heartbeats struct {
	s             *Session
	conn          *link.Connection
	unprovenSince time.Duration // when the first proof after the last answered one began; 0 if none has
	writesBefore  int64         // Session.writesAnswered when the latest proof began
}

// beginConnection proves the session's life on the connection just established, or only that its
// server answers while the session is dormant.
func (h *heartbeats) beginConnection() error {
	s := h.s
	s.onHandshake(h.conn.Handshake)
	err := h.presentCredentials()
	if err == nil {
		err = h.proveOrAsk()
	}
	if err != nil {
		// a server that takes connections and then refuses requests is tried as seldom as one that
		// is down
		s.setup.servers.recordFailure(h.conn.Server, link.Unproven(err))
		return err
	}
	s.setup.servers.markProven()
	s.watches.onReconnect() // before the first watch of this connection, which it must not end
	s.enterState(Connected, nil)
	return nil
}

// keepProving sends heartbeats while the session is awake, until the connection is lost or the
// session has ended. A proof that is overdue ends the connection, unless nothing is at stake and
// the servers are only slow: then the session falls asleep
// (docs/adr/0102-slow-servers-are-not-left-without-need.md).
func (h *heartbeats) keepProving() error {
	for {
		h.s.watchHeldNodes(h.conn)
		wait := h.waitWhileDormant
		if h.s.isAwake() {
			wait = h.waitForNext
		}
		err := wait()
		if err == nil && !h.s.fallAsleep() {
			err = h.proveOrAsk()
		}
		if err != nil && !(errors.Is(err, errOverdue) && h.sleepUnproven()) {
			return err
		}
	}
}

// proveOrAsk proves the life of an awake session. It wakes a dormant session that is needed, if
// that is possible at once; otherwise it asks the server for an answer of the leader.
func (h *heartbeats) proveOrAsk() error {
	if h.s.isAwake() {
		return h.send(func(l *sessionLease, _ time.Duration) { l.writeAcknowledged() })
	}
	if evidence, wait, found := h.nextEvidence(); found && wait == 0 {
		return h.beginLease(evidence)
	}
	return h.proofSync()
}

// presentCredentials sends the credentials, which each new connection needs, and then lets requests
// pass.
func (h *heartbeats) presentCredentials() error {
	cfg := h.s.setup.cfg
	ctx, cancel := context.WithTimeout(h.s.ctx, heartbeatTimeout(h.conn.Timeout, cfg.extraHeartbeats()))
	defer cancel()
	for _, c := range cfg.Auth {
		if err := (requester{ctx, h.s.caller, true}).addAuth(c); err != nil {
			return err
		}
	}
	h.s.deletions.resendAll(func(calls []*link.Call) { h.conn.Admit(calls...) })
	return nil
}

// waitForNext waits until the next heartbeat is due.
func (h *heartbeats) waitForNext() error {
	pairs := h.conn.PingPairs()
	h.s.mu.Lock()
	t := time.NewTimer(h.s.lease.nextHeartbeat(pairs, h.s.setup.clock.Now()))
	h.s.mu.Unlock()
	defer t.Stop()
	for {
		if due, err := h.waitForChange(t.C); due || err != nil {
			return err
		}
	}
}

// waitWhileDormant waits until the dormant session is needed and can be woken. The server may be
// cut off from its ensemble and leave requests unanswered: when a request has waited for a
// heartbeat's interval, it sends a sync.
func (h *heartbeats) waitWhileDormant() error {
	interval := heartbeatInterval(h.s.Timeout())
	for {
		_, wait, found := h.nextEvidence()
		if found && wait == 0 {
			return nil
		}
		if !found && h.s.setup.cfg.ObserverMasters { // only another connection can begin a lease
			return errOverdue
		}
		if !found {
			wait = interval
		}
		t := time.NewTimer(wait)
		_, err := h.waitForChange(t.C)
		t.Stop()
		if err != nil {
			return err
		}
		if h.conn.IsStuck(h.s.setup.clock.Now() - interval) {
			if err := h.proofSync(); err != nil {
				return err
			}
		}
	}
}

// waitForChange waits until something may have changed, or the time is due. It fails when the
// connection is gone, or the session has ended.
func (h *heartbeats) waitForChange(timer <-chan time.Time) (due bool, err error) {
	if !h.conn.IsUp() {
		return false, errConnectionGone
	}
	select {
	case <-timer:
		return true, nil
	case <-h.s.transport.Changed():
	case <-h.s.wakeUps:
	case <-h.s.ctx.Done():
		return false, context.Cause(h.s.ctx)
	}
	return false, nil
}

// send sends a heartbeat: a write without effect, then a sync. acknowledged moves the lease on when
// the write is acknowledged, before the sync.
func (h *heartbeats) send(acknowledged func(l *sessionLease, now time.Duration)) (err error) {
	s := h.s
	ctx, cancel := h.beginProof()
	defer cancel()
	began := s.setup.clock.Now()
	defer func() { s.setup.measures.heartbeatEnded(s.setup.clock.Now()-began, err) }()
	sentAt, err := h.proofWrite(ctx)
	if err != nil {
		return err
	}
	s.extendLease(acknowledged)
	if err := h.syncWithin(ctx); err != nil {
		return err
	}
	pairs := h.conn.PingPairs()
	s.extendLease(func(l *sessionLease, now time.Duration) { l.syncAcknowledged(sentAt, pairs, now) })
	return nil
}

// beginLease begins a new lease from evidence, unless the answers come too late.
func (h *heartbeats) beginLease(evidence leaseEvidence) error {
	for range evidence.writes - 1 {
		ctx, cancel := h.beginProof()
		_, err := h.proofWrite(ctx)
		cancel()
		if err != nil {
			return err
		}
	}
	return h.send(func(l *sessionLease, now time.Duration) { l.beginFrom(evidence, now) })
}

// nextEvidence returns the evidence from which a lease may begin after a wait, if there is a reason
// to be awake.
func (h *heartbeats) nextEvidence() (evidence leaseEvidence, wait time.Duration, found bool) {
	pairs := h.conn.PingPairs()
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if !h.s.isNeeded() {
		return evidence, 0, false
	}
	return h.s.lease.nextEvidence(pairs, h.s.setup.clock.Now())
}

// proofWrite sends a write without effect. It returns a reading of the clock before that.
//
// A server that has too much to do answers a request by itself, without the ensemble
// (ErrOverloaded). That does not prove the session's life, but the connection works: the request is
// repeated there. An overdue proof tries another server, as without an answer.
func (h *heartbeats) proofWrite(ctx context.Context) (sentAt time.Duration, err error) {
	err = h.s.whileOverloaded(ctx, func() error {
		sentAt = h.s.setup.clock.Now()
		return h.s.writeHeartbeat(ctx)
	})
	if err == nil && !h.conn.IsUp() {
		err = errConnectionGone
	}
	return sentAt, err
}

// beginProof begins a proof. It returns a context that ends, with errOverdue, when the proof is
// overdue.
func (h *heartbeats) beginProof() (context.Context, context.CancelFunc) {
	h.writesBefore = h.s.writesAnswered.Load()
	if h.unprovenSince == 0 {
		h.unprovenSince = max(1, h.s.setup.clock.Now())
	}
	limit := heartbeatTimeout(h.s.Timeout(), h.s.setup.cfg.extraHeartbeats())
	return context.WithTimeoutCause(h.s.ctx, limit, errOverdue)
}

// proofSync sends ZooKeeper's own sync, which the server answers while it follows a leader, or
// believes that it leads.
func (h *heartbeats) proofSync() error {
	ctx, cancel := h.beginProof()
	defer cancel()
	return h.syncWithin(ctx)
}

func (h *heartbeats) syncWithin(ctx context.Context) error {
	c := h.s.caller
	err := h.s.whileOverloaded(ctx, func() error { return requester{ctx, c, true}.zkSync(c.ns.serverPath("/")) })
	if err == nil && !h.conn.IsUp() {
		err = errConnectionGone
	}
	if err == nil {
		h.unprovenSince = 0
	}
	return err
}

// sleepUnproven makes the session dormant when its proof of life is overdue, and reports whether
// the connection may stay. It must be cut if something is at stake, if the servers have answered no
// write since the proof began, or if they have answered no proof for a session timeout.
func (h *heartbeats) sleepUnproven() bool {
	s := h.s
	now := s.setup.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasStake() || s.writesAnswered.Load() == h.writesBefore || now-h.unprovenSince >= s.lease.timeout {
		return false
	}
	s.lease.endLease()
	return true
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
		if ended := s.caller.pauseBeforeRetry(ctx, back); ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// writeHeartbeat checks held nodes in a transaction. A refusal names a node that another client has
// deleted, and ends its hold. The transaction counts all the same: the servers have put it in their
// order as they do an accepted one, and answer it in that order
// (docs/adr/0093-a-refused-heartbeat-counts.md). They have not checked the nodes behind that one,
// so these get their watches now.
func (s *Session) writeHeartbeat(ctx context.Context) error {
	held := s.holds.nodesToCheck(maxChecks)
	rs, err := requester{ctx, s.caller, true}.multi(s.heartbeatChecks(held)).asRead()
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
		return []wire.MultiPart{checkOpPart(s.caller.ns.serverPath("/"), AnyVersion)}
	}
	parts := make([]wire.MultiPart, len(held))
	for i, n := range held {
		parts[i] = checkOpPart(n.full, AnyVersion)
	}
	return parts
}

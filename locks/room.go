package locks

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
)

// take takes n permits for the first in line: one transaction creates the leases, removes the node in
// line, and checks that the number of permits is the one that room was found in. A look behind the transaction
// finds out whether the record was deleted and declared again meanwhile: then the permits are given back.
func (s *Semaphore) take(ctx context.Context, c *contender, n int, room spaceFinder) (*Lease, error) {
	for {
		p, err := room(ctx, c.s, n)
		if err != nil {
			return nil, err
		}
		created, record, err := c.s.CreateTogetherAndStat(ctx, framework.Together{
			Dir: s.leases, Name: leaseName, Data: s.line.describe(ctx), Count: n, Mode: framework.EphemeralSequential,
			With: []framework.Op{framework.CheckOp(s.record, p.version), framework.DeleteOp(c.node.Path, framework.AnyVersion)},
		}, s.record)
		var refused *framework.TxError
		switch {
		case err == nil:
			c.gone()
			if err := s.stands(ctx, c.s, p, record); err != nil {
				return nil, s.undo(ctx, c.s, created, err)
			}
			return s.lease(ctx, c.s, created)
		case !errors.As(err, &refused):
			return nil, err
		case refused.Index == n && !errors.Is(err, framework.ErrNoAuth): // resized, or deleted
			s.learn(nil)
		case refused.Index > n && errors.Is(err, framework.ErrNoNode):
			return nil, errPlaceLost
		default:
			return nil, err
		}
	}
}

// undo gives permits back that must not be used, and returns why. Who was in line has to queue again.
func (s *Semaphore) undo(ctx context.Context, sess *framework.Session, created []framework.Created, reason error) error {
	d := sess.Discard(paths(created)...)
	if !errors.Is(reason, errRecordReplaced) {
		return reason
	}
	s.learn(nil)
	select {
	case <-d.Done():
	case <-ctx.Done():
	}
	return errPlaceLost
}

// paths are the paths of nodes.
func paths(created []framework.Created) []string {
	nodes := make([]string, len(created))
	for i, c := range created {
		nodes[i] = c.Path
	}
	return nodes
}

func (s *Semaphore) lease(ctx context.Context, sess *framework.Session, created []framework.Created) (*Lease, error) {
	nodes := paths(created)
	lease := &Lease{path: s.path, node: nodes[0], nodes: nodes, token: created[0].Zxid, session: sess, back: func(early bool) returned {
		r, _ := s.line.discard(sess, early, nil, nodes...)
		return r
	}}
	if err := lease.holds(ctx, nodes...); err != nil {
		return nil, err
	}
	return lease.start(s.line.maxHold), nil
}

// roomNow finds room for n permits or does not wait.
func (s *Semaphore) roomNow(ctx context.Context, sess *framework.Session, n int) (permits, error) {
	p, err := s.limit(ctx, n)
	if err != nil {
		return permits{}, err
	}
	names, _, err := sess.Children(ctx, s.leases)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		return permits{}, err
	}
	if len(names)+n <= p.Permits {
		return p, nil
	}
	fresh, err := s.fresh(ctx) // somebody may have added some
	if err == nil && len(names)+n > fresh.Permits {
		err = ErrNotAcquired
	}
	return fresh, err
}

// room waits until there is room for n permits.
func (s *Semaphore) room(ctx context.Context, sess *framework.Session, n int) (permits, error) {
	p, err := s.roomNow(ctx, sess, n)
	if !errors.Is(err, ErrNotAcquired) {
		return p, err
	}
	if s.line.queued != nil { // the first in line waits for those that hold
		s.line.queued(0)
	}
	for {
		p, free, err := s.await(ctx, sess, n)
		if free || err != nil {
			return p, err
		}
	}
}

// await finds room, or waits until something has changed.
func (s *Semaphore) await(ctx context.Context, sess *framework.Session, n int) (p permits, free bool, err error) {
	p, record, err := s.watchLimit(ctx, sess, n)
	if err != nil {
		return p, false, err
	}
	defer record.Stop()
	names, _, leases, err := sess.WatchChildren(ctx, s.leases)
	if errors.Is(err, framework.ErrNoNode) { // all were given back, and the server has removed the directory
		return p, true, nil
	}
	if err != nil {
		return p, false, err
	}
	defer leases.Stop()
	if len(names)+n <= p.Permits {
		return p, true, nil
	}
	return p, false, change(ctx, sess, leases, record)
}

// watchLimit reads the number of permits and watches it.
func (s *Semaphore) watchLimit(ctx context.Context, sess *framework.Session, n int) (permits, *framework.Watch, error) {
	data, st, w, err := sess.WatchData(ctx, s.record)
	if errors.Is(err, framework.ErrNoNode) { // somebody has deleted it
		s.learn(nil)
		if _, err = s.limit(ctx, n); err == nil {
			return s.watchLimit(ctx, sess, n)
		}
	}
	if err != nil {
		return permits{}, nil, err
	}
	p, err := s.check(data, st)
	if err == nil {
		s.learn(&p)
		err = s.fits(p, n)
	}
	if err != nil {
		w.Stop()
	}
	return p, w, err
}

// change waits until one of two watches has seen something.
func change(ctx context.Context, sess *framework.Session, a, b *framework.Watch) error {
	select {
	case <-a.C():
		return nil
	case <-b.C():
		return nil
	case <-ctx.Done():
		return framework.Ended(ctx)
	case <-sess.Done():
		return context.Cause(sess.Context())
	}
}

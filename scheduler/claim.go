package scheduler

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// run is the run of a tick in this term. Its ID names both: a tick is claimed at most once in a term,
// so that whichever of several tries was applied, it was for this run.
func (d *duty) run(tick time.Time) Run {
	tick = tick.UTC()
	id := tick.Format("20060102T150405Z") + "-" + strconv.FormatInt(d.term.Token(), 16)
	return Run{Job: d.job.Name, Tick: tick, Token: d.term.Token(), ID: id}
}

var errRanBefore = errors.New("the tick was run before")

// take claims a tick and runs it: the state moves on and the claim appears in one transaction, while the
// term stands, or nothing happens. If the reply is lost, the next look behind a sync tells.
func (d *duty) take(p plan, version int32) step {
	return func(ctx context.Context) (step, error) {
		run := d.run(p.tick)
		p.state.Running = &RunRecord{ID: run.ID, Tick: run.Tick, Token: run.Token, Runner: d.term.ID(), Started: d.now().UTC()}
		err := d.commit(p.state, version, framework.CreateOp(d.claim(d.job.Name), []byte(run.ID), framework.Ephemeral))
		if err != nil {
			return d.refused(err)
		}
		d.settled(p)
		if d.job.begin(run.Tick) {
			d.start(ctx, run)
		} else { // it ran before somebody deleted the state
			d.runs.Go(func() { d.finish(run, errRanBefore) })
		}
		return d.wait, nil
	}
}

// record writes down ticks that are not run.
func (d *duty) record(p plan, version int32) step {
	return func(context.Context) (step, error) {
		if err := d.commit(p.state, version); err != nil {
			return d.refused(err)
		}
		d.settled(p)
		return d.wait, nil
	}
}

// settled takes in that a plan is stored.
func (d *duty) settled(p plan) {
	d.since = p.state.since()
	for _, g := range p.missed {
		d.countMissed(g)
		d.tell(Event{Kind: EventMissed, Job: d.job.Name, Gap: g})
	}
}

// commit writes the state in one transaction with other operations, if it still has the version and the
// term stands.
func (d *duty) commit(state State, version int32, ops ...framework.Op) error {
	data, err := state.encode()
	if err != nil {
		return err
	}
	ops = append([]framework.Op{d.term.Guard(), framework.SetOp(d.node(d.job.Name), data, version)}, ops...)
	results, err := d.session.Multi(d.session.Context(), ops...)
	if err != nil {
		return err
	}
	d.clocks.hear(results[1].Stat.Mtime)
	return nil
}

// refused decides how to go on when a transaction was refused, or its outcome is unknown: somebody else,
// or an earlier try, has changed the state or claimed the run. Without a term, the duty is over.
func (d *duty) refused(err error) (step, error) {
	var tx *framework.TxError
	switch {
	case errors.As(err, &tx) && tx.Index == 0:
		return nil, nil
	case errors.Is(err, framework.ErrSuspended), errors.Is(err, framework.ErrBadVersion),
		errors.Is(err, framework.ErrNodeExists), errors.Is(err, framework.ErrNoNode):
		return d.sync, nil
	}
	return nil, err
}

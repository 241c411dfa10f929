package scheduler

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// participation is this member's part in the cluster: one member session after another while the scheduler runs.
type participation struct {
	settings *settings
	store    *store
	report   *reporter
	jobs     *jobTable
	slots    *runSlots
	leader   *leadership
	nonce    string // tells members of one session apart

	mu      sync.Mutex
	current *memberSession // or nil
}

// memberSession is the time in which this member takes part with one session: it is among the members, and checks the jobs that
// belong to it.
type memberSession struct {
	ctx        context.Context // done when no check may start anything any more
	activation *activation
	session    *framework.Session
	membership *membership
	dispatch   *dispatcher
	ownership  *ownership
}

// takePart has a member session on each session until ctx ends.
func (p *participation) takePart(ctx context.Context, a *activation) error {
	run := &runner{
		store: p.store, report: p.report, jobs: p.jobs, slots: p.slots, activation: a, stuckAfter: p.settings.stuckAfter, ended: p.runEnded,
	}
	back := recipe.NewBackoff(p.store.client)
	for {
		session, err := p.store.client.Session(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		err = p.takePartInSession(ctx, run, session)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !errors.Is(err, framework.ErrSessionLost) && !errors.Is(err, framework.ErrNodeGone):
			return err
		}
		if time.Since(began) > settledAfter {
			back.Reset()
		}
		_ = back.Pause(ctx) // the next Session returns an error if ctx has ended
	}
}

// takePartInSession takes part until ctx, the session or the member node has ended.
func (p *participation) takePartInSession(ctx context.Context, run *runner, session *framework.Session) error {
	clock := &tickClock{local: p.report.now}
	askTime := func(ctx context.Context) error {
		now, err := p.store.ensembleTime(ctx, session)
		if err == nil {
			clock.noteAnswer(now)
		}
		return err
	}
	if err := askTime(ctx); err != nil {
		return err
	}
	m := newMembership(p.store, p.report, session, p.nonce+"-"+strconv.FormatUint(uint64(session.ID()), 16))
	m.labels, m.keys, m.changed = p.settings.labels, p.jobs.spreadKeys, p.assign
	node, err := m.join(ctx)
	if err != nil {
		return err
	}
	within, cancel := context.WithCancel(m.hold.Context())
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	d := newDispatcher(within, p.report, clock, p.slots)
	d.maxPause, d.askTime = p.settings.maxPause, askTime
	p.setCurrent(&memberSession{
		ctx: within, activation: run.activation, session: session, membership: m, dispatch: d,
		ownership: &ownership{
			store: p.store, report: p.report, jobs: p.jobs, runner: run, clock: clock, session: session, member: m.name, ctx: within,
			watches: &d.tasks, removed: p.dropRemoved, recheck: func(job string) { p.recheck(job, nil) },
			guard: func(j *job) (framework.Op, bool) {
				if j.Placement == Spread {
					return m.guard(), true
				}
				return p.leader.guard(session)
			},
		},
	})
	d.tasks.Go(func() { m.updateUntilDone(within) }) // jobs may have been added since it joined
	d.tasks.Go(func() { m.watch(within) })
	follower := &changeFollower{
		store: p.store, report: p.report, jobs: p.jobs, session: session,
		recheck: func(job string) { p.recheck(job, nil) }, owns: d.owns, revised: m.rereadDescriptions, removed: p.dropRemoved,
	}
	listening, deafen := context.WithCancel(session.Context())
	run.activation.listeners.Go(func() { follower.follow(listening) })
	d.run()
	cancel()
	if run.activation.ctx.Err() != nil { // runs that go on while they are drained may have to end for another member
		context.AfterFunc(run.activation.done, deafen)
	} else {
		deafen()
	}
	p.setCurrent(nil)
	err = m.hold.Err()
	m.hold.End(context.Canceled)
	left := session.Primitives().DiscardOwn(nil, node)
	d.tasks.Wait()
	<-left.Done()
	return err
}

// setCurrent makes a member session the present one.
func (p *participation) setCurrent(ms *memberSession) {
	p.mu.Lock()
	p.current = ms
	p.mu.Unlock()
	p.assign()
}

// session is the present member session, or nil.
func (p *participation) session() *memberSession {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// assign gives this member the jobs that belong to it, and takes the others away.
func (p *participation) assign() {
	ms := p.session()
	if ms == nil {
		return
	}
	ms.dispatch.assign(func() ([]*job, func(*job) bool) {
		leads, members := p.leader.termOf(ms.session) != nil, ms.membership.present()
		return p.jobs.all(), func(j *job) bool {
			if j.Placement == Spread {
				return j.ownerAmong(members) == ms.membership.name
			}
			return leads
		}
	}, func(j *job) *ownedJob { return newOwnedJob(ms.ownership, j) })
}

// recheck has a job checked if it belongs to this member. known is the cache by which the caller knows its state, or nil if
// another member has changed it.
func (p *participation) recheck(job string, known *stateCache) {
	if ms := p.session(); ms != nil {
		ms.dispatch.recheck(job, known)
	}
}

// runEnded has a job checked after its run, and those that wait for a slot.
func (p *participation) runEnded(job string, known *stateCache) {
	p.recheck(job, known)
	if ms := p.session(); ms != nil {
		ms.dispatch.wake()
	}
}

// drop takes a definition from this member, and reports false unless it is the job's present one. Runs go on.
func (p *participation) drop(j *job) bool {
	if !p.jobs.drop(j) {
		return false
	}
	if ms := p.session(); ms != nil {
		ms.dispatch.unassign(j)
	}
	return true
}

// dropRemoved drops a job that was removed, and ends its runs here.
func (p *participation) dropRemoved(j *job) {
	if !p.drop(j) {
		return
	}
	j.local.endRunsOf(j.generation.Load())
	p.describeLater(j) // it may be added to others again
	p.report.warn("a job was removed", "job", j.Name)
	p.report.event(Event{Kind: EventRemoved, Job: j.Name})
}

// describeLater tells the others, in the background, that this member does not have a job of Placement Spread any more.
func (p *participation) describeLater(j *job) {
	if ms := p.session(); ms != nil && j.Placement == Spread {
		ms.activation.goListen(func() { ms.membership.updateUntilDone(ms.ctx) })
	}
}

// takeUp assigns a registered job. If describe is set, it first updates this member's description, unless there is no member
// session: the next one begins with the right description.
func (p *participation) takeUp(ctx context.Context, describe bool) error {
	if ms := p.session(); ms != nil && describe {
		if err := ms.membership.updateDescription(ctx); err != nil {
			return err
		}
	}
	p.assign()
	return nil
}

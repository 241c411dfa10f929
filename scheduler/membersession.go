package scheduler

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// participation is this member's part in the cluster: one member session after another while the
// scheduler runs.
type participation struct {
	settings   *settings
	store      *store
	report     *reporter
	jobs       *jobTable
	slots      *runSlots
	leadership *leadership
	nonce      string // tells members of one session apart
	lastMember string // the name of the latest member node; used by runMemberSessions alone

	mu      sync.Mutex
	current *memberSession // or nil
}

// memberSession is the time in which this member takes part with one session: it is among the
// members, and checks the jobs that belong to it.
type memberSession struct {
	ctx        context.Context // done when no check may start a run or a write any more
	activation *activation
	session    *framework.Session
	membership *membership
	dispatcher *dispatcher
	ownership  *ownership
}

// runMemberSessions has a member session on each session until ctx ends. Then it returns no error.
// If the servers refuse the first member node, that is its error. A later refusal is logged and
// tried again: somebody may grant the missing permission, or raise the quota. Meanwhile this member
// does not campaign, since a leader that is no member runs no job.
func (p *participation) runMemberSessions(ctx context.Context, a *activation) error {
	run := &runner{
		store: p.store, report: p.report, jobs: p.jobs, slots: p.slots, activation: a,
		stuckAfter: p.settings.stuckAfter, ended: p.runEnded,
		termTrace: p.leadership.traceOf,
	}
	back := recipe.NewBackoff(p.store.client)
	joined := false
	p.leadership.setRefused(false)
	for {
		session, err := p.store.client.Session(ctx)
		switch {
		case ctx.Err() != nil: // err may say so, which is no reason for Run to fail
			return nil
		case err != nil:
			return err
		}
		began := time.Now()
		err = p.runMemberSession(ctx, run, session, func() {
			joined = true
			p.leadership.setRefused(false)
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil, errors.Is(err, framework.ErrSessionLost), errors.Is(err, framework.ErrNodeGone):
		case !joined, errors.Is(err, framework.ErrClosed), errors.Is(err, framework.ErrAuthFailed):
			return err
		default:
			p.leadership.setRefused(true)
			p.report.warn("this member cannot take part yet", "error", err)
		}
		if time.Since(began) > recoveredAfter {
			back.Reset()
		}
		_ = back.Pause(ctx) // the next Session returns an error if ctx has ended
	}
}

// runMemberSession creates a member node, checks the jobs that belong to this member until ctx, the
// session or the member node has ended, and leaves. It calls joined once the member node exists.
func (p *participation) runMemberSession(ctx context.Context, run *runner, session *framework.Session,
	joined func()) error {
	clock := &tickClock{local: p.report.now}
	askTime := func(ctx context.Context) error {
		requested := time.Now()
		now, err := p.store.ensembleTime(ctx, session)
		if err == nil {
			clock.recordAnswer(now, requested)
		}
		return err
	}
	if err := askTime(ctx); err != nil {
		return err
	}
	m := newMembership(p.store, p.report, session, p.nonce+"-"+strconv.FormatUint(uint64(session.ID()), 16))
	m.labels, m.keys, m.changed = p.settings.labels, p.memberKeys, p.assignJobs
	m.reused, p.lastMember = m.name == p.lastMember, m.name
	node, err := m.createNode(ctx)
	if err != nil {
		return err
	}
	joined()
	within, cancel := context.WithCancel(m.exists)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	d := newDispatcher(within, p.report, clock, p.slots)
	d.maxPause, d.askTime = p.settings.maxPause, askTime
	p.setCurrent(&memberSession{
		ctx: within, activation: run.activation, session: session, membership: m, dispatcher: d,
		ownership: &ownership{
			store: p.store, report: p.report, jobs: p.jobs, runner: run, clock: clock, session: session, member: m.name,
			ctx:     within,
			watches: &d.tasks, removed: p.dropRemoved, recheck: func(job string) { p.recheckJob(job, nil) },
			guard: func(j *job) (framework.Op, bool) {
				if j.Placement == Spread {
					return m.memberGuard(), true
				}
				return p.leadership.termGuard(session)
			},
		},
	})
	d.tasks.Start(func() { m.updateUntilDone(within) }) // jobs may have been added since the node was created
	d.tasks.Start(func() { m.watchMembers(within) })
	follower := &changeFollower{
		store: p.store, report: p.report, jobs: p.jobs, session: session,
		recheck: func(job string) { p.recheckJob(job, nil) }, owns: d.owns, reread: m.rereadDescriptions,
		removed: p.dropRemoved,
	}
	listening, stopListening := context.WithCancel(session.Context())
	run.activation.listeners.Go(func() { follower.followChanges(listening) })
	d.waitForDue()
	cancel()
	if run.activation.ctx.Err() != nil { // while runs are drained, another member may want to replace them
		context.AfterFunc(run.activation.done, stopListening)
	} else {
		stopListening()
	}
	p.setCurrent(nil)
	err = context.Cause(m.exists)
	m.leave(context.Canceled)
	deletion := primitives.Of(session).DiscardOwn(nil, node)
	<-d.tasks.Done()
	if unconfirmed := recipe.FinishCleanup(ctx, p.store.client, deletion.Done(), deletion.Err); unconfirmed != nil &&
		session.Err() == nil {
		p.report.warn("this member has left, and the servers have not confirmed it", "error", unconfirmed)
	}
	return err
}

// setCurrent makes a member session the present one.
func (p *participation) setCurrent(ms *memberSession) {
	p.mu.Lock()
	p.current = ms
	p.mu.Unlock()
	p.assignJobs()
}

// currentSession is the present member session, or nil.
func (p *participation) currentSession() *memberSession {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// assignJobs assigns to this member the jobs that belong to it, and unassigns the others.
func (p *participation) assignJobs() {
	ms := p.currentSession()
	if ms == nil {
		return
	}
	ms.dispatcher.assignJobs(func() ([]*job, func(*job) bool) {
		leads, members := p.leadership.termOf(ms.session) != nil, ms.membership.presentMembers()
		return p.jobs.allJobs(), func(j *job) bool {
			if j.Placement == Spread {
				return j.ownerAmong(members) == ms.membership.name
			}
			return leads
		}
	}, func(j *job) *ownedJob { return newOwnedJob(ms.ownership, j) })
}

// recheckJob enqueues a job for a check if it belongs to this member. known is the cache that has
// the job's present state, or nil if another member has changed the state.
func (p *participation) recheckJob(job string, known *stateCache) {
	if ms := p.currentSession(); ms != nil {
		ms.dispatcher.recheckJob(job, known)
	}
}

// runEnded enqueues a job for a check after its run, and the jobs that wait for a slot.
func (p *participation) runEnded(job string, known *stateCache) {
	p.recheckJob(job, known)
	if ms := p.currentSession(); ms != nil {
		ms.dispatcher.lookForDue()
	}
}

// dropJob removes a definition from this member. It reports false if the job has another definition
// by now. Runs go on.
func (p *participation) dropJob(j *job) bool {
	if !p.jobs.removeJob(j) {
		return false
	}
	if ms := p.currentSession(); ms != nil {
		ms.dispatcher.unassignJob(j)
	}
	return true
}

// dropRemoved drops a job that was removed, and ends its runs here.
func (p *participation) dropRemoved(j *job) {
	if !p.dropJob(j) {
		return
	}
	j.local.endRunsOf(j.generation.Load())
	p.describeLater() // it may be added to others again
	p.report.warn("a job was removed", "job", j.Name)
	p.report.passEvent(Event{Kind: EventRemoved, Job: j.Name})
}

// memberKeys are the keys of the jobs that this member can run.
func (p *participation) memberKeys(placement Placement) []uint32 {
	return p.jobs.publishedKeys(placement, p.settings.labels)
}

// describeLater updates this member's description in the background, since it does not have a job
// any more.
func (p *participation) describeLater() {
	if ms := p.currentSession(); ms != nil {
		ms.activation.goListen(func() { ms.membership.updateUntilDone(ms.ctx) })
	}
}

// publishAndAssign assigns a registered job to its owner. It first updates this member's
// description, unless there is no member session: the next one begins with the right description.
func (p *participation) publishAndAssign(ctx context.Context) error {
	if ms := p.currentSession(); ms != nil {
		if err := ms.membership.updateDescription(ctx); err != nil {
			return err
		}
	}
	p.assignJobs()
	return nil
}

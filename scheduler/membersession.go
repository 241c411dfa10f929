package scheduler

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
)

// memberSession is the time in which this member takes part with one session: it has its node among the members,
// and sees to the jobs that belong to it. One goroutine waits for all of them, and few look at them, so
// that a job costs no goroutine of its own while nothing is to be done about it.
type memberSession struct {
	*Scheduler
	activation *activation
	session    *framework.Session
	clocks     *tickClock
	name       string          // of the member node
	hold       *framework.Hold // on the member node
	ctx        context.Context // done when nothing is to be started any more
	toLookAt   sync.WaitGroup
	woken      chan struct{}
	revised    chan struct{} // the members' own descriptions have changed

	telling   chan struct{} // taken by the one who stores this member's description; a channel, as it is held while waiting
	described []byte        // what is stored of it and told to the others; nil if that is not known

	jobsMu  sync.Mutex
	posts   map[string]*ownedJob
	agenda  dueHeap
	ready   []*ownedJob // to be looked at
	waiting []*ownedJob // for a slot
	workers int
	asking  bool // the ensemble is asked for its time
	// behindSince is when this machine's clock was last found to be behind, or zero.
	behindSince time.Time
	met         []member // those that are there, by node
	strange     bool     // what they say of themselves is to be read again
}

const (
	// maxPause bounds a wait: clocks may be set, and timers stand still while a machine is suspended.
	maxPause = 10 * time.Second
	// settledAfter is the time without an error after which something counts as out of trouble.
	settledAfter = 2 * time.Minute
	// maxWorkers bounds how many jobs are looked at at once.
	maxWorkers = 64
)

// takePart has a member session on each session until ctx ends.
func (s *Scheduler) takePart(ctx context.Context, t *activation) error {
	back := s.client.Backoff()
	for {
		session, err := s.client.Session(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		err = s.takePartInSession(ctx, t, session)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !errors.Is(err, framework.ErrSessionLost) && !errors.Is(err, framework.ErrNodeGone):
			return err
		}
		if time.Since(began) > settledAfter {
			back.Reset()
		}
		_ = back.Pause(ctx) // the next Session says if ctx has ended
	}
}

// takePartInSession takes part until ctx, the session or the member node has ended.
func (s *Scheduler) takePartInSession(ctx context.Context, t *activation, session *framework.Session) error {
	sh := &memberSession{
		Scheduler: s, activation: t, session: session, clocks: &tickClock{local: s.now}, posts: map[string]*ownedJob{},
		name:  s.nonce + "-" + strconv.FormatUint(uint64(session.ID()), 16),
		woken: make(chan struct{}, 1), revised: make(chan struct{}, 1), telling: make(chan struct{}, 1),
	}
	now, err := s.ensembleTime(ctx, session)
	if err != nil {
		return err
	}
	sh.clocks.noteAnswer(now)
	node, err := sh.createMemberNode(ctx)
	if err != nil {
		return err
	}
	within, cancel := context.WithCancel(sh.hold.Context())
	defer context.AfterFunc(ctx, cancel)()
	sh.ctx = within
	s.setMemberSession(sh)
	sh.toLookAt.Go(sh.updateDescriptionUntilDone) // jobs may have been added since it enlisted
	sh.toLookAt.Go(sh.watchMembers)
	listening, deafen := context.WithCancel(session.Context())
	t.listeners.Go(func() { sh.watchChanges(listening) })
	sh.dispatchLoop()
	cancel()
	if t.ctx.Err() != nil { // runs that go on while they are drained may have to end for another's sake
		context.AfterFunc(t.done, deafen)
	} else {
		deafen()
	}
	s.setMemberSession(nil)
	err = sh.hold.Err()
	sh.hold.End(context.Canceled)
	left := session.DiscardOwn(nil, node)
	sh.toLookAt.Wait()
	<-left.Done()
	return err
}

// setMemberSession makes a member session the present one.
func (s *Scheduler) setMemberSession(sh *memberSession) {
	s.mu.Lock()
	s.activeSession = sh
	s.mu.Unlock()
	s.assignJobs()
}

// currentSession is the member session that this member is in, or nil.
func (s *Scheduler) currentSession() *memberSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.activeSession
}

// dispatchLoop waits for what is due until the member session ends.
func (sh *memberSession) dispatchLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-sh.woken:
		case <-timer.C:
		case <-sh.ctx.Done():
			return
		}
		pause, found := sh.dispatchDue()
		timer.Reset(pause)
		if found != nil { // the observer may call what takes the member session's lock
			sh.client.Logger().Warn("this machine's clock and the ensemble's differ about a tick", "path", sh.path, "job", found.Job,
				"tick", found.Run.Tick, "kind", found.Kind, "error", found.Err)
			sh.sendEvent(*found)
		}
	}
}

func (sh *memberSession) wakeDispatcher() {
	select {
	case sh.woken <- struct{}{}:
	default:
	}
}

// dispatchDue has looked at what is due, and returns the time until there is more, and what is to be told of the clocks.
func (sh *memberSession) dispatchDue() (pause time.Duration, found *Event) {
	sh.jobsMu.Lock()
	defer sh.jobsMu.Unlock()
	if next := sh.agenda.nextDue(); next != nil {
		if d := sh.clocks.disagree(next.due); d != agreed {
			found = sh.resolveDispute(next, d)
		}
	}
	now := sh.clocks.now()
	for p := sh.agenda.nextDue(); p != nil && !p.due.After(now); p = sh.agenda.nextDue() {
		sh.enqueue(p)
	}
	for n := sh.slots.freeSlots(); n > 0 && len(sh.waiting) > 0; {
		p := sh.waiting[0]
		sh.waiting, p.inLine = sh.waiting[1:], false
		if !p.left {
			sh.enqueue(p)
			n--
		}
	}
	next := sh.agenda.nextDue()
	if next == nil {
		return sh.maxPause, found
	}
	pause = min(sh.maxPause, next.due.Sub(now))
	if sh.clocks.disagree(next.due) != agreed {
		pause = min(pause, askTimeAfter)
	}
	return pause, found
}

// resolveDispute asks for the ensemble's time again when the clocks differ about a tick. It returns an event once for each tick
// that waits for the ensemble's clock, and for each time in which this machine's is behind. The member session is locked.
func (sh *memberSession) resolveDispute(p *ownedJob, d clockDispute) *Event {
	if sh.clocks.isStale() {
		if !sh.asking {
			sh.asking = true
			sh.toLookAt.Go(sh.refreshEnsembleTime)
		}
		return nil // who is right is not known yet
	}
	kind := EventHeld
	switch {
	case d == behind:
		kind = EventBehind
		told := !sh.behindSince.IsZero() && time.Since(sh.behindSince) < settledAfter
		if sh.behindSince = time.Now(); told {
			return nil
		}
	case p.ahead.Equal(p.due):
		return nil
	default:
		p.ahead = p.due
	}
	return &Event{Kind: kind, Job: p.job.Name, Run: Run{Job: p.job.Name, Tick: p.due.UTC()}, Err: sh.clocks.difference()}
}

// refreshEnsembleTime makes the estimate of the ensemble's clock anew.
func (sh *memberSession) refreshEnsembleTime() {
	now, err := sh.ensembleTime(sh.ctx, sh.session)
	if err == nil {
		sh.clocks.noteAnswer(now)
	}
	sh.jobsMu.Lock()
	sh.asking = false
	sh.jobsMu.Unlock()
	if err == nil {
		sh.wakeDispatcher()
	}
}

// enqueue has somebody look at a owned job. The member session is locked.
func (sh *memberSession) enqueue(p *ownedJob) {
	switch {
	case p.left:
		return
	case p.busy:
		p.again = true
		return
	}
	p.busy = true
	sh.agenda.removeJob(p)
	sh.ready = append(sh.ready, p)
	if sh.workers < maxWorkers && sh.ctx.Err() == nil {
		sh.workers++
		sh.toLookAt.Go(sh.worker)
	}
}

// worker looks at owned jobs until none is ready.
func (sh *memberSession) worker() {
	sh.jobsMu.Lock()
	defer sh.jobsMu.Unlock()
	for len(sh.ready) > 0 && sh.ctx.Err() == nil {
		p := sh.ready[0]
		sh.ready = sh.ready[1:]
		d := &jobPass{memberSession: sh, post: p, job: p.job, late: p.late, stale: p.stale}
		p.again, p.stale = false, false
		sh.jobsMu.Unlock()
		due := d.runPass()
		sh.jobsMu.Lock()
		p.busy, p.late = false, d.late
		if d.waits && !p.inLine {
			p.inLine = true
			sh.waiting = append(sh.waiting, p)
		}
		if p.again {
			sh.enqueue(p)
		} else if !p.left {
			sh.agenda.reschedule(p, due)
		}
		sh.wakeDispatcher()
	}
	sh.workers--
}

// lookAtJob has a job looked at, if it belongs to this member. known is the cache by which the caller knows its state, or nil
// if somebody else has changed it.
func (s *Scheduler) lookAtJob(job string, known *stateCache) {
	sh := s.currentSession()
	if sh == nil {
		return
	}
	sh.jobsMu.Lock()
	defer sh.jobsMu.Unlock()
	if p := sh.posts[job]; p != nil {
		p.stale = p.stale || p.book != known
		sh.enqueue(p)
	}
}

// assignJobs gives this member the jobs that belong to it, and takes the others away.
func (s *Scheduler) assignJobs() {
	sh := s.currentSession()
	if sh == nil {
		return
	}
	sh.jobsMu.Lock()
	defer sh.jobsMu.Unlock()
	term := s.currentTerm(sh) // behind the lock: who comes last goes by what is known last
	jobs := s.knownJobs()
	for _, j := range jobs {
		if p := sh.posts[j.Name]; p != nil && p.job != j {
			sh.unassign(p) // the job was updated, or has come back
		}
		if !j.entered.Load() {
			continue // it would be taken for removed
		}
		mine := term != nil
		if j.Placement == Spread {
			mine = j.ownerAmong(sh.met) == sh.name
		}
		switch p := sh.posts[j.Name]; {
		case mine && p == nil:
			p = &ownedJob{job: j, place: notInHeap, late: ReasonNoLeader, book: newStateCache(s.node(j.Name))}
			sh.posts[j.Name] = p
			sh.enqueue(p)
		case !mine && p != nil:
			sh.unassign(p)
		}
	}
}

// unassign takes a owned job away. The member session is locked.
func (sh *memberSession) unassign(p *ownedJob) {
	p.left = true
	sh.agenda.removeJob(p)
	delete(sh.posts, p.job.Name)
}

// currentTerm is the term in which this member leads with a member session's session, or nil.
func (s *Scheduler) currentTerm(sh *memberSession) *election.Term {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == nil || s.term.Session() != sh.session.ID() {
		return nil
	}
	return s.term
}

// dropRemovedJob drops a job that was removed, and ends its runs here.
func (s *Scheduler) dropRemovedJob(j *job) {
	if !s.dropDefinition(j) {
		return
	}
	j.local.endRunsOf(j.generation.Load())
	s.updateDescriptionLater(j) // it may be added to others again
	s.client.Logger().Warn("a job was removed", "path", s.path, "job", j.Name)
	s.sendEvent(Event{Kind: EventRemoved, Job: j.Name})
}

// createMemberNode creates the member node.
func (sh *memberSession) createMemberNode(ctx context.Context) (framework.Created, error) {
	data, err := sh.memberRecord()
	if err != nil {
		return framework.Created{}, err
	}
	nodes, err := sh.session.CreateTogether(ctx, framework.Together{
		Dir: sh.members(), Name: sh.name, Plain: true, Data: data, Count: 1, Mode: framework.Ephemeral,
	})
	if err != nil {
		return framework.Created{}, err
	}
	sh.described = data
	sh.hold, err = sh.session.Hold(context.Background(), nodes[0].Path)
	return nodes[0], err
}

// memberRecord is what this member stores of itself.
func (sh *memberSession) memberRecord() ([]byte, error) {
	sh.Scheduler.mu.Lock()
	defer sh.Scheduler.mu.Unlock()
	return member{id: sh.client.Config().Identity, labels: sh.labels, keys: jobKeys(sh.jobs)}.encode()
}

// updateDescription stores this member's description anew, and has the others read it. Without a member session there
// is none: the next one looks whether it has stored the right one.
func (s *Scheduler) updateDescription(ctx context.Context) error {
	if sh := s.currentSession(); sh != nil {
		return sh.writeDescription(ctx)
	}
	return nil
}

// updateDescriptionUntilDone describes this member anew if anything has changed. If that fails, the next member session's is right.
func (sh *memberSession) updateDescriptionUntilDone() {
	_ = sh.retryUntilSettled(sh.ctx, func(*framework.Session) error { return sh.writeDescription(sh.ctx) })
}

// writeDescription is done by one at a time, since what is stored is repeated when its reply is lost: it must be the
// latest.
func (sh *memberSession) writeDescription(ctx context.Context) error {
	select {
	case sh.telling <- struct{}{}:
		defer func() { <-sh.telling }()
	case <-ctx.Done():
		return framework.Ended(ctx)
	}
	data, err := sh.memberRecord()
	if err != nil || bytes.Equal(data, sh.described) {
		return err
	}
	sh.described = nil
	_, err = sh.session.Set(ctx, framework.Join(sh.members(), sh.name), data, framework.AnyVersion)
	if errors.Is(err, framework.ErrSessionLost) || errors.Is(err, framework.ErrNoNode) {
		return nil // so is the member session
	}
	if err == nil {
		err = sh.announceChanges(ctx, "")
	}
	if err == nil {
		sh.described = data
	}
	return err
}

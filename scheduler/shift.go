package scheduler

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
)

// shift is the time in which this member takes part with one session: it has its node among the members,
// and sees to the jobs that belong to it. One goroutine waits for all of them, and few look at them, so
// that a job costs no goroutine of its own while nothing is to be done about it.
type shift struct {
	*Scheduler
	tour    *tour
	session *framework.Session
	clocks  *clocks
	name    string          // of the member node
	hold    *framework.Hold // on the member node
	ctx     context.Context // done when nothing is to be started any more
	work    sync.WaitGroup
	woken   chan struct{}
	revised chan struct{} // the members' own descriptions have changed

	telling   chan struct{} // taken by the one who stores this member's description; a channel, as it is held while waiting
	described []byte        // what is stored of it and told to the others; nil if that is not known

	mu      sync.Mutex
	posts   map[string]*post
	agenda  agenda
	ready   []*post // to be looked at
	waiting []*post // for a slot
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

// takePart has a shift on each session until ctx ends.
func (s *Scheduler) takePart(ctx context.Context, t *tour) error {
	back := s.client.Retries()
	for {
		session, err := s.client.Session(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		err = s.work(ctx, t, session)
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

// work takes part until ctx, the session or the member node has ended.
func (s *Scheduler) work(ctx context.Context, t *tour, session *framework.Session) error {
	sh := &shift{
		Scheduler: s, tour: t, session: session, clocks: &clocks{local: s.now}, posts: map[string]*post{},
		name:  s.nonce + "-" + strconv.FormatUint(uint64(session.ID()), 16),
		woken: make(chan struct{}, 1), revised: make(chan struct{}, 1), telling: make(chan struct{}, 1),
	}
	now, err := s.ensembleTime(ctx, session)
	if err != nil {
		return err
	}
	sh.clocks.hear(now)
	node, err := sh.enlist(ctx)
	if err != nil {
		return err
	}
	within, cancel := context.WithCancel(sh.hold.Context())
	defer context.AfterFunc(ctx, cancel)()
	sh.ctx = within
	s.start(sh)
	sh.work.Go(sh.keepDescribed) // jobs may have been added since it enlisted
	sh.work.Go(sh.watchMembers)
	listening, deafen := context.WithCancel(session.Context())
	t.ears.Go(func() { sh.watchChanges(listening) })
	sh.loop()
	cancel()
	if t.ctx.Err() != nil { // runs that go on while they are drained may have to end for another's sake
		context.AfterFunc(t.done, deafen)
	} else {
		deafen()
	}
	s.start(nil)
	err = sh.hold.Err()
	sh.hold.End(context.Canceled)
	left := session.DiscardOwn(nil, node)
	sh.work.Wait()
	<-left.Done()
	return err
}

// start makes a shift the present one.
func (s *Scheduler) start(sh *shift) {
	s.mu.Lock()
	s.shift = sh
	s.mu.Unlock()
	s.assign()
}

// present is the shift that this member is in, or nil.
func (s *Scheduler) present() *shift {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shift
}

// loop waits for what is due until the shift ends.
func (sh *shift) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-sh.woken:
		case <-timer.C:
		case <-sh.ctx.Done():
			return
		}
		pause, found := sh.dispatch()
		timer.Reset(pause)
		if found != nil { // the observer may call what takes the shift's lock
			sh.client.Logger().Warn("this machine's clock and the ensemble's differ about a tick", "path", sh.path, "job", found.Job,
				"tick", found.Run.Tick, "kind", found.Kind, "error", found.Err)
			sh.tell(*found)
		}
	}
}

func (sh *shift) wake() {
	select {
	case sh.woken <- struct{}{}:
	default:
	}
}

// dispatch has looked at what is due, and returns the time until there is more, and what is to be told of the clocks.
func (sh *shift) dispatch() (pause time.Duration, found *Event) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if next := sh.agenda.first(); next != nil {
		if d := sh.clocks.about(next.due); d != agreed {
			found = sh.dispute(next, d)
		}
	}
	now := sh.clocks.now()
	for p := sh.agenda.first(); p != nil && !p.due.After(now); p = sh.agenda.first() {
		sh.attend(p)
	}
	for n := sh.slots.free(); n > 0 && len(sh.waiting) > 0; {
		p := sh.waiting[0]
		sh.waiting, p.inLine = sh.waiting[1:], false
		if !p.left {
			sh.attend(p)
			n--
		}
	}
	next := sh.agenda.first()
	if next == nil {
		return sh.maxPause, found
	}
	pause = min(sh.maxPause, next.due.Sub(now))
	if sh.clocks.about(next.due) != agreed {
		pause = min(pause, askTimeAfter)
	}
	return pause, found
}

// dispute asks for the ensemble's time again when the clocks differ about a tick. It returns an event once for each tick
// that waits for the ensemble's clock, and for each time in which this machine's is behind. The shift is locked.
func (sh *shift) dispute(p *post, d dispute) *Event {
	if sh.clocks.stale() {
		if !sh.asking {
			sh.asking = true
			sh.work.Go(sh.askTime)
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

// askTime makes the estimate of the ensemble's clock anew.
func (sh *shift) askTime() {
	now, err := sh.ensembleTime(sh.ctx, sh.session)
	if err == nil {
		sh.clocks.hear(now)
	}
	sh.mu.Lock()
	sh.asking = false
	sh.mu.Unlock()
	if err == nil {
		sh.wake()
	}
}

// attend has somebody look at a post. The shift is locked.
func (sh *shift) attend(p *post) {
	switch {
	case p.left:
		return
	case p.busy:
		p.again = true
		return
	}
	p.busy = true
	sh.agenda.drop(p)
	sh.ready = append(sh.ready, p)
	if sh.workers < maxWorkers && sh.ctx.Err() == nil {
		sh.workers++
		sh.work.Go(sh.labour)
	}
}

// labour looks at posts until none is ready.
func (sh *shift) labour() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for len(sh.ready) > 0 && sh.ctx.Err() == nil {
		p := sh.ready[0]
		sh.ready = sh.ready[1:]
		d := &duty{shift: sh, post: p, job: p.job, late: p.late, stale: p.stale}
		p.again, p.stale = false, false
		sh.mu.Unlock()
		due := d.live()
		sh.mu.Lock()
		p.busy, p.late = false, d.late
		if d.waits && !p.inLine {
			p.inLine = true
			sh.waiting = append(sh.waiting, p)
		}
		if p.again {
			sh.attend(p)
		} else if !p.left {
			sh.agenda.list(p, due)
		}
		sh.wake()
	}
	sh.workers--
}

// look has a job looked at, if it belongs to this member. known is the book by which the caller knows its state, or nil
// if somebody else has changed it.
func (s *Scheduler) look(job string, known *book) {
	sh := s.present()
	if sh == nil {
		return
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if p := sh.posts[job]; p != nil {
		p.stale = p.stale || p.book != known
		sh.attend(p)
	}
}

// assign gives this member the jobs that belong to it, and takes the others away.
func (s *Scheduler) assign() {
	sh := s.present()
	if sh == nil {
		return
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	term := s.leadership(sh) // behind the lock: who comes last goes by what is known last
	jobs := s.known()
	for _, j := range jobs {
		if p := sh.posts[j.Name]; p != nil && p.job != j {
			sh.dismiss(p) // the job was updated, or has come back
		}
		if !j.entered.Load() {
			continue // it would be taken for removed
		}
		mine := term != nil
		if j.Placement == Spread {
			mine = j.owner(sh.met) == sh.name
		}
		switch p := sh.posts[j.Name]; {
		case mine && p == nil:
			p = &post{job: j, place: notListed, late: ReasonNoLeader, book: newBook(s.node(j.Name))}
			sh.posts[j.Name] = p
			sh.attend(p)
		case !mine && p != nil:
			sh.dismiss(p)
		}
	}
}

// dismiss takes a post away. The shift is locked.
func (sh *shift) dismiss(p *post) {
	p.left = true
	sh.agenda.drop(p)
	delete(sh.posts, p.job.Name)
}

// leadership is the term in which this member leads with a shift's session, or nil.
func (s *Scheduler) leadership(sh *shift) *election.Term {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == nil || s.term.Session() != sh.session.ID() {
		return nil
	}
	return s.term
}

// forgo drops a job that was removed, and ends its runs here.
func (s *Scheduler) forgo(j *job) {
	if !s.leave(j) {
		return
	}
	j.local.remove(j.generation.Load())
	s.redescribe(j) // it may be added to others again
	s.client.Logger().Warn("a job was removed", "path", s.path, "job", j.Name)
	s.tell(Event{Kind: EventRemoved, Job: j.Name})
}

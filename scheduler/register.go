package scheduler

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// registerers is how many jobs are registered at once.
const registerers = 32

// register stores the schedules of this member's jobs where there are none, or others that these replace, and
// tells the others if anything has changed. Its error is that of the first job that cannot be registered.
func (s *Scheduler) register(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	jobs := make(chan *job)
	var mu sync.Mutex
	var all sync.WaitGroup
	var news []string
	for range registerers {
		all.Go(func() {
			for j := range jobs {
				changed, err := s.enter(ctx, j)
				if err != nil {
					cancel(err)
				}
				mu.Lock()
				if changed {
					news = append(news, j.Name)
				}
				mu.Unlock()
			}
		})
	}
	for _, j := range s.known() {
		if ctx.Err() == nil {
			jobs <- j
		}
	}
	close(jobs)
	all.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(news) == 0:
		return nil
	case len(news) == 1:
		return s.publish(ctx, news[0])
	}
	return s.publish(ctx, "")
}

// publish tells the members that a job has changed, or all.
func (s *Scheduler) publish(ctx context.Context, job string) error {
	return s.settling(ctx, func(session *framework.Session) error {
		tell, err := s.announce(ctx, session, job)
		if err != nil {
			return err
		}
		_, err = session.Multi(ctx, tell)
		return err
	})
}

// settling repeats a step on session after session until its outcome is known.
func (s *Scheduler) settling(ctx context.Context, f func(*framework.Session) error) error {
	back := s.client.Retries()
	for {
		session, err := s.client.Session(ctx)
		if err != nil {
			return err
		}
		err = f(session)
		if err == nil || !again(err) && !errors.Is(err, framework.ErrNodeExists) && !framework.IsTransient(err) {
			return err
		}
		if back.Pause(ctx) != nil {
			return framework.Ended(ctx)
		}
	}
}

// enter stores a job's schedule if there is none, or one that it replaces, and tells whether it did.
func (s *Scheduler) enter(ctx context.Context, j *job) (changed bool, err error) {
	err = s.settling(ctx, func(session *framework.Session) error {
		b := newBook(s.node(j.Name))
		state, err := b.read(ctx, session)
		if errors.Is(err, ErrUnknownJob) {
			changed = true
			return s.create(ctx, session, j)
		}
		if err != nil || j.agrees(state) {
			return err
		}
		now, err := s.ensembleTime(ctx, session)
		if err != nil {
			return err
		}
		changed = true
		state = state.clone()
		j.declare(&state, now)
		_, err = b.write(ctx, session, state, nil, nil)
		return err
	})
	return changed, err
}

func (s *Scheduler) create(ctx context.Context, session *framework.Session, j *job) error {
	spec, zone := j.spec()
	data, err := State{Spec: spec, Zone: zone, Revision: j.Revision}.encode()
	if err != nil {
		return err
	}
	if err := session.MakeDirs(ctx, s.directory()); err != nil {
		return err
	}
	return session.Create(ctx, s.node(j.Name), data, framework.Persistent)
}

// join registers a job that was added while the scheduler runs, and takes it up.
func (s *Scheduler) join(ctx context.Context, j *job) {
	back := s.client.Retries()
	for ctx.Err() == nil {
		changed, err := s.enter(ctx, j)
		if err == nil && changed {
			err = s.publish(ctx, j.Name)
		}
		if err == nil && j.Placement == Spread {
			err = s.describeAgain(ctx)
		}
		if err == nil {
			s.assign()
			return
		}
		if ctx.Err() == nil {
			s.client.Logger().Warn("a job cannot be registered yet", "path", s.path, "job", j.Name, "error", err)
			s.tell(Event{Kind: EventFailed, Job: j.Name, Err: err})
		}
		_ = back.Pause(ctx) // the loop sees it
	}
}

// describeAgain stores this member's description anew, and has the others read it. Without a shift there
// is none: the next one's is right.
func (s *Scheduler) describeAgain(ctx context.Context) error {
	sh := s.present()
	if sh == nil {
		return nil
	}
	data, err := sh.describe()
	if err == nil {
		_, err = sh.session.Set(ctx, framework.Join(s.members(), sh.name), data, framework.AnyVersion)
	}
	if errors.Is(err, framework.ErrSessionLost) || errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.publish(ctx, "")
}

// spec is the job's schedule as it is stored.
func (j *job) spec() (spec, zone string) {
	return j.schedule.String(), j.schedule.Location().String()
}

// declared is the schedule that the releases have given, whatever it was changed to at run time.
func (s State) declared() (spec, zone string) {
	if s.declaredSpec != "" {
		return s.declaredSpec, s.declaredZone
	}
	return s.Spec, s.Zone
}

// agrees tells whether a stored state need not be changed: its schedule was given by the same release, or
// one of a higher revision.
func (j *job) agrees(st State) bool {
	spec, zone := j.spec()
	declaredSpec, declaredZone := st.declared()
	return j.Revision < st.Revision || j.Revision == st.Revision && spec == declaredSpec && zone == declaredZone
}

// declare makes the job's schedule the stored one. What was changed at run time stays if the releases'
// schedule is the same.
func (j *job) declare(st *State, now time.Time) {
	st.Revision = j.Revision
	spec, zone := j.spec()
	if was, in := st.declared(); was == spec && in == zone {
		return
	}
	st.declaredSpec, st.declaredZone = "", ""
	st.reschedule(spec, zone, now)
}

// reschedule changes the schedule. The old one's ticks that were not seen to are missed, and no tick of the
// new one before now is due.
func (s *State) reschedule(spec, zone string, now time.Time) {
	why := ReasonChanged
	if !s.Paused.IsZero() {
		why = ReasonPaused
	}
	if old, err := s.schedule(); err == nil { // nobody can tell the ticks of one that cannot be read
		s.pass(old, now, why)
	}
	s.Spec, s.Zone, s.Since = spec, zone, now
}

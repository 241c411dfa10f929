package scheduler

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/lockstep-go/lockstep/framework"
)

// registerers is how many jobs are registered at once.
const registerers = 32

// register stores the schedules of this member's jobs where there are none, or others that these replace, and
// tells the others. Its error is that of the first job that cannot be registered.
func (s *Scheduler) register(ctx context.Context) error {
	err := s.settling(ctx, func(session *framework.Session) error { return session.Sync(ctx, s.path) })
	if err != nil {
		return err
	}
	created, old, err := s.enterAll(ctx)
	for some := range slices.Chunk(old, replacedAtOnce) {
		if err == nil {
			err = s.replace(ctx, some)
		}
	}
	if err == nil && len(created) > 0 {
		err = s.publish(ctx, subject(created))
	}
	if err != nil {
		return err
	}
	s.sweepTombstones(ctx)
	return nil
}

// enterAll enters this member's jobs, and returns the names of those that were created and what is to be
// replaced.
func (s *Scheduler) enterAll(ctx context.Context) (created []string, old []outdated, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	jobs := make(chan *job)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range registerers {
		all.Go(func() {
			for j := range jobs {
				fresh, stale, err := s.enter(ctx, j)
				if err != nil {
					cancel(err)
				}
				mu.Lock()
				if fresh {
					created = append(created, j.Name)
				}
				old = append(old, stale...)
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
	return created, old, context.Cause(ctx)
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

// enter stores a job's state if there is none or a tombstone, and reports whether it did; else it returns what is
// stored, if that is to be replaced. A definition that was updated registers nothing anew: the job was removed.
func (s *Scheduler) enter(ctx context.Context, j *job) (created bool, old []outdated, err error) {
	err = s.settling(ctx, func(session *framework.Session) error {
		b := newBook(s.node(j.Name))
		state, err := b.read(ctx, session)
		unknown := errors.Is(err, ErrUnknownJob) || err == nil && !state.removed.IsZero()
		switch {
		case unknown && j.updated && j.entered.Load():
			s.forgo(j)
			return nil
		case errors.Is(err, ErrUnknownJob):
			created = true
			return s.create(ctx, session, j)
		case unknown:
			created = true
			return s.recreate(ctx, session, j, b, state)
		case err != nil:
			return err
		}
		if !j.updated || !j.entered.Load() {
			j.generation.Store(state.generation)
		}
		if !j.agrees(state) {
			old = []outdated{{j, b, new([]Gap)}}
		}
		return nil
	})
	if err == nil {
		j.entered.Store(true)
	}
	return created, old, err
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

// recreate registers a job in the place of a tombstone.
func (s *Scheduler) recreate(ctx context.Context, session *framework.Session, j *job, b *book, tombstone State) error {
	now, err := s.ensembleTime(ctx, session)
	if err != nil {
		return err
	}
	state := tombstone.renew(j, now)
	j.generation.Store(state.generation)
	_, err = b.write(ctx, session, state, nil, nil)
	return err
}

// joinLater registers a job in the background if the scheduler runs, behind the definition whose place it takes. The
// scheduler is locked.
func (s *Scheduler) joinLater(j, before *job) {
	t := s.tour
	if t == nil || t.over {
		return
	}
	j.joining = make(chan struct{})
	t.joins.Go(func() {
		defer close(j.joining)
		earlier := []<-chan struct{}{t.registered}
		if before != nil && before.joining != nil {
			earlier = append(earlier, before.joining)
		}
		for _, done := range earlier {
			select {
			case <-done:
			case <-t.joining.Done():
				return
			}
		}
		s.join(t.joining, j)
	})
}

// join registers a job that was added or updated while the scheduler runs, and takes it up.
func (s *Scheduler) join(ctx context.Context, j *job) {
	back := s.client.Retries()
	for ctx.Err() == nil && !j.left.Load() {
		err := s.settling(ctx, func(session *framework.Session) error { return session.Sync(ctx, s.node(j.Name)) })
		var created bool
		var old []outdated
		if err == nil {
			created, old, err = s.enter(ctx, j)
		}
		if err == nil && len(old) > 0 {
			err = s.replace(ctx, old)
		}
		if err == nil && created {
			err = s.publish(ctx, j.Name)
		}
		if err == nil && (j.Placement == Spread || j.updated) {
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

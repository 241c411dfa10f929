package sim

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lockstep-go/lockstep/locks"
)

func init() { makers["multi"] = newMultiScene }

// multiScene is several locks, of which actors ask for some at once.
type multiScene struct {
	base
	parts []*part
}

// part is one of the locks.
type part struct {
	book *ledger
	lock func(*actor) ask
}

func newMultiScene(w *world, spec sceneSpec) scene {
	s := &multiScene{base: base{w, spec}}
	add := func(name string, lock func(*actor, string) ask) {
		path := spec.path + "/" + name
		p := &part{book: newLedger(w, spec.path, path), lock: func(a *actor) ask { return lock(a, path) }}
		p.book.unfenced = true // a multi-lock's token is the highest of its parts' tokens
		s.parts = append(s.parts, p)
	}
	mutex := func(a *actor, path string) ask { return ask{locker: locks.NewMutex(a.client, path)} }
	add("a", mutex)
	add("b", func(a *actor, path string) ask { return ask{locker: locks.NewClaim(a.client, path)} })
	add("c", func(a *actor, path string) ask {
		if l := locks.NewRWLock(a.client, path); oneIn(a.r, 2) {
			return ask{locker: l.RLocker(), shared: true}
		} else {
			return ask{locker: l}
		}
	})
	add("d", func(a *actor, path string) ask {
		n := 1 + a.r.IntN(2)
		return ask{locker: locks.NewSemaphore(a.client, path, 3).Permits(n), permits: n, limit: func() int { return 3 }}
	})
	add("e", func(a *actor, path string) ask {
		return ask{locker: locks.NewMutex(a.client, path, locks.WithMaxHold(500*time.Millisecond))}
	})
	return s
}

func (s *multiScene) ledgers() (all []*ledger) {
	for _, p := range s.parts {
		all = append(all, p.book)
	}
	return all
}

func (s *multiScene) play(a *actor) {
	for a.goOn() {
		s.step(a)
	}
}

// step asks for some of the locks, holds them for a while and releases them.
func (s *multiScene) step(a *actor) {
	chosen := s.choose(a.r)
	asks := make([]ask, len(chosen))
	lockers := make([]locks.Locker, len(chosen))
	for i, p := range chosen {
		asks[i] = p.lock(a)
		lockers[i] = asks[i].locker
	}
	whole := ask{locker: locks.NewMulti(lockers...), try: oneIn(a.r, 5)}
	ctx, cancel := a.patience()
	defer cancel()
	lease, err := whole.lock(ctx)
	late := a.gate()
	if err != nil {
		s.w.h.note(s.path(), "%s fails: %v", a.name, err)
		if !(whole.try && errors.Is(err, locks.ErrNotAcquired)) && !a.excused(ctx, err) {
			s.w.violate(s.path(), "errors", "%s fails with %v", a.name, err)
		}
		return
	}
	a.w.count("multi")
	for i, p := range chosen {
		if late && lease.Err() != nil {
			break
		}
		h := asks[i].hold(a, lease)
		h.mark = mark{lease.Token(), int64(a.w.next())}
		p.book.granted(h)
	}
	a.rest(lease.Context(), pick(a.r, 0, between(a.r, 0, s.w.plan.timeout/2)))
	s.w.h.note(s.path(), "%s releases", a.name)
	end, cancel := a.patience()
	defer cancel()
	_ = lease.Release(end)
}

// choose draws some of the locks, in any order.
func (s *multiScene) choose(r *rand.Rand) []*part {
	chosen := append([]*part(nil), s.parts...)
	r.Shuffle(len(chosen), func(i, k int) { chosen[i], chosen[k] = chosen[k], chosen[i] })
	return chosen[:1+r.IntN(len(chosen))]
}

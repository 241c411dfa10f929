package sim

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// misfortune has the plan's faults happen.
func (w *world) misfortune() {
	for _, f := range w.plan.faults {
		select {
		case <-time.After(time.Until(w.h.began.Add(f.at))):
		case <-w.over:
			return
		}
		w.fall(f)
	}
}

// fall has a fault happen now, or when a process has come so far.
func (w *world) fall(f fault) {
	p := w.at(f.process)
	if f.nth == 0 {
		w.strike(f, p)
		return
	}
	p.at(f.nth, func() {
		if !w.isOver() && p.ctx.Err() == nil {
			w.strike(f, p)
		}
	})
}

// at is the process that lives at a place.
func (w *world) at(place int) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.processes[place]
}

func (w *world) strike(f fault, p *process) {
	r := rand.New(rand.NewPCG(f.draw, 1))
	switch f.kind {
	case lostReply:
		w.loseReply(f, p, r)
		return // counted when it happens
	case slowReplies:
		w.slow(f, r)
	case expire:
		if !w.expire(p) {
			return
		}
	case deleteNode:
		if !w.deleteNode(r) {
			return
		}
	case reset:
		p.link.Reset()
	case crash:
		w.replace(p)
	case jump:
		p.skew.Add(int64(between(r, -time.Minute, time.Minute)))
	case restart:
		w.zk.Restart()
	case wrongClock:
		leader, back := oneIn(r, 2), oneIn(r, 2) // another server leads then
		w.setClock(pick[time.Duration](r, 1, -1)*pick(r, between(r, 0, 20*time.Second), between(r, 0, 3*time.Minute), between(r, 0, 2*time.Hour)), leader)
		w.after(f.length, func() { w.setClock(0, back) })
	case reap:
		w.zk.Reap()
	case freezeServer:
		w.zk.Freeze()
		w.after(f.length, w.zk.Thaw)
	case reapAll:
		w.eye.reapSoon(1)
		w.after(f.length, func() { w.eye.reapSoon(-1) })
	case freeze:
		w.freeze(f, p)
	default:
		p.suffer(f.kind, between(r, 0, 2*time.Second))
		if f.kind == halfOpen {
			p.link.Reset()
		}
		w.after(f.length, func() { p.recover(f.kind) })
	}
	w.hit(f.kind)
	w.h.note("", "FAULT %s%s", f.kind, whom(f, p))
}

func whom(f fault, p *process) string {
	text := ""
	if !f.kind.ofServer() {
		text = " of " + p.name
	}
	if f.kind.lasts() {
		text += " for " + f.length.Round(time.Microsecond).String()
	}
	return text
}

// after does something later, unless the program is over by then: then all was mended.
func (w *world) after(d time.Duration, what func()) {
	w.tasks.Go(func() {
		select {
		case <-time.After(d):
			if !w.isOver() {
				what()
			}
		case <-w.over:
		}
	})
}

// setClock sets how far the ensemble's clock is ahead of the true time. It may be that of a new leader.
func (w *world) setClock(ahead time.Duration, restart bool) {
	w.mu.Lock()
	w.ahead, w.mostAhead = ahead, max(ahead, w.mostAhead)
	w.mu.Unlock()
	w.zk.Skew(ahead) // not under the lock, which the server's observers take
	w.h.note("", "the ensemble's clock is %v ahead", ahead)
	if restart {
		w.zk.Restart()
	}
}

func (w *world) ensembleAhead() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ahead
}

// ensembleTime is what the ensemble's clock says.
func (w *world) ensembleTime() time.Time { return time.Now().Add(w.ensembleAhead()) }

// latestEnsembleTime is the latest that the ensemble's clock can have said, at any time, with what has passed since then.
func (w *world) latestEnsembleTime() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.mostAhead)
}

// loseReply loses the reply to one of the next requests of a process that change something.
func (w *world) loseReply(f fault, p *process, r *rand.Rand) {
	lost := w.zk.DropReply(1+r.IntN(3), zktest.Match{Func: func(q zktest.Request) bool {
		return w.eye.whose(q.Session) == p && (describe(q) != "" || q.Op == zktest.OpMulti && oneIn(r, 4))
	}})
	w.tasks.Go(func() {
		select {
		case <-lost.Hit():
			w.hit(f.kind)
			w.h.note("", "FAULT %s of %s", f.kind, p.name)
		case <-w.over:
			lost.Cancel()
		}
	})
}

// slow has the server answer late.
func (w *world) slow(f fault, r *rand.Rand) {
	op := pick(r, zktest.OpCreate2, zktest.OpDelete, zktest.OpMulti, zktest.OpGetChildren2, zktest.OpExists, zktest.OpGetData, zktest.OpSync)
	slow := w.zk.DelayReplies(between(r, 0, 2*time.Second), zktest.Match{Op: op})
	w.tasks.Go(func() {
		select {
		case <-time.After(f.length):
		case <-w.over:
		}
		slow.Cancel()
	})
}

// expire ends a process's session, as an operator does.
func (w *world) expire(p *process) bool {
	var id int64
	for _, s := range w.zk.Sessions() {
		if w.eye.whose(s.ID) == p {
			id = s.ID
		}
	}
	if id == 0 {
		return false
	}
	w.doomSession(id, p)
	return w.zk.Expire(id) == nil
}

// deleteNode deletes a node that somebody stands in line with, as an operator does.
func (w *world) deleteNode(r *rand.Rand) bool {
	var nodes []zktest.Node
	for _, s := range w.scenes {
		for _, n := range w.zk.Tree(s.path()) {
			if n.Kind == zktest.Ephemeral && s.mayDelete(n.Path) {
				nodes = append(nodes, n)
			}
		}
	}
	if len(nodes) == 0 {
		return false
	}
	node := nodes[r.IntN(len(nodes))]
	w.doomNode(node)
	w.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), w.plan.timeout)
		defer cancel()
		err := w.operator.Delete(ctx, node.Path, framework.AnyVersion)
		w.h.note("", "an operator deletes %s: %v", node.Path, err)
	})
	return true
}

// freeze stops a process for a while. What it holds is checked before anything in it can go on.
func (w *world) freeze(f fault, p *process) {
	p.suffer(freeze, 0)
	p.freeze()
	w.after(f.length, func() {
		w.checkThawing(p)
		p.recover(freeze)
		p.thaw()
	})
}

// replace lets a process crash, and starts another one at its place.
func (w *world) replace(p *process) {
	w.mu.Lock()
	if w.processes[p.place] != p { // it is dead already
		w.mu.Unlock()
		return
	}
	w.lives[p.place]++
	next := w.start(p.place, w.lives[p.place])
	w.processes[p.place] = next
	w.mu.Unlock()
	p.die()
	w.play(next)
}

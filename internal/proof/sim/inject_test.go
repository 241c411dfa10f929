package sim

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// injectFaults injects the plan's faults at their times.
func (sim *simulation) injectFaults() {
	for _, f := range sim.plan.faults {
		select {
		case <-time.After(time.Until(sim.history.began.Add(f.at))):
		case <-sim.programEnd:
			return
		}
		sim.injectWhenDue(f)
	}
}

// injectWhenDue injects a fault now, or at a ping, or after some requests of its process.
func (sim *simulation) injectWhenDue(f fault) {
	p := sim.processAt(f.process)
	if f.atPing {
		p.atNextPing(func() { sim.injectAfterRequests(f, p) })
		return
	}
	sim.injectAfterRequests(f, p)
}

// injectAfterRequests injects a fault now, or after some requests of its process, and rouses the
// process's actors near it.
func (sim *simulation) injectAfterRequests(f fault, p *process) {
	if f.rouseAfter > 0 {
		sim.later(f.rouseAfter, p.rouse)
	}
	injectUnlessEnded := func() {
		if !sim.programEnded() && p.ctx.Err() == nil {
			sim.inject(f, p)
		}
	}
	if f.afterRequests == 0 {
		injectUnlessEnded()
		return
	}
	p.afterRequests(f.afterRequests, injectUnlessEnded)
}

// processAt is the living process in a slot.
func (sim *simulation) processAt(place int) *process {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return sim.processes[place]
}

func (sim *simulation) inject(f fault, p *process) {
	r := rand.New(rand.NewPCG(f.seed, 1))
	switch f.kind {
	case lostReply:
		sim.loseReply(f, p, r)
		return // counted when the reply is lost
	case slowReplies:
		sim.slowReplies(f, r)
	case expireSession:
		if !sim.expire(p) {
			return
		}
	case deleteNode:
		if !sim.deleteNode(r) {
			return
		}
	case loseToLeader, loseFromLeader, cutFollower, stallFollower:
		if !sim.holdFollower(f, p, oneIn(r, 2)) {
			return
		}
	case resetLink:
		p.link.Reset()
	case crashClient:
		sim.crashAndReplace(p)
	case wallClockJump:
		p.skew.Add(int64(durationBetween(r, -time.Minute, time.Minute)))
	case restartServer:
		sim.zk.Restart()
	case wrongClock:
		leader, back := oneIn(r, 2), oneIn(r, 2) // whether another server becomes the leader
		sim.setEnsembleClock(pickOne[time.Duration](r, 1, -1)*pickOne(r, durationBetween(r, 0, 20*time.Second),
			durationBetween(r, 0, 3*time.Minute), durationBetween(r, 0, 2*time.Hour)), leader)
		sim.later(f.duration, func() { sim.setEnsembleClock(0, back) })
	case reapContainers:
		sim.zk.Reap()
	case freezeServer:
		sim.zk.Freeze()
		sim.later(f.duration, sim.zk.Thaw)
	case reapContainersSoon:
		sim.observer.changeReapingSoon(1)
		sim.later(f.duration, func() { sim.observer.changeReapingSoon(-1) })
	case freezeClient:
		sim.freezeProcess(f, p)
	default:
		p.beginFault(f.kind, durationBetween(r, 0, 2*time.Second))
		if f.kind == halfOpen {
			p.link.Reset()
		}
		sim.later(f.duration, func() { p.endFault(f.kind) })
	}
	sim.countFault(f.kind)
	sim.history.add("", "FAULT %s%s", f.kind, faultTarget(f, p))
}

func faultTarget(f fault, p *process) string {
	text := ""
	if !f.kind.isServerFault() {
		text = " of " + p.name
	}
	if f.kind.hasDuration() {
		text += " for " + f.duration.Round(time.Microsecond).String()
	}
	return text
}

// later calls do after d, unless the program has ended: its end heals all faults.
func (sim *simulation) later(d time.Duration, do func()) {
	sim.tasks.Go(func() {
		select {
		case <-time.After(d):
			if !sim.programEnded() {
				do()
			}
		case <-sim.programEnd:
		}
	})
}

// setEnsembleClock sets how far the ensemble's clock is ahead of the true time, with a restart if a
// new leader brings it.
func (sim *simulation) setEnsembleClock(ahead time.Duration, restart bool) {
	sim.mu.Lock()
	sim.clockAhead, sim.maxClockAhead = ahead, max(ahead, sim.maxClockAhead)
	sim.mu.Unlock()
	sim.zk.Skew(ahead) // without the mutex, which the server's observers lock
	sim.history.add("", "the ensemble's clock is %v ahead", ahead)
	if restart {
		sim.zk.Restart()
	}
}

func (sim *simulation) ensembleClockAhead() time.Duration {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return sim.clockAhead
}

// ensembleTime is the ensemble's current time.
func (sim *simulation) ensembleTime() time.Time { return time.Now().Add(sim.ensembleClockAhead()) }

// latestEnsembleTime is an upper bound of all times that the ensemble's clock has shown until now.
func (sim *simulation) latestEnsembleTime() time.Time {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return time.Now().Add(sim.maxClockAhead)
}

// loseReply loses the reply to one of the next requests of a process that change something.
func (sim *simulation) loseReply(f fault, p *process, r *rand.Rand) {
	lost := sim.zk.DropReply(1+r.IntN(3), zktest.Match{Func: func(q zktest.Request) bool {
		return sim.observer.processOf(q.Session) == p &&
			(describeRequest(q) != "" || q.Op == zktest.OpMulti && oneIn(r, 4))
	}})
	sim.tasks.Go(func() {
		select {
		case <-lost.Hit():
			sim.countFault(f.kind)
			sim.history.add("", "FAULT %s of %s", f.kind, p.name)
		case <-sim.programEnd:
			lost.Cancel()
		}
	})
}

// slowReplies delays the server's replies to one kind of request.
func (sim *simulation) slowReplies(f fault, r *rand.Rand) {
	op := pickOne(r, zktest.OpCreate2, zktest.OpDelete, zktest.OpMulti, zktest.OpGetChildren2, zktest.OpExists,
		zktest.OpGetData, zktest.OpSync)
	slow := sim.zk.DelayReplies(durationBetween(r, 0, 2*time.Second), zktest.Match{Op: op})
	sim.tasks.Go(func() {
		select {
		case <-time.After(f.duration):
		case <-sim.programEnd:
		}
		slow.Cancel()
	})
}

// expire ends a process's session, as an operator does.
func (sim *simulation) expire(p *process) bool {
	id := sim.sessionOf(p)
	if id == 0 {
		return false
	}
	sim.noteExpiredSession(id, p)
	return sim.zk.Expire(id) == nil
}

// sessionOf is the newest session of a process; 0 without one.
func (sim *simulation) sessionOf(p *process) (id framework.SessionID) {
	for _, s := range sim.zk.Sessions() {
		if sim.observer.processOf(s.ID) == p {
			id = s.ID
		}
	}
	return id
}

// holdFollower holds messages between the leader and the follower that serves a process. If it is
// the only one that the process knows, each new connection is to it too, and gets no answer.
func (sim *simulation) holdFollower(f fault, p *process, only bool) bool {
	hold, err := sim.zk.Follower(sim.sessionOf(p))
	if err != nil { // the process is not connected
		return false
	}
	release := func() { hold(false, false) }
	sim.mu.Lock()
	sim.heldFollowers = append(sim.heldFollowers, release)
	sim.mu.Unlock()
	hold(f.kind == loseToLeader || f.kind == cutFollower, f.kind != loseToLeader)
	if only {
		p.beginFault(halfOpen, 0)
		sim.later(f.duration, func() { p.endFault(halfOpen) })
	}
	if f.kind != stallFollower {
		sim.later(f.duration, release)
		return true
	}
	sim.later(f.duration/3, func() {
		hold(true, false)
		sim.later(f.duration, release)
	})
	return true
}

// releaseFollowers ends the faults of all followers.
func (sim *simulation) releaseFollowers() {
	sim.mu.Lock()
	all := sim.heldFollowers
	sim.mu.Unlock()
	for _, release := range all {
		release()
	}
}

// deleteNode deletes a contender's node, as an operator does.
func (sim *simulation) deleteNode(r *rand.Rand) bool {
	var nodes []zktest.Node
	for _, s := range sim.workloads {
		for _, n := range sim.zk.Tree(s.path()) {
			if n.Mode == zktest.Ephemeral && s.mayBeDeleted(n.Path) {
				nodes = append(nodes, n)
			}
		}
	}
	if len(nodes) == 0 {
		return false
	}
	node := nodes[r.IntN(len(nodes))]
	sim.noteDeletedNode(node)
	sim.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), sim.plan.sessionTimeout)
		defer cancel()
		err := sim.operator.Delete(ctx, node.Path, framework.AnyVersion)
		sim.history.add("", "an operator deletes %s: %v", node.Path, err)
	})
	return true
}

// freezeProcess freezes a process for a while. Its holds are checked before it thaws.
func (sim *simulation) freezeProcess(f fault, p *process) {
	p.beginFault(freezeClient, 0)
	p.freeze()
	sim.later(f.duration, func() {
		sim.checkBeforeThaw(p)
		p.endFault(freezeClient)
		p.thaw()
	})
}

// crashAndReplace crashes a process and starts another one in its slot.
func (sim *simulation) crashAndReplace(p *process) {
	sim.mu.Lock()
	if sim.processes[p.slot] != p { // it has crashed already
		sim.mu.Unlock()
		return
	}
	sim.restarts[p.slot]++
	next := sim.startProcess(p.slot, sim.restarts[p.slot])
	sim.processes[p.slot] = next
	sim.mu.Unlock()
	p.crash()
	sim.startActors(next)
}

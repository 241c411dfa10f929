package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// faultKind is one kind of fault.
type faultKind string

// The kinds of faults. Actors end their contexts themselves, so contextEnd is only counted here.
const (
	// a request is carried out, and its reply lost with the connection
	lostReply     faultKind = "lost reply"
	slowReplies   faultKind = "slow replies"     // all replies are delayed
	resetLink     faultKind = "connection reset" //
	cutLink       faultKind = "link cut"         // connections are refused
	holdUp        faultKind = "black hole up"    // requests are lost
	holdDown      faultKind = "black hole down"  // replies are lost
	holdBoth      faultKind = "black hole both"  //
	halfOpen      faultKind = "half-open server" // connections are accepted, and never answered
	delayLink     faultKind = "slow link"        //
	freezeClient  faultKind = "frozen process"   //
	crashClient   faultKind = "crashed process"  // another process replaces it
	wallClockJump faultKind = "wall clock jumps" //
	expireSession faultKind = "session expired"  // an operator ends a session
	deleteNode    faultKind = "node deleted"     // an operator deletes a contender's node
	freezeServer  faultKind = "frozen server"    //
	restartServer faultKind = "server restart"   // or an ensemble's new leader
	// the clock of a new leader, or a clock that is set; drawn separately
	wrongClock         faultKind = "wrong ensemble clock"
	reapContainers     faultKind = "containers reaped"      // once
	reapContainersSoon faultKind = "containers reaped soon" // after each delete, for a while
	contextEnd         faultKind = "context end"            // drawn by actors

	// Faults between the leader and the follower that serves a process, which answers pings all the
	// same. They are drawn separately.
	loseToLeader   faultKind = "follower to leader lost"
	loseFromLeader faultKind = "leader to follower lost"
	cutFollower    faultKind = "follower cut off"
	stallFollower  faultKind = "follower stalled, then follower to leader lost"
)

var faultKinds = []faultKind{lostReply, slowReplies, resetLink, cutLink, holdUp, holdDown, holdBoth, halfOpen,
	delayLink, freezeClient, crashClient, wallClockJump, expireSession, deleteNode,
	freezeServer, restartServer, reapContainers, reapContainersSoon}

// frequentFaults are drawn more often.
var frequentFaults = []faultKind{lostReply, lostReply, lostReply, resetLink, cutLink, holdBoth, freezeClient}

// fault is one fault of a plan.
type fault struct {
	kind   faultKind
	at     time.Duration
	atPing bool // wait for a ping of the process
	// if not zero: wait for so many requests of the process, counted from at or from that ping
	afterRequests int
	rouseAfter    time.Duration // if not zero: actors of the process that pause end their pauses so long after that
	process       int
	duration      time.Duration
	seed          uint64 // of the fault's other random choices
}

func drawFault(r *rand.Rand, p plan, at time.Duration) fault {
	f := fault{kind: pickOne(r, append(frequentFaults, faultKinds...)...), at: at, process: r.IntN(p.processes),
		seed: r.Uint64()}
	f.duration = pickOne(r, durationBetween(r, 0, time.Second), durationBetween(r, 0, p.sessionTimeout),
		durationBetween(r, 0, 3*p.sessionTimeout))
	if oneIn(r, 2) {
		f.afterRequests = 1 + r.IntN(20)
	}
	return f
}

// drawClockFaults sets the ensemble's clock wrong in half of the plans whose workloads use it, and
// in no other plan.
func drawClockFaults(r *rand.Rand, p plan) (all []fault) {
	for _, s := range p.workloads {
		if s.recipe == "queue" || s.recipe == "lines" || s.recipe == "cancels" || s.recipe == "runs" {
			return nil // delayed items would wait for a clock that comes back from far
		}
	}
	if !slices.ContainsFunc(p.workloads, func(s workloadSpec) bool {
		return slices.Contains([]string{"scheduler", "control", "jobs", "ids"}, s.recipe)
	}) || oneIn(r, 2) {
		return nil
	}
	gap := pickOne(r, 2*time.Second, 20*time.Second, time.Minute)
	for at := durationBetween(r, 0, 2*gap); at < p.duration; at += durationBetween(r, 0, 2*gap) {
		all = append(all, fault{kind: wrongClock, at: at, duration: pickOne(r, durationBetween(r, 0, 5*time.Second),
			durationBetween(r, 0, 2*time.Minute)), seed: r.Uint64()})
	}
	return all
}

// followerFaults are the faults that meet sessions as they wake. Those of links last long here.
var followerFaults = []faultKind{loseToLeader, loseToLeader, loseFromLeader, cutFollower, stallFollower, stallFollower,
	stallFollower, holdUp, cutLink, freezeClient}

// drawFollowerFaults spreads faults over a plan that has followers. Each is aimed: at a ping, or at
// one of the next requests. Near it, actors of the process that pause go on, so that their session
// wakes in the middle of the fault.
func drawFollowerFaults(r *rand.Rand, p plan) (all []fault) {
	if !p.followers {
		return nil
	}
	gap := pickOne(r, p.sessionTimeout, 3*p.sessionTimeout)
	for at := durationBetween(r, 0, 2*gap); at < p.duration; at += durationBetween(r, p.sessionTimeout, 2*gap) {
		f := fault{kind: pickOne(r, followerFaults...), at: at, process: r.IntN(p.processes), seed: r.Uint64(),
			duration: durationBetween(r, p.sessionTimeout/4, 3*p.sessionTimeout)}
		f.rouseAfter = 1 + pickOne(r, durationBetween(r, 0, time.Second), durationBetween(r, 0, p.sessionTimeout))
		if f.kind == stallFollower && !oneIn(r, 3) {
			// The session wakes by the pings at which the stall began, and its first write is
			// answered just before it would be given up.
			f.rouseAfter = durationBetween(r, p.sessionTimeout/4, p.sessionTimeout/2)
			f.duration = 3 * (f.rouseAfter + durationBetween(r, p.sessionTimeout/20, p.sessionTimeout/4))
		}
		f.atPing = f.kind == stallFollower || !oneIn(r, 3)
		if f.kind != stallFollower && !(f.atPing && oneIn(r, 3)) {
			f.afterRequests = 1 + r.IntN(5)
		}
		all = append(all, f)
	}
	return all
}

// hasDuration reports whether faults of this kind last for the fault's duration.
func (k faultKind) hasDuration() bool {
	switch k {
	case lostReply, resetLink, crashClient, wallClockJump, expireSession, deleteNode, restartServer, reapContainers:
		return false
	}
	return true
}

// isServerFault reports whether faults of this kind affect all processes.
func (k faultKind) isServerFault() bool {
	switch k {
	case freezeServer, restartServer, reapContainers, reapContainersSoon, deleteNode, wrongClock:
		return true
	}
	return false
}

func (f fault) String() string {
	text := fmt.Sprintf("%10.3fs  %s", f.at.Seconds(), f.kind)
	if !f.kind.isServerFault() {
		text += fmt.Sprintf(" of p%d", f.process)
	}
	if f.atPing {
		text += ", at its next ping"
	}
	if f.rouseAfter > 0 {
		text += fmt.Sprintf(", its sleepers roused %v later", f.rouseAfter.Round(time.Millisecond))
	}
	if f.afterRequests > 0 {
		text += fmt.Sprintf(", at its request %d from then", f.afterRequests)
	}
	if f.kind.hasDuration() {
		text += fmt.Sprintf(", for %v", f.duration.Round(time.Millisecond))
	}
	return text
}

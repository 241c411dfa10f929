package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// kind is a kind of fault.
type kind string

// The kinds of faults. The end of a context is not among them: actors end their own.
const (
	lostReply    kind = "lost reply"             // a request is done, its answer lost with the connection
	slowReplies  kind = "slow replies"           // all answers wait
	reset        kind = "connection reset"       //
	cut          kind = "link cut"               // connections are refused
	holdUp       kind = "black hole up"          // nothing arrives at the server
	holdDown     kind = "black hole down"        // nothing arrives from the server
	holdBoth     kind = "black hole both"        //
	halfOpen     kind = "half-open server"       // connections are accepted by nobody
	delay        kind = "slow link"              //
	freeze       kind = "frozen process"         //
	crash        kind = "crashed process"        // another one takes its place
	jump         kind = "wall clock jumps"       //
	expire       kind = "session expired"        // an operator ends a session
	deleteNode   kind = "node deleted"           // an operator deletes a node in a line
	freezeServer kind = "frozen server"          //
	restart      kind = "server restart"         // or an ensemble's new leader
	wrongClock   kind = "wrong ensemble clock"   // another leader's, or the same one's that is set; drawn by itself
	reap         kind = "containers reaped"      // once
	reapAll      kind = "containers reaped soon" // as soon as something was deleted, for a while
	contextEnd   kind = "context end"            // counted here, drawn by actors
)

var kinds = []kind{lostReply, slowReplies, reset, cut, holdUp, holdDown, holdBoth, halfOpen, delay, freeze, crash, jump, expire, deleteNode,
	freezeServer, restart, reap, reapAll}

// often are the kinds that are drawn more than others.
var often = []kind{lostReply, lostReply, lostReply, reset, cut, holdBoth, freeze}

// fault is one fault of a plan.
type fault struct {
	kind    kind
	at      time.Duration
	nth     int // not zero: not before this request of the process, counted from at on, was done
	process int
	length  time.Duration
	draw    uint64 // for what else is left to chance
}

func drawFault(r *rand.Rand, p plan, at time.Duration) fault {
	f := fault{kind: pick(r, append(often, kinds...)...), at: at, process: r.IntN(p.processes), draw: r.Uint64()}
	f.length = pick(r, between(r, 0, time.Second), between(r, 0, p.timeout), between(r, 0, 3*p.timeout))
	if oneIn(r, 2) {
		f.nth = 1 + r.IntN(20)
	}
	return f
}

// drawClockFaults makes the ensemble's clock wrong in half of the plans of scenes that go by it, and in no others.
func drawClockFaults(r *rand.Rand, p plan) (all []fault) {
	for _, s := range p.scenes {
		if s.recipe == "queue" || s.recipe == "lines" {
			return nil // what is delayed there waits for a clock that may come back from far
		}
	}
	if !slices.ContainsFunc(p.scenes, func(s sceneSpec) bool { return slices.Contains([]string{"scheduler", "control", "jobs"}, s.recipe) }) || oneIn(r, 2) {
		return nil
	}
	gap := pick(r, 2*time.Second, 20*time.Second, time.Minute)
	for at := between(r, 0, 2*gap); at < p.length; at += between(r, 0, 2*gap) {
		all = append(all, fault{kind: wrongClock, at: at, length: pick(r, between(r, 0, 5*time.Second), between(r, 0, 2*time.Minute)), draw: r.Uint64()})
	}
	return all
}

// lasts tells kinds that go on for the fault's length.
func (k kind) lasts() bool {
	switch k {
	case lostReply, reset, crash, jump, expire, deleteNode, restart, reap:
		return false
	}
	return true
}

// ofServer tells kinds that concern no single process.
func (k kind) ofServer() bool {
	switch k {
	case freezeServer, restart, reap, reapAll, deleteNode, wrongClock:
		return true
	}
	return false
}

func (f fault) String() string {
	text := fmt.Sprintf("%10.3fs  %s", f.at.Seconds(), f.kind)
	if !f.kind.ofServer() {
		text += fmt.Sprintf(" of p%d", f.process)
	}
	if f.nth > 0 {
		text += fmt.Sprintf(", at its request %d from then", f.nth)
	}
	if f.kind.lasts() {
		text += fmt.Sprintf(", for %v", f.length.Round(time.Millisecond))
	}
	return text
}

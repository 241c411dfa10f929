package main

import (
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/scheduler"
)

// recorder writes the live log and collects the figures of the summary.
type recorder struct {
	demo.Log
	timeout time.Duration

	leader       string // who leads, or ""
	terms        []term
	ticks        map[time.Time]int64 // how often each tick was run
	killedLeader string
	killedAt     time.Time
	takeover     time.Duration
	stopping     bool // the members are being stopped
	state        scheduler.State
}

func newRecorder(log demo.Log) *recorder {
	return &recorder{Log: log, ticks: map[time.Time]int64{}}
}

// record adds an event of a member. It returns an error if a member has ended that was neither
// killed nor stopped.
func (rec *recorder) record(received demo.ChildEvent[event]) error {
	e, member := received.Event, received.Child
	if received.Ended && !rec.stopping && member != rec.killedLeader {
		return fmt.Errorf("%s has ended by itself", member)
	}
	if e.Kind == fired {
		rec.ticks[e.Tick]++
	}
	if rec.stopping { // changes of leader at the end do not matter
		return nil
	}
	switch e.Kind {
	case leading:
		rec.recordLeader(received)
	case following:
		if rec.leader == member {
			rec.leader = ""
		}
		rec.Marked(received.At, rec.Yellow("-"), "%s no longer leads", member)
	case fired:
		rec.Marked(received.At, rec.Green("+"), "%s ran the tick of %s", member, e.Tick.Local().Format(time.TimeOnly))
	case missed:
		rec.Marked(received.At, rec.Yellow("!"), "%d missed from %s on: %s", e.Count,
			e.Tick.Local().Format(time.TimeOnly), e.Reason)
	}
	return nil
}

func (rec *recorder) recordLeader(received demo.ChildEvent[event]) {
	member, token := received.Child, received.Event.Token
	rec.leader = member
	rec.terms = append(rec.terms, term{member, token})
	after := ""
	if rec.killedLeader != "" && rec.takeover == 0 {
		rec.takeover = received.At.Sub(rec.killedAt)
		after = fmt.Sprintf(", %v after the kill", rec.takeover.Round(time.Millisecond))
	}
	rec.Marked(received.At, rec.Cyan("*"), "%s leads with token %d%s", rec.Bold(member), token, after)
}

// recordKill records that the leader was killed.
func (rec *recorder) recordKill(member string, at time.Time) {
	rec.leader, rec.killedLeader, rec.killedAt = "", member, at
	rec.Marked(at, rec.Red("x"), "%s is killed (SIGKILL); nothing is restarted", rec.Bold(member))
}

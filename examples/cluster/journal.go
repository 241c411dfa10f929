package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/lockstep-go/lockstep/scheduler"
)

// journal writes the live log and collects the figures of the summary.
type journal struct {
	out     io.Writer
	colour  bool
	timeout time.Duration

	leads    string // who leads, or ""
	terms    []term
	ticks    map[time.Time]int64 // how often each tick was run
	victim   string
	deadAt   time.Time
	takeover time.Duration
	ended    bool // the members are being stopped
	state    scheduler.State
}

// newJournal writes in colour on a terminal, unless NO_COLOR is set.
func newJournal(out *os.File) *journal {
	info, err := out.Stat()
	watched := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &journal{out: out, colour: watched && os.Getenv("NO_COLOR") == "", ticks: map[time.Time]int64{}}
}

// The colours of terminals.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (j *journal) paint(colour, text string) string {
	if !j.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

const clock = "15:04:05.000"

// log writes one line of the live log.
func (j *journal) log(at time.Time, mark, format string, args ...any) {
	fmt.Fprintf(j.out, "%s  %s  %s\n", j.paint(dim, at.Local().Format(clock)), mark, fmt.Sprintf(format, args...))
}

// take notes an event of a member.
func (j *journal) take(e event) {
	if e.Kind == fired {
		j.ticks[e.Tick]++
	}
	if j.ended { // changes of leader at the end do not matter
		return
	}
	switch e.Kind {
	case leading:
		j.lead(e)
	case following:
		if j.leads == e.Member {
			j.leads = ""
		}
		j.log(e.At, j.paint(yellow, "-"), "%s leads no more", e.Member)
	case fired:
		j.log(e.At, j.paint(green, "+"), "%s ran the tick of %s", e.Member, e.Tick.Local().Format(time.TimeOnly))
	case missed:
		j.log(e.At, j.paint(yellow, "!"), "%d missed from %s on: %s", e.Count, e.Tick.Local().Format(time.TimeOnly), e.Reason)
	}
}

func (j *journal) lead(e event) {
	j.leads = e.Member
	j.terms = append(j.terms, term{e.Member, e.Token})
	if j.victim == "" || j.takeover != 0 {
		j.log(e.At, j.paint(cyan, "*"), "%s leads with token %d", j.paint(bold, e.Member), e.Token)
		return
	}
	j.takeover = e.At.Sub(j.deadAt)
	j.log(e.At, j.paint(cyan, "*"), "%s leads with token %d, %v after the kill",
		j.paint(bold, e.Member), e.Token, j.takeover.Round(time.Millisecond))
}

// killed notes the leader's death.
func (j *journal) killed(member string, at time.Time) {
	j.leads, j.victim, j.deadAt = "", member, at
	j.log(at, j.paint(red, "x"), "%s is killed (SIGKILL); nothing is restarted", j.paint(bold, member))
}

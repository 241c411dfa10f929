package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/internal/terminal"
)

// story writes the live log and collects the figures of the summary.
type story struct {
	out    io.Writer
	style  terminal.Style
	fenced bool
	place  string

	timeout  time.Duration // as granted by the servers
	grants   []grant
	frozenAt time.Time
	takeover time.Duration
	resumed  bool
	late     *event // the frozen holder's write
	balance  int64  // at the end
}

type grant struct {
	Holder string `json:"holder"`
	Token  int64  `json:"token"`
}

func newStory(o options) *story {
	place := "a ZooKeeper in memory"
	if len(o.servers) > 0 {
		place = strings.Join(o.servers, ",")
	}
	return &story{out: o.log(), style: terminal.For(o.log()), fenced: !o.unfenced, place: place}
}

const clock = "15:04:05.000"

// log writes one line of the live log.
func (s *story) log(at time.Time, mark, format string, args ...any) {
	fmt.Fprintf(s.out, "%s  %s  %s\n", s.style.Dim(at.Local().Format(clock)), mark, fmt.Sprintf(format, args...))
}

// take notes an event of a holder.
func (s *story) take(e event) {
	who := s.style.Bold(e.Holder)
	switch e.Kind {
	case connected:
		s.connected(e)
	case waiting:
		s.log(e.At, " ", "%s waits for the lock", who)
	case granted:
		s.granted(e)
	case ready:
		s.log(e.At, " ", "%s has read the balance and is about to write %d", who, e.Balance)
	case lost:
		s.log(e.At, s.style.Yellow("-"), "%s has lost its lease: %s", who, e.Reason)
	case written:
		s.written(e)
	case refused:
		s.log(e.At, s.style.Red("!"), "%s may not write %d: %s", who, e.Balance, s.style.Red(e.Reason))
	}
	if s.resumed && s.late == nil && (e.Kind == written || e.Kind == refused) {
		s.late = &e
	}
}

func (s *story) connected(e event) {
	if s.timeout == 0 {
		s.log(e.At, " ", "an account with %d in SQLite, a lock on %s, session timeout %v", opening, s.place, e.Timeout)
	}
	s.timeout = e.Timeout
}

func (s *story) granted(e event) {
	s.grants = append(s.grants, grant{e.Holder, e.Token})
	after := ""
	if !s.frozenAt.IsZero() && s.takeover == 0 {
		s.takeover = e.At.Sub(s.frozenAt)
		after = fmt.Sprintf(", %v after the freeze", s.takeover.Round(time.Millisecond))
	}
	s.log(e.At, s.style.Cyan("*"), "%s holds the lock with token %d%s", s.style.Bold(e.Holder), e.Token, after)
}

// written shows an accepted write, in red if a holder with a higher token had written before.
func (s *story) written(e event) {
	mark, over := s.style.Green("+"), ""
	if newest := s.grants[len(s.grants)-1].Token; e.Token < newest {
		mark, over = s.style.Red("!"), s.style.Red(fmt.Sprintf(" over what token %d had written", newest))
	}
	s.log(e.At, mark, "%s has written %d with token %d%s", s.style.Bold(e.Holder), e.Balance, e.Token, over)
}

// freezes notes that a holder was frozen.
func (s *story) freezes(holder string) {
	s.frozenAt = time.Now()
	s.log(s.frozenAt, s.style.Red("x"), "%s is frozen (SIGSTOP)", s.style.Bold(holder))
}

// goesOn notes that a holder continues.
func (s *story) goesOn(holder string) {
	s.resumed = true
	s.log(time.Now(), s.style.Cyan(">"), "%s continues (SIGCONT), with a late write", s.style.Bold(holder))
}

// summary is the JSON that is printed.
type summary struct {
	Fenced         bool    `json:"fenced"`
	Grants         []grant `json:"grants"`
	LateWrite      string  `json:"late_write"`
	Balance        int64   `json:"balance"`
	Expected       int64   `json:"expected"`
	TakeoverMs     int64   `json:"takeover_ms"`
	SessionTimeout int64   `json:"session_timeout_ms"`
}

func (s *story) summary() summary {
	late := "none"
	switch {
	case s.late == nil:
	case s.late.Kind == refused:
		late = s.late.Reason
	default:
		late = "accepted"
	}
	return summary{
		Fenced: s.fenced, Grants: s.grants, LateWrite: late, Balance: s.balance, Expected: opening + annsDeposit + bobsDeposit,
		TakeoverMs: s.takeover.Milliseconds(), SessionTimeout: s.timeout.Milliseconds(),
	}
}

func (s *story) writeJSON(w io.Writer) error { return json.NewEncoder(w).Encode(s.summary()) }

// writeSummary writes the last line as text; verdict reports violations.
func (s *story) writeSummary() {
	if s.verdict() == nil {
		fmt.Fprintf(s.out, "\n%s the late write was refused, and both deposits are in the account: %d.\n", s.style.Green("Held:"), s.balance)
		return
	}
	fmt.Fprintf(s.out, "\n%s the account has %d.\n", s.style.Red("Broken:"), s.balance)
}

// verdict returns an error that lists all violations.
func (s *story) verdict() error {
	var errs []error
	if s.late == nil || s.late.Kind != refused {
		errs = append(errs, errors.New("the late write was not refused"))
	}
	if got, want := s.balance, s.summary().Expected; got != want {
		errs = append(errs, fmt.Errorf("the balance is %d, want %d: a deposit is lost", got, want))
	}
	for i := 1; i < len(s.grants); i++ {
		if s.grants[i].Token <= s.grants[i-1].Token {
			errs = append(errs, fmt.Errorf("token %d follows %d: it did not rise", s.grants[i].Token, s.grants[i-1].Token))
		}
	}
	return errors.Join(errs...)
}

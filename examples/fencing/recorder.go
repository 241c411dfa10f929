package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
)

// recorder writes the live log and collects the figures of the summary.
type recorder struct {
	demo.Log
	fenced bool

	timeout  time.Duration // as granted by the servers
	grants   []grant
	frozenAt time.Time
	takeover time.Duration
	resumed  bool
	late     *event // the frozen holder's write
	balance  int64  // of the account, at the end
	token    int64  // of the account, at the end
}

type grant struct {
	Holder string `json:"holder"`
	Token  int64  `json:"token"`
}

func newRecorder(o options) *recorder {
	return &recorder{Log: demo.NewLog(o.json), fenced: !o.unfenced}
}

// record adds an event of a holder.
func (rec *recorder) record(e event) {
	who := rec.Bold(e.Holder)
	switch e.Kind {
	case waiting:
		rec.Marked(e.At, " ", "%s waits for the lock", who)
	case granted:
		rec.granted(e)
	case ready:
		rec.Marked(e.At, " ", "%s has read the balance and is about to write %d", who, e.Balance)
	case lost:
		rec.Marked(e.At, rec.Yellow("-"), "%s: %s", who, e.Reason)
	case written:
		rec.written(e)
	case refused:
		rec.Marked(e.At, rec.Red("!"), "%s's write of %d: %s", who, e.Balance, rec.Red(e.Reason))
	}
	if rec.resumed && rec.late == nil && (e.Kind == written || e.Kind == refused) {
		rec.late = &e
	}
}

func (rec *recorder) granted(e event) {
	rec.grants = append(rec.grants, grant{e.Holder, e.Token})
	after := ""
	if !rec.frozenAt.IsZero() && rec.takeover == 0 {
		rec.takeover = e.At.Sub(rec.frozenAt)
		after = fmt.Sprintf(", %v after the freeze", rec.takeover.Round(time.Millisecond))
	}
	rec.Marked(e.At, rec.Cyan("*"), "%s holds the lock with token %d%s", rec.Bold(e.Holder), e.Token, after)
}

// written shows an accepted write, in red if a holder with a higher token had written before.
func (rec *recorder) written(e event) {
	mark, over := rec.Green("+"), ""
	if newest := rec.grants[len(rec.grants)-1].Token; e.Token < newest {
		mark, over = rec.Red("!"), rec.Red(fmt.Sprintf(", which overwrites the write of token %d", newest))
	}
	rec.Marked(e.At, mark, "%s has written %d with token %d%s", rec.Bold(e.Holder), e.Balance, e.Token, over)
}

// holderFrozen records that a holder was frozen.
func (rec *recorder) holderFrozen(holder string) {
	rec.frozenAt = time.Now()
	rec.Marked(rec.frozenAt, rec.Red("x"), "%s is frozen (SIGSTOP)", rec.Bold(holder))
}

// holderContinues records that a holder continues.
func (rec *recorder) holderContinues(holder string) {
	rec.resumed = true
	rec.Marked(time.Now(), rec.Cyan(">"), "%s continues (SIGCONT), with a late write", rec.Bold(holder))
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

func (rec *recorder) summary() summary {
	late := "none"
	switch {
	case rec.late == nil:
	case rec.late.Kind == refused:
		late = rec.late.Reason
	default:
		late = "accepted"
	}
	return summary{
		Fenced: rec.fenced, Grants: rec.grants, LateWrite: late, Balance: rec.balance,
		Expected:   opening + annsDeposit + bobsDeposit,
		TakeoverMs: rec.takeover.Milliseconds(), SessionTimeout: rec.timeout.Milliseconds(),
	}
}

func (rec *recorder) writeJSON(w io.Writer) error { return json.NewEncoder(w).Encode(rec.summary()) }

// writeSummary writes the last line as text; verdict reports violations.
func (rec *recorder) writeSummary() {
	if rec.verdict() == nil {
		fmt.Fprintf(rec.Out, "\n%s the late write was refused, and both deposits are in the account: %d.\n",
			rec.Green("Held:"), rec.balance)
		return
	}
	fmt.Fprintf(rec.Out, "\n%s the account has %d.\n", rec.Red("Broken:"), rec.balance)
}

// verdict returns an error that lists all violations.
func (rec *recorder) verdict() error {
	var errs []error
	if rec.late == nil || rec.late.Kind != refused {
		errs = append(errs, errors.New("the late write was not refused"))
	}
	if got, want := rec.balance, rec.summary().Expected; got != want {
		errs = append(errs, fmt.Errorf("the balance is %d, want %d: a deposit is lost", got, want))
	}
	errs = append(errs, demo.CheckTokensRise(rec.grants, func(g grant) int64 { return g.Token }))
	return errors.Join(errs...)
}

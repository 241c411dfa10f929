package cli

import (
	"fmt"
	"strings"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/internal/procguard"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
)

// The exit codes beside the command's own. Those from 64 on are sysexits.h's, from 126 on the
// shells'. exitMeanings describes them. Scripts see 1 for four reasons.
const (
	ExitNotObtained = 1 // what was asked for is taken, full, empty or over, or did not come in time
	ExitMissing     = 1 // there is nothing of that NAME
	ExitFound       = 1 // there is a problem, or a difference
	ExitConflict    = 1 // it is in another state, or has another version, than the user has said

	ExitDeadlock      = 35
	ExitUsage         = 64
	ExitMismatch      = 65
	ExitNoSession     = 69
	ExitInternal      = 70
	ExitLost          = 75
	ExitNoPermission  = 77
	ExitTimeout       = 124 // as of timeout(1)
	ExitNotExecutable = 126
	ExitNoCommand     = 127
	ExitSignal        = 128 // and the number of the signal that ended the command, or the wait
)

type exitMeaning struct {
	code int
	text string
}

// exitMeanings are the codes and what they mean, in lines as the manual has them.
var exitMeanings = []exitMeaning{
	{1, `lock: not obtained under -n or -w (-E changes the code); check, doctor, jobs --check: there is
a problem; doctor --strict: there is a warning; locks --deadlocks: there is a deadlock; clean: a
node could not be read or deleted; config diff: the values differ; config set, edit: the value has
another version; queue put: the queue has had the id; members drain: the drain has failed; other
commands: the time of -w is over, the queue is full or empty, there is nothing of that NAME, or the
gate is up already`},
	{ExitDeadlock, `lock: a deadlock: the holder of the lock waits for a lock that is held around this command`},
	{ExitUsage, `usage: a bad flag, name, schedule or duration`},
	{ExitMismatch, `the NAME is used with another number of permits or members, or another order of the queue; it
belongs to something else; or its data is too large, damaged or of a newer release`},
	{ExitNoSession, `no session within --connect-timeout; dev: the address cannot be used`},
	{ExitInternal, `any other error`},
	{ExitLost, `the lock, the item, the round, the gate or the session was lost while the command needed it, or
the answer to a write was lost: check whether it was done before you repeat it`},
	{ExitNoPermission, `no permission`},
	{ExitTimeout, `queue take: the command took longer than --timeout`},
	{ExitNotExecutable, `the command cannot be run`},
	{ExitNoCommand, `there is no such command`},
}

// ExitCodeHelp is the manual's table of exit codes.
func ExitCodeHelp() string {
	var b strings.Builder
	for _, m := range exitMeanings {
		fmt.Fprintf(&b, "%5d  %s\n", m.code, strings.ReplaceAll(m.text, "\n", "\n       "))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

const newerHint = "use a newer lockstep"

// ExitError is an error with the code that the program ends with. Without a reason nothing is
// printed.
type ExitError struct {
	Code   int
	Reason error
	Hint   string // what to do next
}

func (e *ExitError) Error() string {
	if e.Reason == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Reason.Error()
}

func (e *ExitError) Unwrap() error { return e.Reason }

// exitCodes are the codes of errors, and what to do next. The first one counts whose reason an
// error wraps.
var exitCodes = []ExitError{
	{ExitNoCommand, procguard.ErrNotFound, ""},
	{ExitNotExecutable, procguard.ErrNotExecutable, ""},
	{ExitLost, procguard.ErrHoldLost, "others may hold it by now; run the command again if it is safe to repeat"},

	{ExitNotObtained, queue.ErrEmpty, ""},
	{ExitNotObtained, queue.ErrFull, ""},
	{ExitNotObtained, queue.ErrDuplicate, ""},
	{ExitNotObtained, queue.ErrTaken, ""},
	{ExitNotObtained, queue.ErrDone, ""},
	{ExitLost, queue.ErrLost, ""},

	{ExitConflict, barrier.ErrRaised, "wait until it is down: lockstep gate wait NAME"},
	{ExitConflict, barrier.ErrCounting, "see who has counted: lockstep latch ls NAME"},
	{ExitMismatch, barrier.ErrTooMany, "more processes than -n use this NAME"},

	{ExitMissing, config.ErrNoValue, "see which versions there are: lockstep config history NAME"},

	{ExitNotObtained, ids.ErrNoSlot, ""},
	{ExitNotObtained, ids.ErrExhausted, ""},

	{ExitNotObtained, members.ErrLeft, ""},
	{ExitNotObtained, members.ErrWithdrawn, ""},
	{ExitNotObtained, members.ErrDrainFailed, ""},

	{ExitNotObtained, registry.ErrIDInUse, ""},

	{ExitConflict, workflow.ErrFinished, ""},
	{ExitConflict, workflow.ErrNotFinished, ""},
	{ExitConflict, workflow.ErrSignalled, ""},
	{ExitMismatch, workflow.ErrIDInUse, "use another ID, or see what it belongs to: lockstep workflows ID"},

	{ExitUsage, scheduler.ErrTooManyPending,
		"wait until some of them have run, or see what holds them up: lockstep runs NAME"},

	{ExitMissing, election.ErrNoLeader, "see which there are: lockstep elections"},

	{ExitDeadlock, locks.ErrDeadlock,
		"the others go on when the locks that are held around this command are released; acquire locks in the same " +
			"order everywhere, or all at once: lockstep lock A B"},

	// The errors that all packages have.
	{ExitMismatch, framework.ErrForeign, "use another NAME: this one belongs to something else"},
	{ExitMismatch, framework.ErrMismatch, ""},
	{ExitMismatch, framework.ErrNewer, newerHint},
	{ExitMismatch, framework.ErrBadRecord, ""},
	{ExitMismatch, framework.ErrTooLarge, ""},
	{ExitMissing, framework.ErrNotFound, ""},
	{ExitConflict, framework.ErrConflict, ""},
	{ExitUsage, framework.ErrInvalid, ""},
	{ExitNoPermission, framework.ErrNoAuth,
		"give credentials in LOCKSTEP_AUTH_FILE (user:password), or use another NAME"},
	{ExitLost, framework.ErrOutcomeUnknown,
		"the answer was lost: check whether it was done before you repeat the command"},
	{ExitLost, framework.ErrSessionLost,
		"others may count this process as dead; run the command again if it is safe to repeat"},
}

// hintsOfCommands are what to do next after an error of one command, by the first word of its name.
// They win over those of exitCodes.
var hintsOfCommands = []struct {
	command string
	reason  error
	hint    string
}{
	{"queue", framework.ErrMismatch, "leave the flag out to use the queue as it is, or see \"lockstep queue set\""},
	{"queue", framework.ErrOutcomeUnknown, "look whether the item is there before you repeat the command"},
	{"barrier", framework.ErrMismatch, "all who use a NAME must give the same -n"},
	{"latch", framework.ErrMismatch, "all who use a NAME must give the same -n"},
	{"config", framework.ErrConflict, "see what it is now: lockstep config get NAME --json"},
	{"lock", framework.ErrForeign, "use another NAME: this one belongs to something else; kazoo's locks take part " +
		"with --kazoo, see lockstep lock -h"},
	{"release", framework.ErrNotFound, "see who holds it now: lockstep locks NAME"},
	{"id", framework.ErrMismatch, "give --slots as the error shows it stored"},
	{"members", framework.ErrNotFound,
		"see who is there: lockstep members NAME; --absent also cordons an ID that has no member yet"},
	{"disable", framework.ErrNotFound, "see which there are: lockstep services NAME"},
	{"enable", framework.ErrNotFound, "see which there are: lockstep services NAME"},
	{"workflows", framework.ErrNotFound, "see which there are: lockstep workflows /"},
	{"workflows", framework.ErrForeign,
		"give the path of workflows before the ID: this one belongs to something else"},
	{"jobs", framework.ErrNotFound, "see which there are: lockstep jobs /"},
	{"runs", framework.ErrNotFound, "see which there are: lockstep jobs /"},
	{"monitor", framework.ErrForeign, "use another --path: this one belongs to something else"},
}

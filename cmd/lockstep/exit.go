package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/procguard"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/scheduler"
)

// The exit codes beside the command's own. Those from 64 on are sysexits.h's, from 126 on the shells'.
const (
	exitNotObtained   = 1   // lock: not obtained under -n or -w; -E changes it
	exitDeadlock      = 35  // lock: it would wait for a lock whose holder waits for one that is held around it
	exitUsage         = 64  // a bad flag, name, schedule or duration
	exitMismatch      = 65  // the name is taken by another kind of thing, or by what this release cannot read
	exitNoSession     = 69  // no session within --connect-timeout
	exitInternal      = 70  // anything that is not listed here
	exitLost          = 75  // lock: the lock was lost while it was needed
	exitNoPermission  = 77  // the servers refuse access to the name
	exitNotExecutable = 126 // the command cannot be run
	exitNotFound      = 127 // there is no such command
	exitSignal        = 128 // and the number of the signal that ended the command, or the wait
)

// exitError is an error with the code that the program ends with. Without a reason nothing is printed.
type exitError struct {
	code   int
	reason error
	hint   string // what to do next
}

func (e *exitError) Error() string {
	if e.reason == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.reason.Error()
}

func (e *exitError) Unwrap() error { return e.reason }

// exitSilently ends the program with a code: the command has said what there is to say.
func exitSilently(code int) error {
	if code == 0 {
		return nil
	}
	return &exitError{code: code}
}

// exitCodeOfPrinted ends the program with the code of an error that was printed already.
func exitCodeOfPrinted(err error) error {
	var coded *exitError
	if !errors.As(withCode(err), &coded) {
		return err
	}
	return exitSilently(coded.code)
}

// usageError refuses what was asked for.
func usageError(format string, args ...any) error {
	return &exitError{code: exitUsage, reason: fmt.Errorf(format, args...)}
}

// meanings are the errors of the packages below and what they mean here.
var meanings = []struct {
	err  error
	code int
	hint string
}{
	{framework.ErrInvalidConfig, exitUsage, ""},
	{framework.ErrInvalidPath, exitUsage, ""},
	{scheduler.ErrInvalidJob, exitUsage, ""},
	{scheduler.ErrInvalidSpec, exitUsage, ""},
	{scheduler.ErrUnknownJob, exitUsage, "see which there are: lockstep jobs"},
	{scheduler.ErrTooManyPending, exitUsage, "wait until some of them have run, or see what holds them up: lockstep runs NAME"},
	{scheduler.ErrNewerState, exitMismatch, "use a newer lockstep"},
	{scheduler.ErrBadState, exitMismatch, ""},
	{election.ErrBadRecord, exitMismatch, ""},
	{election.ErrNewerRecord, exitMismatch, "use a newer lockstep"},
	{locks.ErrKindMixed, exitMismatch, "use another NAME: this one belongs to something else; kazoo's locks take part with --kazoo, see lockstep lock -h"},
	{locks.ErrPermits, exitUsage, ""},
	{framework.ErrTooLarge, exitMismatch, ""},
	{framework.ErrNoAuth, exitNoPermission, "give credentials in LOCKSTEP_AUTH_FILE (user:password), or use another NAME"},
	{locks.ErrDeadlock, exitDeadlock, "the others go on once what is held around this command is released; take locks in one order everywhere, or all at once: lockstep lock A B"},
	{locks.ErrHolderGone, exitNotObtained, "see who holds it now: lockstep locks NAME"},
	{procguard.ErrNotFound, exitNotFound, ""},
	{procguard.ErrNotExecutable, exitNotExecutable, ""},
	{procguard.ErrHoldLost, exitLost, "others may hold it by now; run the command again if it is safe to repeat"},
}

// withCode finds the exit code of an error.
func withCode(err error) error {
	var known *exitError
	if err == nil || errors.As(err, &known) {
		return err
	}
	var s signalError
	if errors.As(err, &s) {
		return &exitError{code: exitSignal + s.signalNumber()}
	}
	var differs *locks.PermitsError
	if errors.As(err, &differs) {
		return &exitError{exitMismatch, err, "all who use a NAME must give the same --permits"}
	}
	for _, m := range meanings {
		if errors.Is(err, m.err) {
			return &exitError{m.code, err, m.hint}
		}
	}
	return &exitError{code: exitInternal, reason: err}
}

// endedBySignal reports whether ctx has ended by a signal.
func endedBySignal(ctx context.Context) bool {
	var s signalError
	return errors.As(context.Cause(ctx), &s)
}

// withExitCodes makes a function cobra's: its errors get their exit codes, and all others are of usage.
func withExitCodes(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error { return withCode(f(cmd, args)) }
}

// endQuietlyOnSignal makes a signal a way to end well: nothing ran that could have been cut short.
func endQuietlyOnSignal(ctx context.Context, err error) error {
	var said *exitError
	if err != nil && !errors.As(err, &said) && endedBySignal(ctx) {
		return nil
	}
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/procguard"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/scheduler"
)

// The exit codes beside the command's own. Those from 64 on are sysexits.h's, from 126 on the
// shells'.
const (
	exitNotObtained = 1  // lock: not obtained under -n or -w; -E changes it
	exitDeadlock    = 35 // lock: the holder of the lock waits for a lock that is held around this command
	exitUsage       = 64 // a bad flag, name, schedule or duration
	exitMismatch    = 65 // the name is used in another way, or its data is too large, damaged or of a newer release
	exitNoSession   = 69 // no session within --connect-timeout
	exitInternal    = 70 // anything that is not listed here
	// the lock, the item, the round or the gate was lost while the command needed it, or the
	// outcome of a write is unknown
	exitLost          = 75
	exitNoPermission  = 77  // the servers refuse access to the name
	exitNotExecutable = 126 // the command cannot be run
	exitNotFound      = 127 // there is no such command
	exitSignal        = 128 // and the number of the signal that ended the command, or the wait
)

// exitError is an error with the code that the program ends with. Without a reason nothing is
// printed.
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

// exitSilently makes the program end with a code and without a message: the command has printed its
// own.
func exitSilently(code int) error {
	if code == 0 {
		return nil
	}
	return &exitError{code: code}
}

// exitCodeOfPrinted makes the program end with the code of an error that was printed already.
func exitCodeOfPrinted(streams *Streams, err error) error {
	var coded *exitError
	if !errors.As(withCode(err), &coded) {
		return err
	}
	if coded.code == exitNoPermission && coded.hint != "" {
		streams.printNotice("%s", coded.hint)
	}
	return exitSilently(coded.code)
}

// usageError is the error of a bad flag or argument.
func usageError(format string, args ...any) error {
	return &exitError{code: exitUsage, reason: fmt.Errorf(format, args...)}
}

// exitWith makes the program end with a code, and print the reason and what to do next.
func exitWith(code int, reason error, hint string) *exitError { return &exitError{code, reason, hint} }

// findCode returns err with the code and the hint of the first one in a table whose reason err wraps.
// It returns err itself if it wraps none of them or has its exit code.
func findCode(err error, table ...*exitError) error {
	var coded *exitError
	if errors.As(err, &coded) {
		return err
	}
	for _, c := range table {
		if errors.Is(err, c.reason) {
			return exitWith(c.code, err, c.hint)
		}
	}
	return err
}

// generalCodes are the codes of errors that many commands can return.
var generalCodes = []exitError{
	{exitUsage, framework.ErrInvalidConfig, ""},
	{exitUsage, framework.ErrInvalidPath, ""},
	{exitUsage, scheduler.ErrInvalidJob, ""},
	{exitUsage, scheduler.ErrInvalidSpec, ""},
	{exitUsage, scheduler.ErrUnknownJob, "see which there are: lockstep jobs"},
	{exitUsage, scheduler.ErrTooManyPending,
		"wait until some of them have run, or see what holds them up: lockstep runs NAME"},
	{exitMismatch, scheduler.ErrNewerState, "use a newer lockstep"},
	{exitMismatch, scheduler.ErrBadState, ""},
	{exitMismatch, election.ErrBadRecord, ""},
	{exitMismatch, election.ErrNewerRecord, "use a newer lockstep"},
	{exitMismatch, locks.ErrKindMixed,
		"use another NAME: this one belongs to something else; kazoo's locks take part with --kazoo, see " +
			"lockstep lock -h"},
	{exitUsage, locks.ErrPermits, ""},
	{exitMismatch, framework.ErrTooLarge, ""},
	{exitNoPermission, framework.ErrNoAuth,
		"give credentials in LOCKSTEP_AUTH_FILE (user:password), or use another NAME"},
	{exitDeadlock, locks.ErrDeadlock,
		"the others go on when the locks that are held around this command are released; acquire locks in the same " +
			"order everywhere, or all at once: lockstep lock A B"},
	{exitLost, framework.ErrOutcomeUnknown,
		"the answer was lost: check whether it was done before you repeat the command"},
	{exitNotObtained, locks.ErrHolderGone, "see who holds it now: lockstep locks NAME"},
	{exitNotFound, procguard.ErrNotFound, ""},
	{exitNotExecutable, procguard.ErrNotExecutable, ""},
	{exitLost, procguard.ErrHoldLost, "others may hold it by now; run the command again if it is safe to repeat"},
}

// withCode returns an error with its exit code.
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
		return exitWith(exitMismatch, err, "all who use a NAME must give the same --permits")
	}
	for _, m := range generalCodes {
		if errors.Is(err, m.reason) {
			hint := m.hint
			if m.code == exitNoPermission {
				hint = presentedByEnvironment() + hint
			}
			return exitWith(m.code, err, hint)
		}
	}
	return &exitError{code: exitInternal, reason: err}
}

// nothingFoundError says that there is nothing of a kind at and below a NAME: the NAME may be
// mistyped.
func nothingFoundError(ctx context.Context, streams *Streams, client *framework.Client, what, path, list string) error {
	reason := fmt.Errorf("no %s at or below %s", what, path)
	if _, err := client.Exists(ctx, path); errors.Is(err, framework.ErrNoNode) {
		reason = fmt.Errorf("%w: there is no such node", reason)
	} else if err != nil {
		return err
	}
	return exitWith(exitNotObtained, reason, adviceFor(ctx, streams, client, path, list))
}

// adviceFor says what to do about a NAME below which nothing is: a program may have given the same
// name as a path.
func adviceFor(ctx context.Context, streams *Streams, client *framework.Client, path, list string) string {
	if _, name, within := cutKind(path); within {
		if _, err := client.Exists(ctx, "/"+name); err == nil {
			return fmt.Sprintf("a NAME that does not begin with / is below /lockstep; there is also a node %s: %s %s",
				quoteName("/"+name), list, shellWord("/"+name))
		} else if !errors.Is(err, framework.ErrNoNode) {
			streams.printWarning("%v", err)
		}
	}
	return "see which there are: " + list
}

// cutKind divides the path of a NAME, such as /lockstep/locks/deploy.
func cutKind(path string) (kind, name string, within bool) {
	rest, within := strings.CutPrefix(path, "/lockstep/")
	kind, name, named := strings.Cut(rest, "/")
	return kind, name, within && named
}

// requireNode returns an error if there is no node at a path that the user named: the path may be
// mistyped.
func requireNode(ctx context.Context, client *framework.Client, path, consequence, hint string) error {
	_, err := client.Exists(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return exitWith(exitNotObtained, fmt.Errorf("there is no node %s: %s", path, consequence), hint)
	}
	return err
}

// endedBySignal reports whether a signal has ended ctx.
func endedBySignal(ctx context.Context) bool {
	var s signalError
	return errors.As(context.Cause(ctx), &s)
}

// withExitCodes makes a function a RunE of cobra. Its errors get their exit codes; an error of
// cobra has none, and counts as one of usage.
func withExitCodes(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error { return withCode(f(cmd, args)) }
}

// endBySignal returns the error of the signal instead of err if a signal has ended ctx: the command
// was cut short. An error that has its exit code stays.
func endBySignal(ctx context.Context, err error) error {
	var coded *exitError
	if err != nil && !errors.As(err, &coded) && endedBySignal(ctx) {
		return context.Cause(ctx)
	}
	return err
}

// endQuietlyOnSignal returns no error if a signal has ended ctx. It is for commands that run until
// a signal. An error that has its exit code stays.
func endQuietlyOnSignal(ctx context.Context, err error) error {
	var coded *exitError
	if err != nil && !errors.As(err, &coded) && endedBySignal(ctx) {
		return nil
	}
	return err
}

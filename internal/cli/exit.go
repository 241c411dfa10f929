package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// ExitSilently makes the program end with a code and without a message: the command has printed its
// own.
func ExitSilently(code int) error {
	if code == 0 {
		return nil
	}
	return &ExitError{Code: code}
}

// ExitCodeOfPrinted makes the program end with the code of an error that was printed already.
func ExitCodeOfPrinted(streams *Streams, err error) error {
	var coded *ExitError
	if !errors.As(WithCode(err), &coded) {
		return err
	}
	if coded.Code == ExitNoPermission && coded.Hint != "" {
		streams.PrintNotice("%s", coded.Hint)
	}
	return ExitSilently(coded.Code)
}

// UsageError is the error of a bad flag or argument.
func UsageError(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Reason: fmt.Errorf(format, args...)}
}

// ExitWith makes the program end with a code, and print the reason and what to do next.
func ExitWith(code int, reason error, hint string) *ExitError { return &ExitError{code, reason, hint} }

// WithHint returns err with its exit code and another hint than usual if it wraps reason, or else
// err itself.
func WithHint(err, reason error, hint string) error {
	var coded *ExitError
	if !errors.Is(err, reason) || !errors.As(WithCode(err), &coded) {
		return err
	}
	return ExitWith(coded.Code, err, hint)
}

// WithCode returns an error with its exit code.
func WithCode(err error) error {
	var known *ExitError
	if err == nil || errors.As(err, &known) {
		return err
	}
	var s SignalError
	if errors.As(err, &s) {
		return &ExitError{Code: ExitSignal + s.signalNumber()}
	}
	var differs *locks.MismatchError
	if errors.As(err, &differs) {
		return ExitWith(ExitMismatch, err, "all who use a NAME must give the same --permits")
	}
	for _, m := range exitCodes {
		if errors.Is(err, m.Reason) {
			hint := m.Hint
			if m.Code == ExitNoPermission {
				hint = presentedByEnvironment() + hint
			}
			return ExitWith(m.Code, err, hint)
		}
	}
	return &ExitError{Code: ExitInternal, Reason: err}
}

// NothingFoundError says that there is nothing of a kind at and below a NAME: the NAME may be
// mistyped.
func NothingFoundError(ctx context.Context, streams *Streams, client *framework.Client, what, path, list string) error {
	reason := fmt.Errorf("no %s at or below %s", what, path)
	if _, err := client.Exists(ctx, path); errors.Is(err, framework.ErrNoNode) {
		reason = fmt.Errorf("%w: there is no such node", reason)
	} else if err != nil {
		return err
	}
	return ExitWith(ExitMissing, reason, AdviceFor(ctx, streams, client, path, list))
}

// AdviceFor says what to do about a NAME below which nothing is: a program may have given the same
// name as a path.
func AdviceFor(ctx context.Context, streams *Streams, client *framework.Client, path, list string) string {
	if _, name, within := cutKind(path); within {
		if _, err := client.Exists(ctx, "/"+name); err == nil {
			return fmt.Sprintf("a NAME that does not begin with / is below /lockstep; there is also a node %s: %s %s",
				QuoteName("/"+name), list, ShellWord("/"+name))
		} else if !errors.Is(err, framework.ErrNoNode) {
			streams.PrintWarning("%v", err)
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

// RequireNode returns an error if there is no node at a path that the user named: the path may be
// mistyped.
func RequireNode(ctx context.Context, client *framework.Client, path, consequence, hint string) error {
	_, err := client.Exists(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return ExitWith(ExitMissing, fmt.Errorf("there is no node %s: %s", path, consequence), hint)
	}
	return err
}

// EndedBySignal reports whether a signal has ended ctx.
func EndedBySignal(ctx context.Context) bool {
	var s SignalError
	return errors.As(context.Cause(ctx), &s)
}

// withHintOf returns err with its exit code and the hint of a command, if there is one.
func withHintOf(command string, err error) error {
	for _, h := range hintsOfCommands {
		var known *ExitError
		if h.command == command && errors.Is(err, h.reason) && !errors.As(err, &known) {
			return WithHint(err, h.reason, h.hint)
		}
	}
	return WithCode(err)
}

// WithExitCodes makes a function a RunE of cobra. Its errors get their exit codes; an error of
// cobra has none, and counts as one of usage.
func WithExitCodes(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		name := strings.Fields(cmd.CommandPath())
		return withHintOf(name[min(1, len(name)-1)], f(cmd, args))
	}
}

// EndBySignal returns the error of the signal instead of err if a signal has ended ctx: the command
// was cut short. An error that has its exit code stays.
func EndBySignal(ctx context.Context, err error) error {
	var coded *ExitError
	if err != nil && !errors.As(err, &coded) && EndedBySignal(ctx) {
		return context.Cause(ctx)
	}
	return err
}

// EndQuietlyOnSignal returns no error if a signal has ended ctx. It is for commands that run until
// a signal. An error that has its exit code stays.
func EndQuietlyOnSignal(ctx context.Context, err error) error {
	var coded *ExitError
	if err != nil && !errors.As(err, &coded) && EndedBySignal(ctx) {
		return nil
	}
	return err
}

// IgnoreMissing returns an error unless it says that a node is missing.
func IgnoreMissing(err error) error {
	if errors.Is(err, framework.ErrNoNode) {
		return nil
	}
	return err
}

package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/framework"
)

// parseDuration parses a duration such as 1m30s, or a bare number of seconds.
func parseDuration(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if !(math.Abs(seconds) < float64(math.MaxInt64)/1e9) { // NaN too
			return 0, errors.New("it is too large")
		}
		return time.Duration(seconds * 1e9), nil
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("want a duration such as 90s or 1m30s, or a number of seconds")
	}
	return parsed, nil
}

// DurationFlag is the value of a flag for parseDuration. It is positive; 0 means not given.
type DurationFlag time.Duration

func (d *DurationFlag) Set(text string) error {
	parsed, err := parseDuration(text)
	if err == nil && parsed <= 0 {
		err = errors.New("it must be positive")
	}
	if err != nil {
		return err
	}
	*d = DurationFlag(parsed)
	return nil
}

func (d *DurationFlag) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (*DurationFlag) Type() string { return "duration" }

// AgeFlag is the value of a flag for parseDuration. It is 0 or more.
type AgeFlag time.Duration

func (a *AgeFlag) Set(text string) error {
	parsed, err := parseDuration(text)
	if err == nil && parsed < 0 {
		err = errors.New("it must not be negative")
	}
	if err != nil {
		return err
	}
	*a = AgeFlag(parsed)
	return nil
}

func (a *AgeFlag) String() string { return time.Duration(*a).String() }

func (*AgeFlag) Type() string { return "duration" }

// CheckNameAnd returns a check of the arguments: a NAME, those that more names, and a command after
// "--". The command may be missing if it is optional.
func CheckNameAnd(optional bool, more ...string) cobra.PositionalArgs {
	want := strings.Join(append([]string{"NAME"}, more...), " and ")
	return func(cmd *cobra.Command, args []string) error {
		own, command := SplitAtDash(cmd, args)
		dash := cmd.ArgsLenAtDash() >= 0
		switch {
		case len(own) > 1+len(more) && !dash:
			return fmt.Errorf("want %s, got %d arguments: %q; put -- before the command", want, len(own), own)
		case len(own) != 1+len(more):
			return fmt.Errorf("want %s, got %d arguments: %q", want, len(own), own)
		case dash && len(command) == 0:
			return errors.New("no command after --")
		case !dash && !optional:
			return errors.New("no command: put it after --")
		case len(command) > 0 && command[0] == "":
			return errors.New("the command is empty")
		}
		return nil
	}
}

// CheckNames checks a command line of one or more NAMEs. Several need "--": without it the words of
// a command would be taken for NAMEs.
func CheckNames(cmd *cobra.Command, args []string) error {
	own, command := SplitAtDash(cmd, args)
	dash := cmd.ArgsLenAtDash() >= 0
	switch {
	case len(own) == 0:
		return errors.New("want a NAME")
	case len(own) > 1 && !dash:
		return fmt.Errorf("want one NAME, got %d arguments: %q; put -- before the command", len(own), own)
	case dash && len(command) == 0:
		return errors.New("no command after --")
	case len(command) > 0 && command[0] == "":
		return errors.New("the command is empty")
	}
	return nil
}

// SplitAtDash divides arguments into those before "--" and those after.
func SplitAtDash(cmd *cobra.Command, args []string) (own, command []string) {
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		return args[:n], args[n:]
	}
	return args, nil
}

// LocksDir is the directory of locks.
const LocksDir = "/lockstep/locks"

// PathOf returns the path of a NAME.
func PathOf(kind, name string) (string, error) {
	path := name
	if !strings.HasPrefix(name, "/") {
		path = "/lockstep/" + kind + "/" + name
	}
	if name == "/" {
		return "", UsageError("the NAME %q is the root: give a path below it", name)
	}
	if err := framework.ValidatePath(path); err != nil {
		return "", UsageError("the NAME %q cannot be used: %w", name, err)
	}
	return path, nil
}

// RootOf returns the path at and below which a subcommand looks: that of its argument, a NAME or
// "/", or the directory of the kind without an argument.
func RootOf(kind string, args []string) (string, error) {
	switch {
	case len(args) == 0:
		return "/lockstep/" + kind, nil
	case args[0] == "/":
		return "/", nil
	}
	return PathOf(kind, args[0])
}

// RootArgument returns the path of an optional argument, which need not be below /lockstep, or the
// default without one.
func RootArgument(args []string, name, defaultPath string) (string, error) {
	if len(args) == 0 {
		return defaultPath, nil
	}
	if err := framework.ValidatePath(args[0]); err != nil && args[0] != "/" {
		return "", UsageError("the %s %q cannot be used: %w", name, args[0], err)
	}
	return args[0], nil
}

// CheckNameAlone checks a command line of a NAME alone.
func CheckNameAlone(cmd *cobra.Command, args []string) error {
	if _, command := SplitAtDash(cmd, args); len(command) > 0 || cmd.ArgsLenAtDash() >= 0 {
		return errors.New("this subcommand runs no command")
	}
	return CheckNameAnd(true)(cmd, args)
}

func (d DurationFlag) AsDuration() time.Duration { return time.Duration(d) }

// BarriersDir, GatesDir and LatchesDir are the directories of barriers, gates and latches.
const (
	BarriersDir = "/lockstep/barriers"
	GatesDir    = "/lockstep/gates"
	LatchesDir  = "/lockstep/latches"
)

// ElectionsDir is the directory of elections.
const ElectionsDir = "/lockstep/elections"

// JobsDir is where "lockstep cron" keeps its schedulers, each with one job of the same name.
const JobsDir = "/lockstep/jobs"

// GroupsDir is the directory of groups.
const GroupsDir = "/lockstep/groups"

// QueuesDir is the directory of queues.
const QueuesDir = "/lockstep/queues"

// ServicesDir is the directory of services.
const ServicesDir = "/lockstep/services"

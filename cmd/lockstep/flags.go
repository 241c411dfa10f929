package main

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

// durationFlag is a flag's value: 1m30s, or a bare number of seconds. It is positive; 0 means not given.
type durationFlag time.Duration

func (d *durationFlag) Set(text string) error {
	parsed, err := time.ParseDuration(text)
	if seconds, e := strconv.ParseFloat(text, 64); e == nil {
		if !(math.Abs(seconds) < float64(math.MaxInt64)/1e9) { // NaN too
			return errors.New("it is too large")
		}
		parsed, err = time.Duration(seconds*1e9), nil
	}
	switch {
	case err != nil:
		return errors.New("want a duration such as 90s or 1m30s, or a number of seconds")
	case parsed <= 0:
		return errors.New("it must be positive")
	}
	*d = durationFlag(parsed)
	return nil
}

func (d *durationFlag) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (*durationFlag) Type() string { return "duration" }

// checkNameAnd returns the check of a command line that has a NAME, more arguments so called, and a command
// after "--", which may be missing if it is optional.
func checkNameAnd(optional bool, more ...string) cobra.PositionalArgs {
	want := strings.Join(append([]string{"NAME"}, more...), " and ")
	return func(cmd *cobra.Command, args []string) error {
		own, command := splitAtDash(cmd, args)
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

// checkNames checks a command line of one or more NAMEs. Several need "--": who forgets it before the command
// would lock what the command is called.
func checkNames(cmd *cobra.Command, args []string) error {
	own, command := splitAtDash(cmd, args)
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

// splitAtDash divides arguments into those before "--" and those after.
func splitAtDash(cmd *cobra.Command, args []string) (own, command []string) {
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		return args[:n], args[n:]
	}
	return args, nil
}

// locksDir is where locks live.
const locksDir = "/lockstep/locks"

// pathOf is where a NAME lives.
func pathOf(kind, name string) (string, error) {
	path := name
	if !strings.HasPrefix(name, "/") {
		path = "/lockstep/" + kind + "/" + name
	}
	if name == "/" {
		return "", usageError("the NAME %q is the root: give a path below it", name)
	}
	if err := framework.ValidatePath(path); err != nil {
		return "", usageError("the NAME %q cannot be used: %w", name, err)
	}
	return path, nil
}

// checkNameAlone checks a command line of a NAME alone.
func checkNameAlone(cmd *cobra.Command, args []string) error {
	if _, command := splitAtDash(cmd, args); len(command) > 0 || cmd.ArgsLenAtDash() >= 0 {
		return errors.New("it takes no command")
	}
	return checkNameAnd(true)(cmd, args)
}

func (d durationFlag) asDuration() time.Duration { return time.Duration(d) }

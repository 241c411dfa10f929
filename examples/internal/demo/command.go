package demo

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// ErrUsage is wrapped by the errors of a wrong command line.
var ErrUsage = errors.New("bad usage")

// The exit statuses of the examples.
const (
	ExitBroken = 1  // a promise was broken, or the example could not run
	ExitUsage  = 64 // as in sysexits.h
)

// ExitStatus prints the error of an example, and returns the exit status.
func ExitStatus(example string, err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, ErrUsage):
		fmt.Fprintf(os.Stderr, "%s: %v\n%s: see --help\n", example, err, example)
		return ExitUsage
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", example, err)
	return ExitBroken
}

// ParseFlags adds the flag -zk to an example's flags, parses the command line, and returns the
// servers of -zk. On request it prints the purpose of the example and its flags, and returns
// flag.ErrHelp. Other errors wrap ErrUsage.
func ParseFlags(f *flag.FlagSet, purpose string, args []string) (servers []string, err error) {
	zk := f.String("zk", "", "real servers, host:port,host:port (default: one in memory)")
	f.Usage = func() {}
	f.SetOutput(io.Discard) // the error is printed once
	err = f.Parse(args)
	if err == nil {
		servers, _, err = framework.ParseServers(*zk)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(os.Stdout, "usage: %s [flags]\n\n%s\n\nflags:\n", f.Name(), purpose)
		f.SetOutput(os.Stdout)
		f.PrintDefaults()
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	case f.NArg() > 0:
		return nil, fmt.Errorf("%w: unexpected arguments %q", ErrUsage, f.Args())
	case *zk != "" && len(servers) == 0:
		return nil, fmt.Errorf("%w: -zk %q names no server", ErrUsage, *zk)
	}
	return servers, nil
}

// SessionFlags adds the flags -session-timeout and -no-watchdog to an example's flags. The usage
// calls the example's processes by these nouns, such as "leader" and "members". The default timeout
// with a watchdog is watched. After ParseFlags, call the function that SessionFlags returns.
func SessionFlags(f *flag.FlagSet, one, all string,
	watched time.Duration) (values func() (timeout time.Duration, watchdog bool)) {
	const unwatched = 2 * time.Second
	var timeout time.Duration // 0: not given
	f.Func("session-timeout",
		fmt.Sprintf("without a watchdog, a dead %s is noticed after about this `time` (default %v, or %v without "+
			"a watchdog)", one, watched, unwatched),
		func(text string) (err error) {
			if timeout, err = time.ParseDuration(text); err == nil && timeout < 500*time.Millisecond {
				err = errors.New("want 500ms or more")
			}
			return err
		})
	noWatchdog := f.Bool("no-watchdog", runtime.GOOS == "windows", "run the "+all+" without a watchdog")
	return func() (time.Duration, bool) {
		switch {
		case timeout != 0:
			return timeout, !*noWatchdog
		case *noWatchdog:
			return unwatched, false
		}
		return watched, true
	}
}

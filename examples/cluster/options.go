package main

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

var errUsage = errors.New("bad usage")

type options struct {
	servers  []string
	members  int
	duration time.Duration
	timeout  time.Duration
	watchdog bool
	json     bool
}

// parse reads the command line. Its error wraps flag.ErrHelp or errUsage.
func parse(args []string) (options, error) {
	var o options
	var given bool // -timeout was given
	f := flag.NewFlagSet("cluster", flag.ContinueOnError)
	f.Usage = func() {}
	servers := f.String("zk", "", "real servers, host:port,host:port (default: one in memory)")
	f.IntVar(&o.members, "members", 3, "number of member processes, 2 to 50")
	f.DurationVar(&o.duration, "duration", 20*time.Second, "how long to play")
	f.DurationVar(&o.timeout, "session-timeout", 0, "without a watchdog, a dead leader is noticed after about this time (default 30s, or 2s without a watchdog)")
	without := f.Bool("no-watchdog", runtime.GOOS == "windows", "members have no watchdog")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON on standard output, and the log on standard error")
	f.SetOutput(io.Discard) // the error is printed once
	err := f.Parse(args)
	o.watchdog = !*without
	f.Visit(func(f *flag.Flag) { given = given || f.Name == "session-timeout" })
	if !given {
		o.timeout = defaultTimeout(o.watchdog)
	}
	if err == nil {
		o.servers, _, err = framework.ParseServers(*servers)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(os.Stdout, "usage: cluster [flags]\n\nShows how the members of a cluster take over from a leader that is killed.\n\nflags:")
		f.SetOutput(os.Stdout)
		f.PrintDefaults()
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w: %w", errUsage, err)
	case f.NArg() > 0:
		return o, fmt.Errorf("%w: there is nothing to do with %q", errUsage, f.Args())
	case *servers != "" && len(o.servers) == 0:
		return o, fmt.Errorf("%w: -zk %q names no server", errUsage, *servers)
	case o.members < 2 || o.members > 50:
		return o, fmt.Errorf("%w: -members %d: want 2 to 50, one of them is killed", errUsage, o.members)
	case o.timeout < 500*time.Millisecond:
		return o, fmt.Errorf("%w: -session-timeout %v: want 500ms or more", errUsage, o.timeout)
	}
	return o, o.fits(o.timeout)
}

func defaultTimeout(watchdog bool) time.Duration {
	if watchdog {
		return 30 * time.Second
	}
	return 2 * time.Second
}

// log returns the writer of the live log.
func (o options) log() *os.File {
	if o.json {
		return os.Stderr
	}
	return os.Stdout
}

// fits checks that two thirds of the time suffice for a takeover, which takes up to two session timeouts without a watchdog, and for a
// tick or two.
func (o options) fits(timeout time.Duration) error {
	if o.watchdog {
		timeout = time.Second
	}
	if least := (2*timeout + time.Second) * 3 / 2; o.duration < least {
		return fmt.Errorf("%w: -duration %v is too short to notice a death within %v: want %v or more", errUsage, o.duration, 2*timeout, least)
	}
	return nil
}

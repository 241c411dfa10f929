package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
)

type options struct {
	servers  []string
	members  int
	duration time.Duration
	timeout  time.Duration
	watchdog bool
	json     bool
}

// parse reads the command line. Its error wraps flag.ErrHelp or demo.ErrUsage.
func parse(args []string) (options, error) {
	var o options
	var given bool // -timeout was given
	f := flag.NewFlagSet("cluster", flag.ContinueOnError)
	f.IntVar(&o.members, "members", 3, "number of member processes, 2 to 50")
	f.DurationVar(&o.duration, "duration", 20*time.Second, "how long to play")
	f.DurationVar(&o.timeout, "session-timeout", 0, "without a watchdog, a dead leader is noticed after about this time (default 30s, or 2s without a watchdog)")
	without := f.Bool("no-watchdog", runtime.GOOS == "windows", "members have no watchdog")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON on standard output, and the log on standard error")
	var err error
	if o.servers, err = demo.ParseFlags(f, "Shows how the members of a cluster take over from a leader that is killed.", args); err != nil {
		return o, err
	}
	o.watchdog = !*without
	f.Visit(func(f *flag.Flag) { given = given || f.Name == "session-timeout" })
	if !given {
		o.timeout = demo.DefaultTimeout(o.watchdog)
	}
	switch {
	case o.members < 2 || o.members > 50:
		return o, fmt.Errorf("%w: -members %d: want 2 to 50, one of them is killed", demo.ErrUsage, o.members)
	case o.timeout < 500*time.Millisecond:
		return o, fmt.Errorf("%w: -session-timeout %v: want 500ms or more", demo.ErrUsage, o.timeout)
	}
	return o, o.fits(o.timeout)
}

// log returns the writer of the live log.
func (o options) log() *os.File { return demo.LogFile(o.json) }

// fits checks that two thirds of the time suffice for a takeover, which takes up to two session timeouts without a watchdog, and for a
// tick or two.
func (o options) fits(timeout time.Duration) error {
	if o.watchdog {
		timeout = time.Second
	}
	if least := (2*timeout + time.Second) * 3 / 2; o.duration < least {
		return fmt.Errorf("%w: -duration %v is too short to notice a death within %v: want %v or more", demo.ErrUsage, o.duration, 2*timeout, least)
	}
	return nil
}

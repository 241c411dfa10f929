package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
)

type options struct {
	job
	servers  []string
	kills    int           // in each round
	spared   int           // the workers that are not killed, from the first
	lasts    time.Duration // rounds begin until it is over; 0: one round
	events   string        // a file, or ""
	timeout  time.Duration
	watchdog bool
	json     bool
}

// parse reads the command line. Its error wraps flag.ErrHelp or demo.ErrUsage.
func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	f.IntVar(&o.Workers, "workers", 4, "number of worker processes, 2 to 50")
	f.IntVar(&o.Items, "items", 120, "items of each phase, 8 to 1000")
	f.DurationVar(&o.Effort, "effort", 25*time.Millisecond, "how long one item takes, 1ms to 1m")
	f.IntVar(&o.kills, "kills", 6, "how many workers to kill in each round, at most a quarter of the items")
	f.IntVar(&o.spared, "spare", 0, "the first so many workers are not killed; at least one may be")
	f.DurationVar(&o.lasts, "for", 0, "begin round after round until this time is over (default one round)")
	f.IntVar(&o.Rounds, "rounds", 1, "run at least so many rounds")
	f.StringVar(&o.events, "events", "", "append what the workers tell to this file, a line of JSON each")
	f.DurationVar(&o.timeout, "session-timeout", 0, "without a watchdog, a dead worker is noticed after about this time (default 30s, or 2s without a watchdog)")
	without := f.Bool("no-watchdog", runtime.GOOS == "windows", "workers have no watchdog")
	f.BoolVar(&o.json, "json", false, "print the report as JSON on standard output, and the log on standard error")
	var err error
	if o.servers, err = demo.ParseFlags(f, "Shows workers that are killed at random, and work that comes out right all the same.", args); err != nil {
		return o, err
	}
	o.watchdog = !*without
	given := false // the session timeout
	f.Visit(func(f *flag.Flag) { given = given || f.Name == "session-timeout" })
	if !given {
		o.timeout = demo.DefaultTimeout(o.watchdog)
	}
	return o, o.validate()
}

func (o options) validate() error {
	switch {
	case o.Workers < 2 || o.Workers > 50:
		return fmt.Errorf("%w: -workers %d: want 2 to 50", demo.ErrUsage, o.Workers)
	case o.Items < 8 || o.Items > 1000:
		return fmt.Errorf("%w: -items %d: want 8 to 1000", demo.ErrUsage, o.Items)
	case o.Effort < time.Millisecond || o.Effort > time.Minute:
		return fmt.Errorf("%w: -effort %v: want 1ms to 1m", demo.ErrUsage, o.Effort)
	case o.kills < 0 || o.kills > o.Items/4:
		return fmt.Errorf("%w: -kills %d: want 0 to %d, a quarter of the items", demo.ErrUsage, o.kills, o.Items/4)
	case o.spared < 0 || o.spared >= o.Workers:
		return fmt.Errorf("%w: -spare %d: want less than the %d workers", demo.ErrUsage, o.spared, o.Workers)
	case o.lasts < 0:
		return fmt.Errorf("%w: -for %v: want no negative time", demo.ErrUsage, o.lasts)
	case o.Rounds < 1 || o.Rounds > 1000:
		return fmt.Errorf("%w: -rounds %d: want 1 to 1000", demo.ErrUsage, o.Rounds)
	case o.timeout < 500*time.Millisecond:
		return fmt.Errorf("%w: -session-timeout %v: want 500ms or more", demo.ErrUsage, o.timeout)
	}
	return nil
}

// patience bounds the whole run, far above what it takes.
func (o options) patience() time.Duration {
	round := 2*time.Duration(o.total())*(o.Effort+50*time.Millisecond) + 3*time.Duration(o.kills+1)*o.timeout
	return o.lasts + time.Minute + time.Duration(o.Rounds)*round
}

// moments picks when to kill: after how many results. It skips the last quarter, because killed workers may not have reported all
// their results.
func moments(kills, items int) []int {
	picked := make([]int, kills)
	for n := range picked {
		picked[n] = 1 + rand.IntN(items*3/4)
	}
	slices.Sort(picked)
	return picked
}

// log returns the writer of the live log.
func (o options) log() *os.File { return demo.LogFile(o.json) }

package main

import (
	"flag"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
)

type options struct {
	servers  []string
	timeout  time.Duration
	unfenced bool
	json     bool
}

// parse reads the command line. Its error wraps flag.ErrHelp or demo.ErrUsage.
func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("fencing", flag.ContinueOnError)
	f.DurationVar(&o.timeout, "session-timeout", 2*time.Second,
		"a frozen holder has lost its lock after about this time")
	f.BoolVar(&o.unfenced, "no-fence", false, "leave the token out of the statement, and see the late write accepted")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON on standard output, and the log on standard error")
	var err error
	if o.servers, err = demo.ParseFlags(f,
		"Shows how a database refuses the late write of a process that was frozen and has lost its lock.",
		args); err != nil {
		return o, err
	}
	if o.timeout < 500*time.Millisecond {
		return o, fmt.Errorf("%w: -session-timeout %v: want 500ms or more", demo.ErrUsage, o.timeout)
	}
	return o, nil
}

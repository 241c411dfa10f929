package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

var errUsage = errors.New("bad usage")

type options struct {
	servers  []string
	timeout  time.Duration
	unfenced bool
	json     bool
}

const usage = `usage: fencing [flags]

Shows how a database refuses the late write of a process that was frozen and has lost its lock.

flags:`

// parse reads the command line. Its error wraps flag.ErrHelp or errUsage.
func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("fencing", flag.ContinueOnError)
	f.Usage = func() {}
	servers := f.String("zk", "", "real servers, host:port,host:port (default: one in memory)")
	f.DurationVar(&o.timeout, "session-timeout", 2*time.Second, "a frozen holder has lost its lock after about this time")
	f.BoolVar(&o.unfenced, "no-fence", false, "leave the token out of the statement, and see the late write accepted")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON on standard output, and the log on standard error")
	f.SetOutput(io.Discard) // the error is printed once
	err := f.Parse(args)
	if err == nil {
		o.servers, _, err = framework.ParseServers(*servers)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(os.Stdout, usage)
		f.SetOutput(os.Stdout)
		f.PrintDefaults()
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w: %w", errUsage, err)
	case f.NArg() > 0:
		return o, fmt.Errorf("%w: there is nothing to do with %q", errUsage, f.Args())
	case *servers != "" && len(o.servers) == 0:
		return o, fmt.Errorf("%w: -zk %q names no server", errUsage, *servers)
	case o.timeout < 500*time.Millisecond:
		return o, fmt.Errorf("%w: -session-timeout %v: want 500ms or more", errUsage, o.timeout)
	}
	return o, nil
}

// log returns the writer of the live log.
func (o options) log() *os.File {
	if o.json {
		return os.Stderr
	}
	return os.Stdout
}

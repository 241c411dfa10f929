package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

type options struct {
	servers  []string
	replicas int
	host     string
	port     int    // of the first replica; the others follow. 0: any
	report   string // a cron expression
	look     time.Duration
}

// parse reads the command line. Its error is flag.ErrHelp when help was asked for, and printed.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("microservice", flag.ContinueOnError)
	f.SetOutput(io.Discard) // the error is printed once
	f.Usage = func() {}
	servers := f.String("zk", "", "real servers, host:port,host:port (default: one in memory)")
	listen := f.String("listen", "127.0.0.1:8080", "where the first replica listens; the others take the ports that follow")
	f.IntVar(&o.replicas, "replicas", 2, "how many replicas to run in this process")
	f.StringVar(&o.report, "report", "*/10 * * * * *", "when to log the number of orders, as a cron expression")
	f.DurationVar(&o.look, "look", 30*time.Second, "how often to look whether locks, jobs and queues are well; at least 1s")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, "usage: microservice [flags]\n\nAn HTTP service of which one replica leads.\n\nflags:\n")
		f.SetOutput(out)
		f.PrintDefaults()
	}
	if err != nil {
		return o, err
	}
	if o.servers, _, err = framework.ParseServers(*servers); err != nil {
		return o, err
	}
	host, port, err := net.SplitHostPort(*listen)
	if err == nil {
		o.host = host
		o.port, err = strconv.Atoi(port)
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("there is nothing to do with %q", f.Args())
	case err != nil, o.port < 0, o.port+o.replicas > 65536:
		return o, fmt.Errorf("-listen %q: want host:port, with room for %d ports", *listen, o.replicas)
	case *servers != "" && len(o.servers) == 0:
		return o, fmt.Errorf("-zk %q names no server", *servers)
	case o.replicas < 1:
		return o, fmt.Errorf("-replicas %d: want 1 or more", o.replicas)
	}
	return o, nil
}

// address is where a replica listens.
func (o options) address(replica int) string {
	port := o.port
	if port != 0 {
		port += replica
	}
	return net.JoinHostPort(o.host, strconv.Itoa(port))
}

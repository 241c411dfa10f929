package main

import (
	"flag"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
)

type options struct {
	servers      []string
	replicas     int
	host         string
	port         int    // of the first replica; the others follow. 0: any
	report       string // a cron expression
	lookInterval time.Duration
	spans        string // the file for spans, or ""
}

// parse reads the command line. Its error wraps flag.ErrHelp or demo.ErrUsage.
func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("microservice", flag.ContinueOnError)
	listen := f.String("listen", "127.0.0.1:8080",
		"where the first replica listens; the others take the ports that follow")
	f.IntVar(&o.replicas, "replicas", 2, "how many replicas to run in this process")
	f.StringVar(&o.report, "report", "*/10 * * * * *", "when to log the number of orders, as a cron expression")
	f.DurationVar(&o.lookInterval, "look", 30*time.Second, "how often to check the locks, jobs, queues and workflows; at least 1s")
	f.StringVar(&o.spans, "spans", "", "write spans to this file, one JSON object a line")
	if o.servers, err = demo.ParseFlags(f, "An HTTP service of which one replica leads.", args); err != nil {
		return o, err
	}
	host, port, err := net.SplitHostPort(*listen)
	if err == nil {
		o.host = host
		o.port, err = strconv.Atoi(port)
	}
	switch {
	case err != nil, o.port < 0, o.port+o.replicas > 65536:
		return o, fmt.Errorf("%w: -listen %q: want host:port, with room for %d ports", demo.ErrUsage,
			*listen, o.replicas)
	case o.replicas < 1:
		return o, fmt.Errorf("%w: -replicas %d: want 1 or more", demo.ErrUsage, o.replicas)
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

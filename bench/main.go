// Bench measures Lockstep's recipes on real servers. Each workload prints one JSON line per result, with
// the fields and meanings that are usual among peers' benchmarks, so that lines can be compared when both were
// measured in one run on the same servers:
//
//	W0  raw requests through go-zookeeper: the floor
//	W1  one client, acquire and release of a free lock
//	W2  -c contenders with own sessions, for -t after a warm-up
//	W4  -c waiters of one client behind a holder, from its release until all have passed
//	W5  takeover by the second of two processes after the leader's end (-how kill or close)
//
// A hand-off runs from the start of one contender's release to the return of another's acquire. W2 and W4
// check mutual exclusion with a shared counter and fail on a violation.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// settings are the command's flags.
type settings struct {
	workload string
	c, n     int
	servers  []string
	session  time.Duration
	span     time.Duration
	warmup   time.Duration
	how      string
	member   bool
}

var workloads = map[string]func(settings) error{
	"W0": floor, "W1": uncontended, "W2": contended, "W4": convoy, "W5": takeover,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var s settings
	var servers string
	f := flag.NewFlagSet("bench", flag.ExitOnError)
	f.StringVar(&s.workload, "w", "W1", "workload: W0, W1, W2, W4 or W5")
	f.IntVar(&s.c, "c", 0, "contenders of W2 (default 32) or waiters of W4 (default 1000)")
	f.IntVar(&s.n, "n", 0, "cycles of W0 and W1 (default 3000), runs of W5 (default 1)")
	f.StringVar(&servers, "zk", "127.0.0.1:2181", "servers, host:port,host:port")
	f.DurationVar(&s.session, "session", 10*time.Second, "session timeout (W5: default 2s)")
	f.DurationVar(&s.span, "t", 10*time.Second, "measured time of W2")
	f.DurationVar(&s.warmup, "warmup", time.Second, "time before the measured time of W2")
	f.StringVar(&s.how, "how", "kill", "how the leader of W5 ends: kill or close")
	f.BoolVar(&s.member, "member", false, "be a member of W5 (used by the benchmark itself)")
	if err := f.Parse(args); err != nil {
		return err
	}
	s.servers = framework.SplitServers(servers)
	explicit := false
	f.Visit(func(f *flag.Flag) { explicit = explicit || f.Name == "session" })
	if s.workload == "W5" && !explicit {
		s.session = 2 * time.Second
	}
	if s.member {
		return member(s)
	}
	w := workloads[s.workload]
	if w == nil {
		return fmt.Errorf("no workload %q: there are W0, W1, W2, W4 and W5", s.workload)
	}
	if s.c < 0 || s.n < 0 || s.span <= 0 || s.warmup < 0 {
		return fmt.Errorf("-c %d, -n %d, -t %v, -warmup %v: none may be negative", s.c, s.n, s.span, s.warmup)
	}
	return w(s)
}

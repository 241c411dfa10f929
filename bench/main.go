// Bench measures Lockstep's recipes on real servers. Each workload prints one JSON line per result, with
// the fields and meanings that are usual among peers' benchmarks, so that lines can be compared when both were
// measured in one run on the same servers:
//
//	W0  raw requests through go-zookeeper: the floor
//	W1  one client, acquire and release of a free lock
//	W2  -c contenders with own sessions, for -t after a warm-up
//	W3  as W2, but -c goroutines of one client; -procs processes of as many each
//	W4  -c waiters of one client behind a holder, from its release until all have passed;
//	    -paced: each releases only after the release before it has returned
//	W5  takeover by the second of two processes after the leader's end (-how kill or close); its servers should
//	    have a tick of 2 s, or they do not grant 30 s; -watchdog=false waits for that time
//	W6  a queue of items of 100 bytes: put one by one and in the background, taken in strict order and by -c
//	    consumers with own sessions, by turns with a fifth of the items given back once and without, and both at
//	    a depth of 10 and of -depth; -n items each
//	W7  -c members with own sessions enter and leave one double barrier, -n rounds after a third as many to
//	    warm up
//	W8  -readers and -writers of one read-write lock, with own sessions, for -t after a warm-up
//	T   -n jobs spread over -c members: how late their ticks start, and what they cost, for -t
//	S   -c clients that do nothing, or that wait for one lock, beside as many sessions of go-zookeeper: the writes that the
//	    ensemble agrees on and the processor time of its servers, for -t; then the first and the second acquire of -n clients
//	M   the memory that -c waiters of one client take
//
// A hand-off runs from the start of one contender's release to the return of another's acquire; the
// quantiles are those of the first million. W2, W3, W4 and W8 check mutual exclusion and that fencing
// tokens rise, and fail on a violation. With -trace, a line has the requests of a cycle by operation.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// settings are the command's flags.
type settings struct {
	workload         string
	c, n, procs      int
	readers, writers int
	servers          []string
	session          time.Duration
	span, warmup     time.Duration
	release          string
	slice            time.Duration
	paced            bool
	how              string
	watchdog         bool
	member           string
	depth            int
	sent             *requestCounter // nil without -trace
}

var workloads = map[string]func(settings) error{
	"W0": floor, "W1": uncontended, "W2": contended, "W3": shared, "W4": convoyHandoffs, "W5": takeover, "W6": queueing, "W7": barrierRounds, "W8": readWrite, "T": ticks, "M": memory, "S": idleClients,
}

// members are the main functions of the processes that a workload starts.
var members = map[string]func(settings) error{"W3": sharer, "W5": candidate}

func main() {
	framework.WatchdogMain()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	if s.member != "" {
		return members[s.workload](s)
	}
	return workloads[s.workload](s)
}

func parse(args []string) (s settings, err error) {
	var servers string
	var trace bool
	f := flag.NewFlagSet("bench", flag.ExitOnError)
	f.StringVar(&s.workload, "w", "W1", "workload: "+names())
	f.IntVar(&s.c, "c", 0, "contenders of W2 and W3 (default 32), waiters of W4 (default 1000) and M (default 10000), clients of S (default 1000), members of W7 (default 8) and T (default 10)")
	f.IntVar(&s.n, "n", 0, "cycles of W0 and W1 (default 3000), runs of W5 (default 20), rounds of W7 (default 300), jobs of T (default 10000), acquiring clients of S (default 100)")
	f.IntVar(&s.procs, "procs", 1, "processes of W3")
	f.IntVar(&s.readers, "readers", 8, "readers of W8")
	f.IntVar(&s.writers, "writers", 1, "writers of W8")
	f.StringVar(&servers, "zk", "127.0.0.1:2181", "servers, host:port,host:port")
	f.DurationVar(&s.session, "session", 10*time.Second, "session timeout (W5: default 30s)")
	f.DurationVar(&s.span, "t", 10*time.Second, "measured time of W2, W3, W8, T and each group of S")
	f.DurationVar(&s.warmup, "warmup", time.Second, "time before the measured time")
	f.StringVar(&s.release, "release", "strict", "when a release returns: strict (the node is gone) or write (its deletion is on its way)")
	f.DurationVar(&s.slice, "slice", 0, "how long the goroutines of W3 may take turns with one node (0: each has its own)")
	f.IntVar(&s.depth, "depth", 100_000, "the great depth of W6")
	f.BoolVar(&s.paced, "paced", false, "W4: each waiter releases after the former release has returned")
	f.BoolVar(&trace, "trace", false, "tell the requests of a cycle by operation")
	f.StringVar(&s.how, "how", "kill", "how the leader of W5 ends: kill or close")
	f.BoolVar(&s.watchdog, "watchdog", true, "W5: the leader has a watchdog")
	f.StringVar(&s.member, "member", "", "be a process of W3 or W5 at this path (used by the benchmark itself)")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if s.servers, _, err = framework.ParseServers(servers); err != nil {
		return s, err
	}
	explicit := false
	f.Visit(func(f *flag.Flag) { explicit = explicit || f.Name == "session" })
	if s.workload == "W5" && !explicit {
		s.session = 30 * time.Second
	}
	if trace {
		s.sent = newRequestCounter()
	}
	return s, s.check()
}

func (s settings) check() error {
	switch {
	case workloads[s.workload] == nil:
		return fmt.Errorf("no workload %q: want one of %s", s.workload, names())
	case s.member != "" && members[s.workload] == nil:
		return fmt.Errorf("-member: %s starts no processes", s.workload)
	case s.c < 0 || s.n < 0 || s.span <= 0 || s.warmup < 0:
		return fmt.Errorf("-c %d, -n %d, -t %v, -warmup %v: none may be negative", s.c, s.n, s.span, s.warmup)
	case s.procs < 1:
		return fmt.Errorf("-procs %d: at least 1", s.procs)
	case s.readers < 0 || s.writers < 0 || s.readers+s.writers == 0:
		return fmt.Errorf("-readers %d, -writers %d: none may be negative, and not both 0", s.readers, s.writers)
	case s.sent != nil && s.watchdog && s.workload == "W5":
		return errors.New("-trace counts in a dialer, which a watchdog cannot have: add -watchdog=false")
	case s.slice < 0:
		return fmt.Errorf("-slice %v: it may not be negative", s.slice)
	case s.release != "strict" && s.release != "write":
		return fmt.Errorf("-release %q: want strict or write", s.release)
	}
	return nil
}

func names() string { return strings.Join(slices.Sorted(maps.Keys(workloads)), ", ") }

// options are the options of the mutexes under test.
func (s settings) options() []locks.MutexOption {
	var opts []locks.MutexOption
	if s.release == "write" {
		opts = append(opts, locks.WithAsyncRelease())
	}
	if s.slice > 0 {
		opts = append(opts, locks.WithLocalHandoff(s.slice))
	}
	return opts
}

// rwOptions are the options of the read-write locks under test.
func (s settings) rwOptions() []locks.RWLockOption {
	if s.release == "write" {
		return []locks.RWLockOption{locks.WithAsyncRelease()}
	}
	return nil
}

// params adds the flags that differ from their defaults to a result's parameters.
func (s settings) params(p map[string]any) map[string]any {
	if s.release != "strict" {
		p["release"] = s.release
	}
	if s.slice > 0 {
		p["slice"] = s.slice.String()
	}
	if s.paced {
		p["paced"] = true
	}
	if s.procs > 1 {
		p["procs"] = s.procs
	}
	return p
}

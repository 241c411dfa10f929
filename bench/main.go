// Bench measures Lockstep's recipes on real servers. Each workload prints one JSON line per result.
// The fields and their meanings are those of other libraries' benchmarks, so that lines can be
// compared if both were measured in one run on the same servers:
//
//	W0  raw requests through go-zookeeper: the floor
//	W1  one client acquires and releases a free lock
//	W2  -c contenders with a session each, for -t after a warm-up
//	W3  as W2, but the contenders are -c goroutines of one client; with -procs, in each of several processes
//	W4  -c waiters of one client behind a holder, from its release until all have passed;
//	    with -paced, each waiter releases only after the previous release has returned
//	W5  the second of two processes takes over after the leader's end (-how kill or close). The tick of the servers
//	    should be 2 s: with a shorter one they do not grant a session timeout of 30 s. Without a watchdog
//	    (-watchdog=false) the takeover takes that long
//	W6  a queue with items of 100 bytes: put one by one and in the background; taken in strict order and by -c
//	    consumers with a session each, by turns with every fifth item given back once and with none; put and taken
//	    at a depth of 10 and of -depth; -n items in each part
//	W7  -c members with a session each enter and leave one double barrier, for -n rounds after a third as many to
//	    warm up
//	W8  -readers and -writers of one read-write lock, with a session each, for -t after a warm-up
//	R   workflows, beside bare writes of the same clients: steps of a ledger; -n runs of 5 empty steps, from their
//	    start to their end, by -c members; -depth runs that wait, for -t, and a list of them
//	T   -n jobs spread over -c members: how late their ticks start, and what they cost, for -t
//	S   -c clients that do nothing, or that wait for one lock, beside as many sessions of go-zookeeper: the writes that
//	    the ensemble agrees on and the processor time of its servers, for -t; then the first and the second acquire of
//	    -n clients
//	J   -c clients with a session each join the line of one lock at once: how long it takes, and what it costs
//	O   W1 and W2 by turns, without a telemetry provider, with providers that measure nothing, and with a reader in
//	    memory: for -t each, and the ratio of each to the providers that measure nothing
//	M   the memory that -c waiters of one client take
//
// A hand-off is the time from the start of one contender's release to the return of another's
// acquire. The quantiles are those of the first million hand-offs. W2, W3, W4 and W8 check mutual
// exclusion and that fencing tokens rise, and fail on a violation. With -trace, a line has the
// requests of a cycle by operation.
//
// To add a workload, write a function of settings that prints its results (newResult, print), add
// it to workloads and to this list, and add its defaults of -c and -n to the help of these flags.
// main_test.go runs each workload on a server in memory.
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
	"W0": rawRequests, "W1": uncontended, "W2": contended, "W3": contendedInProcess, "W4": convoyHandoffs,
	"W5": takeover, "W6": queues, "W7": barrierRounds, "W8": readWrite, "R": workflowRuns, "T": ticks, "M": memory,
	"S": idleClients, "J": joins, "O": telemetryOverhead,
}

// members are the main functions of the processes that W3 and W5 start.
var members = map[string]func(settings) error{"W3": contenderProcess, "W5": candidateProcess}

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
	f.IntVar(&s.c, "c", 0, "contenders of W2, W3 and O (default 32), waiters of W4 (default 1000) and M (default "+
		"10000), consumers of W6 (default 8), members of W7 and R (default 8) and T (default 10), clients of S "+
		"and J (default 1000)")
	f.IntVar(&s.n, "n", 0, "cycles of W0, W1 and R (default 3000), takeovers of W5 (default 20), items of W6 "+
		"(default 1500 to 20000 by part), rounds of W7 (default 300), jobs of T (default 10000), acquiring clients "+
		"of S (default 100)")
	f.IntVar(&s.procs, "procs", 1, "processes of W3")
	f.IntVar(&s.readers, "readers", 8, "readers of W8")
	f.IntVar(&s.writers, "writers", 1, "writers of W8")
	f.StringVar(&servers, "zk", "127.0.0.1:2181", "servers, host:port,host:port")
	f.DurationVar(&s.session, "session", 10*time.Second, "session timeout (W5: default 30s)")
	f.DurationVar(&s.span, "t", 10*time.Second,
		"measured time of W2, W3, W8 and T, of the waiting runs of R, of each group of S, of each kind of O, and after "+
			"the joins of J")
	f.DurationVar(&s.warmup, "warmup", time.Second, "time before the measured time")
	f.StringVar(&s.release, "release", "strict",
		"when a release returns: strict (the server has deleted the node) or write (the deletion is sent)")
	f.DurationVar(&s.slice, "slice", 0,
		"W3: how long the goroutines may hand the lock on without a new node (0: not at all)")
	f.IntVar(&s.depth, "depth", 100_000, "the greater depth of W6, and the number of waiting runs of R")
	f.BoolVar(&s.paced, "paced", false, "W4: each waiter releases only after the previous release has returned")
	f.BoolVar(&trace, "trace", false, "print the requests of a cycle by operation")
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
		return fmt.Errorf("-c %d, -n %d, -t %v, -warmup %v: none may be negative, and -t must be above 0", s.c, s.n,
			s.span, s.warmup)
	case s.procs < 1:
		return fmt.Errorf("-procs %d: at least 1", s.procs)
	case s.readers < 0 || s.writers < 0 || s.readers+s.writers == 0:
		return fmt.Errorf("-readers %d, -writers %d: none may be negative, and not both 0", s.readers, s.writers)
	case s.sent != nil && s.watchdog && s.workload == "W5":
		return errors.New("-trace counts in a dialer, which a watchdog cannot have: add -watchdog=false")
	case s.slice < 0:
		return fmt.Errorf("-slice %v: want 0 or more", s.slice)
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

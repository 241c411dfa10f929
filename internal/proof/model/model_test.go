package model

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var all = flag.Bool("all", false, "search the large variants too: some minutes, up to 6 GB of memory")

const (
	holds    = "holds"
	violated = "violated"
)

// variant is one setting of a model, and the verdict that the search must have.
type variant struct {
	file    string
	options string // of the C preprocessor
	verdict string
	large   bool
}

var variants = []variant{
	{file: "lease.pml", options: "RULE=NEWEST_PING", verdict: violated},
	{file: "lease.pml", options: "RULE=NEWEST_WRITE", verdict: violated},

	// These variants have the rule that Lockstep uses.
	{file: "lease.pml", options: "RULE=WRITE_BEFORE", verdict: holds},
	{file: "lease.pml", options: "RULE=WRITE_BEFORE LOSES_TOUCH", verdict: holds},
	{file: "lease.pml", options: "RULE=WRITE_BEFORE LATE_COMMIT", verdict: violated},
	{file: "lease.pml", options: "RULE=WRITE_BEFORE_WITHOUT_PAUSE", verdict: violated},
	{file: "lease.pml", options: "RULE=WRITE_BEFORE REVIVE", verdict: violated},
	{file: "lease.pml", options: "RULE=WRITE_BEFORE DRIFT MARGIN=1", verdict: holds, large: true},
	{file: "lease.pml", options: "RULE=WRITE_BEFORE DRIFT", verdict: violated},
	{file: "lease.pml", options: "RULE=WRITE_BEFORE MOVES=1", verdict: holds, large: true},
	{file: "lease.pml", options: "RULE=WRITE_BEFORE MOVES=1 TRUST_CONNECT", verdict: violated, large: true},

	// In these variants the heartbeats of two series come between each other.
	{file: "lease.pml", options: "RULE=WRITE_BEFORE PHASES", verdict: holds},
	{file: "lease.pml", options: "RULE=WRITE_BEFORE LOSES_TOUCH PHASES", verdict: holds, large: true},
	{file: "lease.pml", options: "RULE=WRITE_BEFORE PHASES ONE_SERIES", verdict: violated},

	// In these variants a packet that was answered T/4 before a write counts.
	{file: "lease.pml", options: "RULE=PACKET", verdict: holds},
	{file: "lease.pml", options: "RULE=PACKET LOSES_TOUCH", verdict: violated},
	{file: "lease.pml", options: "RULE=PACKET LOSES_TOUCH TWO_PACKETS", verdict: holds},
	{file: "lease.pml", options: "RULE=PACKET LATE_COMMIT", verdict: violated},
	{file: "lease.pml", options: "RULE=PACKET REVIVE", verdict: violated},
	{file: "lease.pml", options: "RULE=PACKET_WITHOUT_SYNC", verdict: violated},
	{file: "lease.pml", options: "RULE=PACKET_WITHOUT_PAUSE", verdict: violated},

	// In these variants a lease begins again.
	{file: "lease.pml", options: "RULE=RESTART LOSES_TOUCH TWO_PACKETS", verdict: holds},
	{file: "lease.pml", options: "RULE=RESTART LOSES_TOUCH", verdict: violated},
	{file: "lease.pml", options: "RULE=RESTART LATE_COMMIT", verdict: violated},
	{file: "lease.pml", options: "RULE=RESTART_WITH_SYNC", verdict: violated},
	{file: "lease.pml", options: "RULE=RESTART_ONE_WRITE LOSES_TOUCH TWO_PACKETS", verdict: violated},
	{file: "lease.pml", options: "RULE=RESTART_WITHOUT_PAUSE LOSES_TOUCH TWO_PACKETS", verdict: violated},

	// In these variants sessions become dormant.
	{file: "lease.pml", options: "RULE=DORMANT LOSES_TOUCH TWO_PACKETS", verdict: holds},
	{file: "lease.pml", options: "RULE=DORMANT LOSES_TOUCH", verdict: violated},
	{file: "lease.pml", options: "RULE=DORMANT LOSES_TOUCH TWO_PACKETS REVIVE", verdict: violated},
	{file: "lease.pml", options: "RULE=DORMANT LOSES_TOUCH TWO_PACKETS LATE_COMMIT", verdict: violated},
	{file: "lease.pml", options: "RULE=DORMANT LOSES_TOUCH TWO_PACKETS DRIFT MARGIN=1", verdict: holds, large: true},
	{file: "lease.pml", options: "RULE=DORMANT LOSES_TOUCH TWO_PACKETS DRIFT", verdict: violated},
	{file: "lease.pml", options: "RULE=DORMANT LOSES_TOUCH TWO_PACKETS MOVES=1", verdict: holds, large: true},
	{file: "lease.pml", options: "RULE=DORMANT LOSES_TOUCH TWO_PACKETS MOVES=1 TRUST_CONNECT", verdict: violated,
		large: true},

	// In these variants writes are refused.
	{file: "lease.pml", options: "RULE=WRITE_BEFORE LOSES_TOUCH REFUSALS", verdict: holds},
	{file: "lease.pml", options: "RULE=DORMANT LOSES_TOUCH TWO_PACKETS REFUSALS", verdict: holds},
	{file: "lease.pml", options: "RULE=DORMANT LOSES_TOUCH TWO_PACKETS REFUSALS COUNT_EXPIRED", verdict: violated},
	{file: "lease.pml", options: "RULE=WRITE_BEFORE REFUSALS COUNT_LOCAL", verdict: violated},
	{file: "lease.pml", options: "RULE=WRITE_BEFORE REFUSALS MOVES=1", verdict: holds, large: true},

	{file: "line.pml", verdict: holds},
	{file: "line.pml", options: "GIVE_UPS=2 EXPIRIES=2", verdict: holds, large: true},
	{file: "line.pml", options: "GRANT_ON_EVENT", verdict: violated},
	{file: "line.pml", options: "LIST_ANYWHERE", verdict: violated},
	{file: "line.pml", options: "HAND_OVER_FAR", verdict: violated},
	{file: "line.pml", options: "KEEP_SLEEPING", verdict: violated},
	{file: "line.pml", options: "FORGET_ORPHAN", verdict: violated},

	{file: "observer.pml", verdict: violated, large: true},
	{file: "observer.pml", options: "ONE_FURTHER_BACK", verdict: holds, large: true},
}

// TestEachVariantHasItsVerdict searches all states of each variant. With -short it searches every
// fourth variant, and others the next days.
func TestEachVariantHasItsVerdict(t *testing.T) {
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s is not installed: %v", tool, err)
			}
			t.Skipf("%s is not installed: %v", tool, err)
		}
	}
	for i, v := range variants {
		if testing.Short() && (i+time.Now().YearDay())%4 != 0 {
			continue
		}
		if v.large && !*all {
			t.Logf("left out, make model searches it: %s %s", v.file, v.options)
			continue
		}
		t.Run(v.file+" "+v.options, func(t *testing.T) {
			found := search(t, v)
			t.Logf("%s in %d states", found.verdict, found.states)
			require.Equal(t, v.verdict, found.verdict)
		})
	}
}

// result is what a search has found.
type result struct {
	verdict string
	states  int
}

var (
	errorCount = regexp.MustCompile(`errors: (\d+)`)
	stateCount = regexp.MustCompile(`([\d.e+]+) states, stored`)
)

// search lets Spin generate the program that searches a variant, and runs that program.
func search(t *testing.T, v variant) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	dir := t.TempDir()
	source, err := filepath.Abs(v.file)
	require.NoError(t, err)
	spin := []string{"-a"}
	for option := range strings.FieldsSeq(v.options) {
		spin = append(spin, "-D"+option)
	}
	run := func(name string, args ...string) string {
		c := exec.CommandContext(ctx, name, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
		return string(out)
	}
	run("spin", append(spin, source)...)
	run("gcc", "-O1", "-DSAFETY", "-DNOREDUCE", "-DCOLLAPSE", "-DMEMLIM=6000", "-w", "-o", "search", "pan.c")
	args := []string{"-m3000000", "-w24"}
	if v.file != "line.pml" { // there a state without a next step is a waiter that sleeps for ever
		args = append(args, "-E")
	}
	out := run("./search", args...)
	found, err := readResult(out)
	require.NoError(t, err)
	return found
}

// readResult reads the output of the search. It returns an error if the search is incomplete and
// has found no violation.
func readResult(out string) (r result, err error) {
	errors, states := errorCount.FindStringSubmatch(out), stateCount.FindStringSubmatch(out)
	if errors == nil || states == nil {
		return r, fmt.Errorf("no result: %s", out)
	}
	n, err := strconv.ParseFloat(states[1], 64)
	if err != nil {
		return r, err
	}
	r = result{verdict: violated, states: int(n)}
	if errors[1] == "0" {
		r.verdict = holds
		for _, incomplete := range []string{"Search not completed", "max search depth too small"} {
			if strings.Contains(out, incomplete) {
				return r, fmt.Errorf("%s: %s", incomplete, out)
			}
		}
	}
	return r, nil
}

func TestAnIncompleteSearchHasNoResult(t *testing.T) {
	const complete = "State-vector 88 byte, depth reached 31, errors: 0\n 303470 states, stored\n"
	r, err := readResult(complete)
	require.NoError(t, err)
	require.Equal(t, result{holds, 303470}, r)
	for _, out := range []string{"", "error: max search depth too small\n" + complete,
		"Warning: Search not completed\n" + complete} {
		_, err := readResult(out)
		require.Error(t, err)
	}
	r, err = readResult("Warning: Search not completed\nerrors: 1\n 2.35e+06 states, stored\n")
	require.NoError(t, err)
	require.Equal(t, result{violated, 2_350_000}, r)
}

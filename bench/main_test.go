package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestMain is a process of W3 or W5 if the arguments say so: these workloads start this binary
// again.
func TestMain(m *testing.M) {
	framework.WatchdogMain()
	if slices.Contains(os.Args, "-member") {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// measure runs one workload on a server in memory, requires that each line has measured cycles, and
// returns the lines.
func measure(t *testing.T, args ...string) []map[string]any {
	t.Helper()
	lines, err := runWorkload(t, args...)
	require.NoError(t, err)
	for _, r := range lines {
		if args[1] != "M" && args[1] != "S" && args[1] != "J" {
			require.Positive(t, r["p50_ms"])
		}
		require.Positive(t, r["n"])
	}
	return lines
}

// measureFor runs a workload as measure does, for a span in which each line has at least this many
// cycles, and each contender at least one. A slow machine needs a longer span.
func measureFor(t *testing.T, span time.Duration, cycles float64, args ...string) []map[string]any {
	t.Helper()
	for ; ; span *= 4 {
		spanned := append(slices.Clone(args), "-t", span.String())
		lines, err := runWorkload(t, spanned...)
		require.NoError(t, err)
		if !slices.ContainsFunc(lines, func(r map[string]any) bool {
			return r["n"].(float64) < cycles ||
				r["least"] == 0.0
		}) {
			return lines
		}
		require.Less(t, span, time.Minute, "%v: %v", spanned, lines)
	}
}

// runWorkload runs one workload on a server in memory and returns its lines.
func runWorkload(t *testing.T, args ...string) (lines []map[string]any, err error) {
	t.Helper()
	zk := zktest.Start(t, zktest.WithSessionTimeouts(4*time.Second, time.Hour))
	addr, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	var out bytes.Buffer
	stdout = &out
	defer func() { stdout = os.Stdout }()
	if err := run(append(args, "--zk", addr)); err != nil {
		return nil, err
	}
	for line := range strings.Lines(out.String()) {
		var r map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		require.Equal(t, args[1], r["workload"])
		lines = append(lines, r)
	}
	return lines, nil
}

func TestIdleClients(t *testing.T) {
	for session := 400 * time.Millisecond; ; session *= 4 { // on a slow machine a session has to be longer to stay
		lines, err := runWorkload(t, "-w", "S", "-c", "5", "-n", "2", "-session", session.String(), "-t", "300ms")
		if err == nil {
			require.Len(t, lines, 7, "five groups, and the first and the second acquire")
			first, last := lines[0], lines[len(lines)-1]
			require.Equal(t, []any{"go-zookeeper", "go-zookeeper"}, []any{first["peer"], last["peer"]})
			if first["writes_per_client_s"] == 0.0 && last["writes_per_client_s"] == 0.0 {
				return
			}
		}
		require.Less(t, session, time.Minute, "a bare session writes only to open and to close: %v, %v", err, lines)
	}
}

func TestRawRequestsAndUncontended(t *testing.T) {
	require.Len(t, measure(t, "-w", "W0", "-n", "30"), 4, "one for each request")

	w1 := measure(t, "-w", "W1", "-n", "50", "-trace")
	require.Len(t, w1, 1)
	require.Equal(t, "lockstep", w1[0]["peer"])
	require.InDelta(t, 2, w1[0]["requests_per_cycle"], 1, "create and delete, and a heartbeat now and then")
	sent := w1[0]["requests_by_operation"].(map[string]any)
	require.Equal(t, 1.0, sent["create"])
	require.Equal(t, 1.0, sent["delete"])
}

func TestWorkflowRuns(t *testing.T) {
	// A heartbeat is a transaction, too. With this session timeout none is due during the test, so
	// that steps can be counted exactly.
	lines, err := runWorkload(t, "-w", "R", "-n", "30", "-c", "2", "-depth", "20", "-t", "100ms", "-session", "1h")
	require.NoError(t, err)
	byName := map[string]map[string]any{}
	for _, r := range lines {
		byName[r["params"].(map[string]any)["op"].(string)] = r
	}
	require.Len(t, byName, 8, "setData is measured by one client and by several")
	require.Len(t, lines, 10, "and quiet members are with and without runs")
	sent := byName["run of 5 steps"]["requests_by_operation"].(map[string]any)
	multis := sent["multi"].(float64) // workflow counts those of one run exactly
	require.Greater(t, multis, 6.5,
		"five records, a sync, and a part of the start, the claim and the end, which runs share")
	require.Less(t, multis, 11.0, "nine, and a start that is refused once for want of its directory")
	require.Equal(t, 5.0, byName["list"]["n"])
	require.Equal(t, 1.0, byName["step of a ledger"]["requests_by_operation"].(map[string]any)["multi"])
}

func TestContended(t *testing.T) {
	w2 := measureFor(t, 300*time.Millisecond, 1, "-w", "W2", "-c", "4", "-warmup", "100ms", "-trace")
	require.Equal(t, map[string]any{"c": 4.0}, w2[0]["params"])
	require.Positive(t, w2[0]["least"])
	require.Positive(t, w2[0]["requests_by_operation"].(map[string]any)["get+watch"])

	w3 := measureFor(t, 300*time.Millisecond, 1, "-w", "W3", "-c", "4", "-warmup", "100ms", "-release", "write")
	require.Equal(t, map[string]any{"c": 4.0, "release": "write"}, w3[0]["params"])
	require.Positive(t, w3[0]["least"])
}

// TestContendedWithLocalHandoff checks that a slice of several cycles costs less than one request
// for each cycle. A slow machine needs a longer slice for several cycles.
func TestContendedWithLocalHandoff(t *testing.T) {
	for _, more := range [][]string{nil, {"-procs", "2"}} {
		perCycle := 1.0
		for slice := 5 * time.Millisecond; perCycle >= 1; slice *= 4 {
			require.Less(t, slice, 10*time.Second, "requests in a cycle")
			w3 := measureFor(t, 60*slice, 1,
				append([]string{"-w", "W3", "-c", "4", "-slice", slice.String(), "-warmup", "100ms"}, more...)...)
			require.Equal(t, slice.String(), w3[0]["params"].(map[string]any)["slice"])
			perCycle = w3[0]["requests_per_cycle"].(float64)
		}
	}
}

func TestContendedByProcesses(t *testing.T) {
	w3 := measureFor(t, 500*time.Millisecond, 30, "-w", "W3", "-c", "4", "-procs", "2", "-warmup", "100ms", "-trace")
	require.Equal(t, map[string]any{"c": 4.0, "procs": 2.0}, w3[0]["params"])
	shares := w3[0]["shares"].([]any)
	require.InDelta(t, 1, shares[0].(float64)+shares[1].(float64), 1e-9)
	require.InDelta(t, 1, w3[0]["requests_by_operation"].(map[string]any)["delete"], 0.5)
}

func TestConvoy(t *testing.T) {
	w4 := measure(t, "-w", "W4", "-c", "20")
	require.Equal(t, 20.0, w4[0]["n"])
	require.Positive(t, w4[0]["ms_per_handoff"])

	paced := measure(t, "-w", "W4", "-c", "20", "-paced")
	require.Equal(t, map[string]any{"c": 20.0, "paced": true}, paced[0]["params"])
}

// TestTakeover checks what W5 reports. How long a takeover takes is measured, not asserted.
func TestTakeover(t *testing.T) {
	w5 := measure(t, "-w", "W5", "-how", "close", "-n", "1", "-watchdog=false")
	require.Nil(t, w5[0]["ops_per_s"])
	require.NotContains(t, w5[0], "watchdog_armed_p50_ms")

	killed := measure(t, "-w", "W5", "-n", "2")
	require.Equal(t, map[string]any{"how": "kill", "session": 30.0, "watchdog": true}, killed[0]["params"])
	require.Positive(t, killed[0]["watchdog_armed_p50_ms"])
}

func TestReadWrite(t *testing.T) {
	w8 := measureFor(t, 500*time.Millisecond, 1, "-w", "W8", "-readers", "3", "-writers", "2", "-warmup", "100ms")
	require.Len(t, w8, 2)
	require.Equal(t, map[string]any{"readers": 3.0, "writers": 2.0, "op": "read"}, w8[0]["params"])
	require.Equal(t, "write", w8[1]["params"].(map[string]any)["op"])

	require.Len(t, measureFor(t, 200*time.Millisecond, 1, "-w", "W8", "-readers", "2", "-writers", "0"), 1,
		"readers only")
}

func TestBarrierRounds(t *testing.T) {
	w7 := measure(t, "-w", "W7", "-c", "3", "-n", "20")
	require.Equal(t, map[string]any{"c": 3.0, "reuse": true}, w7[0]["params"])
	require.Equal(t, 20.0, w7[0]["n"])
}

// TestJoins: each of the sessions lists the line once or more often, and the holder holds.
func TestJoins(t *testing.T) {
	j := measure(t, "-w", "J", "-c", "5", "-t", "1ms")
	require.Len(t, j, 1)
	require.Equal(t, true, j[0]["held"])
	require.Positive(t, j[0]["answer_bytes_per_client"])
	lists := 0.0
	for op, n := range j[0]["requests_by_operation"].(map[string]any) {
		if strings.HasPrefix(op, "list") {
			lists += n.(float64)
		}
	}
	require.GreaterOrEqual(t, lists, 1.0, "%v", j[0])
}

func TestMemory(t *testing.T) {
	m := measure(t, "-w", "M", "-c", "50")
	require.Equal(t, m[0]["heap_bytes_per_waiter"].(float64)+m[0]["stack_bytes_per_waiter"].(float64),
		m[0]["bytes_per_waiter"])
	require.Greater(t, m[0]["goroutines"], 50.0)
}

func TestBadFlags(t *testing.T) {
	for want, args := range map[string][]string{
		`no workload "W9"`:     {"-w", "W9"},
		"-c -1":                {"-w", "W2", "-c", "-1"},
		`-how "nicely"`:        {"-w", "W5", "-how", "nicely"},
		"-t 0s":                {"-w", "W2", "-t", "0s"},
		`-release "soon"`:      {"-w", "W2", "-release", "soon"},
		"-slice -1s":           {"-w", "W3", "-slice", "-1s"},
		"-procs 0":             {"-w", "W3", "-procs", "0"},
		"-readers 0":           {"-w", "W8", "-readers", "0", "-writers", "0"},
		"W1 starts no process": {"-w", "W1", "-member", "/x"},
		"-watchdog=false":      {"-w", "W5", "-trace"},
	} {
		require.ErrorContains(t, run(args), want)
	}
}

// TestServersThatDoNotAnswer checks that workloads of either library end when no server answers,
// with an error that names the servers and says what to do.
func TestServersThatDoNotAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // which accepts connections, and answers nothing
	require.NoError(t, err)
	silent := listener.Addr().String()
	defer func(d time.Duration) { connectPatience = d }(connectPatience)
	connectPatience = 50 * time.Millisecond
	for _, workload := range []string{"W0", "W1"} {
		err := run([]string{"-w", workload, "-n", "1", "-zk", silent})
		require.ErrorContains(t, err, silent)
		require.ErrorContains(t, err, "name others with -zk")
	}
	require.NoError(t, listener.Close())
	require.ErrorContains(t, run([]string{"-w", "W0", "-zk", silent}), silent, "nothing listens there")
}

func TestConcurrentHoldersInProcessesAreDetected(t *testing.T) {
	handoffs, err := handoffsOf([]holdPeriod{{3, 50, 60, true}, {1, 10, 20, false}, {2, 25, 40, true}})
	require.NoError(t, err)
	require.Equal(t, []time.Duration{5, 10}, handoffs)

	for _, second := range []holdPeriod{{Token: 2, From: 19, To: 30}, {Token: 1, From: 21, To: 30}} {
		_, err = handoffsOf([]holdPeriod{{Token: 1, From: 10, To: 20}, second})
		require.ErrorIs(t, err, errViolated)
	}
}

func TestCriticalSectionDetectsTwoHolders(t *testing.T) {
	var g criticalSection
	require.NoError(t, g.enter(1, fence{5, 0}, true))
	require.NoError(t, g.enter(1, fence{5, 1}, true), "a slice continues")
	require.NoError(t, g.enter(2, fence{6, 0}, true))
	require.Equal(t, 1, g.self)
	require.Len(t, g.handoffs, 1)
	require.ErrorIs(t, g.enter(3, fence{6, 0}, true), errViolated)

	b := sharedRegister{readers: 1}
	b.inside.Store(-1)
	require.ErrorIs(t, b.read(fence{}), errViolated)
	b.inside.Store(1)
	require.ErrorIs(t, b.write(fence{1, 0}), errViolated)
}

// TestRequestCounterCountsSplitFrames writes a connect request and two reads, once byte by byte and
// once in a single write.
func TestRequestCounterCountsSplitFrames(t *testing.T) {
	frames := []byte{0, 0, 0, 1, 9}
	frames = append(frames, 0, 0, 0, 10, 0, 0, 0, 1, 0, 0, 0, 4, '/', 1)
	frames = append(frames, 0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 4, '/', 0)
	for _, size := range []int{1, len(frames)} {
		near, far := net.Pipe()
		go io.Copy(io.Discard, far)
		c := &countedConn{Conn: near, sent: newRequestCounter()}
		for part := range slices.Chunk(frames, size) {
			_, err := c.Write(part)
			require.NoError(t, err)
		}
		require.Equal(t, map[string]int{"get+watch": 1, "get": 1}, c.sent.snapshot())
		require.NoError(t, near.Close())
	}
}

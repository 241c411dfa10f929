package faults

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// TestMain runs the test binary as a child process or a watchdog if the environment says so.
func TestMain(m *testing.M) {
	framework.WatchdogMain()
	if runWatchedHolder() {
		return
	}
	if role := os.Getenv(roleVariable); role != "" {
		runChild(role)
		return
	}
	// Most tests wait most of the time, for timeouts, and each has an ensemble of its own.
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ensemble.Announce()
	goleak.VerifyTestMain(m)
}

// TestFaults runs its subtests on one ensemble, because the start of an ensemble takes as long as a
// fault.
func TestFaults(t *testing.T) {
	t.Parallel()
	env := &testEnv{Ensemble: ensemble.Private(t,
		ensemble.Config{Links: true, NoFsync: true, Patience: waitLimit, HeapMB: 1024})}
	t.Run("healthy servers", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *testEnv){
			"links of clients":         testLinkFaults,
			"frozen process":           testFrozenProcess,
			"stopped before sending":   testStoppedBeforeSending,
			"killed processes":         testKilledProcesses,
			"lost replies of acquires": testLostReplies,
			"suspended waiter":         testSuspendedWaiter,
			"lost waiter":              testLostWaiter,
			"timed-out acquires":       testTimedOutAcquiresLeaveNothing,
			"tokens":                   testTokens,
		} {
			t.Run(name, func(t *testing.T) { t.Parallel(); test(t, env) })
		}
	})
	faults := serverFaults
	if testing.Short() {
		faults = chosenToday(serverFaults, len(serverFaults)/3)
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) { f.runAndCheck(t, env) })
	}
	t.Run("dormant sessions", func(t *testing.T) { testDormantSessions(t, env) })
	t.Run("idle waiter granted when its follower is cut off", func(t *testing.T) { testIdleWaiter(t, env) })
}

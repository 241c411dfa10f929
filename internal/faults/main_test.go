package faults

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/ensemble"
)

// TestMain lets the test binary stand in for a service that is stopped or killed.
func TestMain(m *testing.M) {
	framework.WatchdogMain()
	if playWatched() {
		return
	}
	if role := os.Getenv(roleVariable); role != "" {
		play(role)
		return
	}
	ensemble.Announce()
	goleak.VerifyTestMain(m)
}

// TestFaults runs everything on one ensemble, since starting one takes as long as a fault.
func TestFaults(t *testing.T) {
	a := &arena{ensemble.Private(t, ensemble.Config{Links: true, NoFsync: true, Patience: patience, HeapMB: 1024})}
	t.Run("healthy servers", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *arena){
			"links of clients":       testLinks,
			"frozen process":         testFrozenProcess,
			"stopped before sending": testStoppedBeforeSending,
			"killed processes":       testKilledProcesses,
			"lost replies":           testLostReplies,
			"suspended waiter":       testSuspendedWaiter,
			"lost waiter":            testLostWaiter,
			"timed-out tries":        testTimedOutTries,
			"tokens":                 testTokens,
		} {
			t.Run(name, func(t *testing.T) { t.Parallel(); test(t, a) })
		}
	})
	for _, f := range serverFaults {
		t.Run(f.name, func(t *testing.T) { f.run(t, a) })
	}
	t.Run("idle waiter granted as its follower is cut off", func(t *testing.T) { testIdleWaiter(t, a) })
}

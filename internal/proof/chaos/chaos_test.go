//go:build linux

package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// clientCount is the number of client processes. Every second one has a watchdog.
	clientCount = 4
	// ciBurstCount is the number of bursts that together contain every kind of fault. Up to
	// maxCIBursts are run if some kinds found no target.
	ciBurstCount = 2
	maxCIBursts  = 6
	// burstSpread is the period in which the faults of a burst begin.
	burstSpread = 4 * time.Second
)

// TestChaos injects bursts of faults. After each burst it checks the histories of all recipes: no
// two holders, no lost item.
func TestChaos(t *testing.T) {
	disk := 1024
	if *duration == 0 {
		disk = 128
	}
	kinds := faultKinds
	var leftOut []string
	if !canMountDisks() {
		require.NotEqual(t, "true", os.Getenv("CI"),
			"a full disk cannot be injected: with CI=true, run the test as root")
		leftOut, disk = []string{diskFull + " (a disk of its own needs root)"}, 0
		kinds = slices.DeleteFunc(slices.Clone(faultKinds), func(k faultKind) bool { return k.name == diskFull })
		t.Log("left out:", strings.Join(leftOut, ", "))
	}
	r := newHarness(t, *seedFlag, disk)
	r.summary.OmittedFaults = append(r.summary.OmittedFaults, leftOut...)
	r.env.connectObserver(t)
	for i := range clientCount {
		r.env.startClient(t, []string{roleWorker, roleWatchdog}[i%2], r.rng.Uint64(), 0, 1, 2)
	}
	r.runBursts(&faultPicker{rand: r.rng, kinds: kinds})
	r.stopClients()
	r.printSummary()
	if *duration == 0 && !t.Failed() { // a violation ends the run early
		require.Empty(t, r.notInjected(kinds), "every kind of fault must have been injected")
	}
}

// notInjected returns the kinds of which no fault was injected so far.
func (r *harness) notInjected(kinds []faultKind) []faultKind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k faultKind) bool { return r.summary.Faults[k.name] > 0 })
}

// runBursts runs bursts until the time is over, a check fails, or an interrupt arrives.
func (r *harness) runBursts(picker *faultPicker) {
	ctx, stop := signal.NotifyContext(r.t.Context(), os.Interrupt)
	defer stop()
	for n := 1; ctx.Err() == nil && r.hasNextBurst(n, picker.kinds); n++ {
		size := (len(picker.kinds) + ciBurstCount - 1) / ciBurstCount
		if *duration > 0 {
			size = 1 + r.rng.IntN(size)
		} else if n > ciBurstCount {
			picker.remaining = r.notInjected(picker.kinds)
			size = min(size, len(picker.remaining))
		}
		faults := picker.newBurst(size, burstSpread)
		var names []string
		for _, f := range faults {
			names = append(names, f.name)
		}
		r.showProgress(strings.Join(names, ", "))
		began := time.Now()
		wrong := r.runBurst(ctx, n, faults, progressGoals())
		if !r.interactive {
			fmt.Fprintf(os.Stderr, "burst %d, %v: %s; %s\n", n, time.Since(began).Round(100*time.Millisecond),
				strings.Join(names, ", "), r.summary.progressLine())
		}
		if len(wrong) > 0 {
			r.reportViolations(wrong)
			return
		}
	}
}

// hasNextBurst reports whether another burst follows. A short run ends when every kind was
// injected, not after a given time: so a slow machine injects as many kinds of faults as a fast
// one.
func (r *harness) hasNextBurst(burst int, kinds []faultKind) bool {
	if *duration == 0 {
		return burst <= ciBurstCount || burst <= maxCIBursts && len(r.notInjected(kinds)) > 0
	}
	return burst == 1 || time.Since(r.summary.began) < *duration
}

// TestShortRunInjectsEveryKindOfFault checks that a short run continues until every kind was
// injected, and ends if some kind cannot be.
func TestShortRunInjectsEveryKindOfFault(t *testing.T) {
	if *duration > 0 {
		t.Skip("a long run ends by the clock")
	}
	r, kinds := &harness{summary: newSummary(1)}, faultKinds[:3]
	require.True(t, r.hasNextBurst(ciBurstCount, kinds))
	for _, k := range kinds {
		require.True(t, r.hasNextBurst(maxCIBursts, kinds))
		require.False(t, r.hasNextBurst(maxCIBursts+1, kinds))
		require.Equal(t, k.name, r.notInjected(kinds)[0].name)
		r.summary.addFault(k.name)
	}
	require.True(t, r.hasNextBurst(ciBurstCount, kinds))
	require.False(t, r.hasNextBurst(ciBurstCount+1, kinds))
}

// TestFaultWaitsForItsTarget checks that a fault waits while another fault has its target.
func TestFaultWaitsForItsTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, sum := time.Now(), newSummary(1)
		taken := faultKind{name: "late", inject: func(*testEnv, *rand.Rand) (func() error, error) {
			if time.Since(began) < 30*time.Second {
				return nil, nil
			}
			return func() error { return nil }, nil
		}}
		require.NoError(t, scheduledFault{faultKind: taken}.run(t.Context(), &testEnv{history: newHistory(sum)}, sum))
		require.Equal(t, 1, sum.Faults["late"])
		never := faultKind{name: "never", inject: func(*testEnv, *rand.Rand) (func() error, error) { return nil, nil }}
		require.NoError(t, scheduledFault{faultKind: never}.run(t.Context(), &testEnv{history: newHistory(sum)}, sum))
		require.Zero(t, sum.Faults["never"])
	})
}

// TestNaiveHoldersAreCaught runs naive holders in the same harness: they trust their client
// library. Without a fault the history is valid. When the follower of one holder is cut off from
// its leader, there are two holders, and the model must report them. Both give the same ids while
// they hold, and take the same steps of a run, and the checkers must report that, too. If the
// machine stalls for longer than the session timeout, there may be two naive holders without the
// fault, or none under it: then the test begins again.
func TestNaiveHoldersAreCaught(t *testing.T) {
	for try := 1; ; try++ {
		var result error
		t.Run(fmt.Sprint("try ", try), func(t *testing.T) { result = catchNaiveHolders(t) })
		if result == nil || t.Failed() {
			return
		}
		require.Less(t, try, 4, "%v", result)
		t.Log(result)
	}
}

// catchNaiveHolders returns an error if the checks report a violation without the fault, or other
// than four violations under it.
func catchNaiveHolders(t *testing.T) error {
	r := newHarness(t, *seedFlag, 0)
	r.naiveServers = r.env.Followers()
	for _, f := range r.naiveServers {
		r.env.startClient(t, roleNaive, r.rng.Uint64(), f)
	}
	if wrong := r.runBurst(t.Context(), 1, nil, nil); len(wrong) > 0 {
		r.checker.removeEvidence()
		r.stopClients()
		return fmt.Errorf("without a fault: %w", errors.Join(wrong...))
	}
	cut := scheduledFault{faultKind: faultKind{name: "the holder's follower cut off", inject: r.cutOffNaiveHolder},
		duration: 2*sessionTimeout + sessionTimeout/4, rand: r.rng}
	wrong := r.runBurst(t.Context(), 2, []scheduledFault{cut}, nil)
	if len(wrong) != 4 {
		r.checker.removeEvidence()
		r.stopClients()
		return fmt.Errorf("%d violations under the fault: %w", len(wrong), errors.Join(wrong...))
	}
	require.ErrorContains(t, wrong[0], naivePath+": no order explains")
	require.ErrorContains(t, wrong[1], "which was given before")
	require.ErrorContains(t, wrong[2], "naive is executed by")
	require.ErrorContains(t, wrong[3], "of naive has returned")
	r.checker.requireEvidence(t, naivePath)
	r.stopClients()
	return nil
}

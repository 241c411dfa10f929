//go:build linux

package chaos

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// processes are the clients. Every second one has a watchdog.
	processes = 4
	// ciBursts have every kind of fault between them.
	ciBursts = 2
	// spread is the time in which the faults of a burst begin.
	spread = 4 * time.Second
)

// TestChaos lets bursts of faults happen, and checks after each that nothing was held twice and nothing was lost.
func TestChaos(t *testing.T) {
	disk := 1024
	if *duration == 0 {
		disk = 128
	}
	kinds := troubles
	var leftOut []string
	if !mayMount() {
		leftOut, disk = []string{diskFull + " (a disk of its own needs root)"}, 0
		kinds = slices.DeleteFunc(slices.Clone(troubles), func(k trouble) bool { return k.name == diskFull })
		t.Log("left out:", strings.Join(leftOut, ", "))
	}
	r := newRun(t, *seedFlag, disk)
	r.tally.LeftOut = append(r.tally.LeftOut, leftOut...)
	r.arena.watch(t)
	for i := range processes {
		r.arena.enlist(t, []string{worker, guarded}[i%2], r.rand.Uint64(), 0, 1, 2)
	}
	r.storm(&deck{rand: r.rand, all: kinds})
	r.end()
	r.report()
	if *duration == 0 {
		require.Greater(t, len(r.tally.Faults), len(kinds)*2/3, "most kinds of faults have happened")
	}
}

// storm is burst after burst until the time is over, a promise is broken, or somebody interrupts.
func (r *run) storm(d *deck) {
	ctx, stop := signal.NotifyContext(r.t.Context(), os.Interrupt)
	defer stop()
	for n := 1; ctx.Err() == nil && r.goesOn(n); n++ {
		size := (len(d.all) + ciBursts - 1) / ciBursts
		if *duration > 0 {
			size = 1 + r.rand.IntN(size)
		}
		blows := d.burst(size, spread)
		var names []string
		for _, b := range blows {
			names = append(names, b.name)
		}
		r.progress(strings.Join(names, ", "))
		began := time.Now()
		wrong := r.burst(ctx, n, blows, goals())
		if !r.show {
			fmt.Fprintf(os.Stderr, "burst %d, %v: %s; %s\n", n, time.Since(began).Round(100*time.Millisecond), strings.Join(names, ", "), r.tally.line())
		}
		if len(wrong) > 0 {
			r.fail(wrong)
			return
		}
	}
}

func (r *run) goesOn(burst int) bool {
	if *duration == 0 {
		return burst <= ciBursts
	}
	return burst == 1 || time.Since(r.tally.began) < *duration
}

// TestNaiveHoldersAreCaught lets holders that trust their client library go through the same harness. All goes well
// without a fault; when the follower of one is cut off from its leader, there are two, and the model must say so.
func TestNaiveHoldersAreCaught(t *testing.T) {
	r := newRun(t, *seedFlag, 0)
	r.homes = r.arena.Followers()
	for _, f := range r.homes {
		r.arena.enlist(t, naive, r.rand.Uint64(), f)
	}
	require.Empty(t, r.burst(t.Context(), 1, nil, nil))
	cut := blow{trouble: trouble{name: "the holder's follower cut off", strike: r.cutHolder}, last: 2*timeout + timeout/4, rand: r.rand}
	wrong := r.burst(t.Context(), 2, []blow{cut}, nil)
	require.Len(t, wrong, 1)
	require.ErrorContains(t, wrong[0], naivePath+": no order explains")
	r.judge.shows(t, naivePath)
	r.end()
}

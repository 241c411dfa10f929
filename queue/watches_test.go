package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWatchesDoNotGrowWithSegments: a ticket waits for an item whose number its segment's end has
// made void, and consumers that die leave such holes for the recoverer to watch. Their watches once
// stayed as long as the session.
func TestWatchesDoNotGrowWithSegments(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, segmentSize(3), WithMaxInFlight(4))
		const items = 4 // more than a segment has
		lose := func(name string) {
			b := w.member(name, order, segmentSize(3), WithMaxInFlight(items))
			mine, theirs := make(chan string), make(chan error)
			go func() { mine <- a.drain(1)[0] }()
			time.Sleep(time.Second)
			for range items {
				go func() {
					_, err := b.Take(within(t, time.Hour))
					theirs <- err
				}()
			}
			time.Sleep(time.Second)
			b.kill()
			for range items {
				require.Error(t, <-theirs)
			}
			time.Sleep(2 * timeout)
			a.put(names(0, items)...)
			require.ElementsMatch(t, names(0, items), append([]string{<-mine}, a.drain(items-1)...))
		}
		lose("first")
		time.Sleep(time.Second)
		before := len(w.Watches())
		for i := range 20 {
			lose(fmt.Sprint("b", i))
		}
		time.Sleep(time.Second)
		require.LessOrEqual(t, len(w.Watches()), before+4)
	})
}

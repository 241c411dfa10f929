package election_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/zktest"
)

// storm lets members of all kinds lead one another's terms away for hours, while their links are
// hurt: with priorities, sick ones, ends of terms, transfers.
func storm(t *testing.T, w *world, seed uint64) {
	const members = 6
	var running, terms, last, number atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	links := make([]*zktest.Link, members)
	for i := range members {
		m := w.member(fmt.Sprint("m", i))
		links[i] = m.link
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		var sick atomic.Bool
		options := [][]election.Option{
			nil,
			{election.WithPriority(i, 20*time.Second), election.WithMinTerm(5 * time.Second)},
			{election.WithHealth(func(context.Context) error {
				if sick.Load() {
					return errors.New("sick")
				}
				return nil
			}, time.Second)},
			{election.WithMaxTerm(time.Minute), election.WithMetadata(map[string]string{"i": fmt.Sprint(i)})},
			{election.WithStepDown(election.AtSuspended)},
			{election.WithPriority(i, 0), election.WithMaxTerm(2 * time.Minute)},
		}[i]
		e := election.New(m.client, path, options...)
		all.Go(func() {
			err := e.Lead(ctx, func(ctx context.Context, term *election.Term) error {
				if n := running.Add(1); n != 1 {
					t.Errorf("%d members lead", n)
				}
				defer running.Add(-1)
				if before := last.Swap(term.Token()); before >= term.Token() {
					t.Errorf("token %d after %d", term.Token(), before)
				}
				if before := number.Swap(term.Number()); before >= term.Number() {
					t.Errorf("term %d after %d", term.Number(), before)
				}
				terms.Add(1)
				sick.Store(r.IntN(3) == 0)
				defer sick.Store(false)
				select {
				case <-ctx.Done():
				case <-time.After(time.Duration(r.Int64N(int64(2 * time.Minute)))):
				}
				if r.IntN(2) == 0 {
					_ = term.TransferTo(ctx, fmt.Sprint("m", r.IntN(members)))
				} else {
					_ = term.SetMetadata(ctx, map[string]string{"r": fmt.Sprint(r.Int())})
				}
				return nil
			})
			if err != nil {
				t.Errorf("Lead ended: %v", err)
			}
		})
	}
	r := rand.New(rand.NewPCG(seed, 78))
	for range 200 {
		time.Sleep(time.Duration(r.Int64N(int64(20 * time.Second))))
		hurt(w, r, links[r.IntN(members)])
	}
	for _, l := range links {
		l.Heal()
	}
	time.Sleep(5 * time.Minute)
	for pauses := 0; pauses < 60 && len(w.Children(path)) < members; pauses++ {
		time.Sleep(time.Second) // after a brief term, a member pauses before it stands again
	}
	require.Len(t, w.Children(path), members, "all are in line")
	cancel()
	all.Wait()
	time.Sleep(timeout)
	synctest.Wait()
	require.Empty(t, w.Children(path), "nothing is left behind")
	require.Empty(t, w.Children(path+"~waiting"))
	require.Greater(t, terms.Load(), int64(30))
}

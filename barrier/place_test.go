package barrier

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestPlaceOfLostSessionIsReadFromServers: a round has begun with the member, and is over. Another
// member of this DoubleBarrier has guessed the base, which is too low, since the first number was a
// dead one's: by that the place was never let in.
func TestPlaceOfLostSessionIsReadFromServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "m", framework.Config{})
		b := NewDoubleBarrier(m.Client, "/b", 2)
		ended, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			cancel()
		}()
		_, err := b.Enter(ended) // number 0
		require.ErrorIs(t, err, context.Canceled)

		s, err := m.Session(t.Context())
		require.NoError(t, err)
		rounds := make(chan *Round, 2)
		for range 2 { // numbers 1 and 2
			go func() {
				r, err := b.Enter(t.Context())
				if err != nil {
					t.Error(err)
				}
				rounds <- r
			}()
		}
		first, second := <-rounds, <-rounds
		go func() { _ = first.Leave(t.Context()) }()
		require.NoError(t, second.Leave(t.Context()))
		truth, err := b.stored.readStateUncached(t.Context(), s)
		require.NoError(t, err)
		require.EqualValues(t, 3, truth.base)

		guessed := truth
		guessed.base = 2
		b.stored.cacheState(guessed)
		lost := &roundMember{b: &b.stored, s: s,
			memberNode: memberNode{data: []byte("{}"), node: primitives.Created{Path: truth.memberPath(2)}, number: 2,
				memberDirectory: truth.memberDirectory}}
		require.ErrorIs(t, lost.removeFormerNode(t.Context(), s), errMayBeInside)
	})
}

// TestEndOfARoundOfARemadeBarrier: the last member's request for the end of its round arrives when
// the barrier has been deleted and made again, with a round of the same phase inside.
func TestEndOfARoundOfARemadeBarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "m", framework.Config{})
		s, err := m.Session(t.Context())
		require.NoError(t, err)
		former := NewDoubleBarrier(m.Client, "/b", 1)
		_, err = former.Enter(t.Context())
		require.NoError(t, err)
		inside := former.stored.cachedState()
		tree := zk.Tree("/b")
		for i := range tree {
			require.NoError(t, s.Delete(t.Context(), tree[len(tree)-1-i].Path, framework.AnyVersion))
		}
		r, err := NewDoubleBarrier(m.Client, "/b", 1).Enter(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, former.stored.endRound(t.Context(), s, inside), recipe.ErrAgain)
		n, _ := zk.Node("/b")
		require.Equal(t, inside.phase, n.Stat.Version, "the present round is inside")
		require.NoError(t, r.Leave(t.Context()))
	})
}

package waitline

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/zktest"
)

// joined adds contenders to the line in /a, and returns their entries.
func joined(t *testing.T, s *framework.Session, n int) (entries []Entry) {
	t.Helper()
	for i := range n {
		data := fmt.Append(nil, i)
		created, err := primitives.Of(s).CreateProtected(t.Context(),
			primitives.ProtectedCreate{Dir: "/a", Name: string(Mutex), Data: data})
		require.NoError(t, err)
		entries = append(entries,
			Entry{Node: created.Nodes[0].Path, Token: created.Nodes[0].Zxid, Session: s.ID(), Data: data})
	}
	return entries
}

// TestALineIsListedInFewRequests lists 300 contenders on a session that has read nothing: a list,
// and requests for 4, 256 and the other contenders. The next time it takes one.
func TestALineIsListedInFewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		client := zk.Member(t, "a", framework.Config{}).Client
		s, err := client.Session(t.Context())
		require.NoError(t, err)
		want := joined(t, s, 300)
		for _, requests := range []int64{3, 1} {
			before := zk.Requests()
			got, err := New("/a", Filter{Kind: Mutex}, nil).List(t.Context(), client)
			require.NoError(t, err)
			require.Equal(t, want, got)
			after := zk.Requests()
			require.Equal(t, requests, after[zktest.OpMultiRead]-before[zktest.OpMultiRead])
			require.EqualValues(t, 1, after[zktest.OpGetChildren2]-before[zktest.OpGetChildren2])
			require.Equal(t, before[zktest.OpGetData], after[zktest.OpGetData])
		}
	})
}

// TestContendersThatLeaveWhileTheLineIsListedAreLeftOut: one leaves between the list and the reads.
func TestContendersThatLeaveWhileTheLineIsListedAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		client := zk.Member(t, "a", framework.Config{}).Client
		s, err := client.Session(t.Context())
		require.NoError(t, err)
		all := joined(t, s, 3)
		delay := zk.DelayReplies(time.Second, zktest.Match{Op: zktest.OpGetChildren2})
		defer delay.Cancel()
		time.AfterFunc(time.Second/2, func() { <-primitives.Of(s).Discard(nil, all[1].Node).Done() })
		got, err := New("/a", Filter{Kind: Mutex}, nil).List(t.Context(), client)
		require.NoError(t, err)
		require.Equal(t, []Entry{all[0], all[2]}, got)
	})
}

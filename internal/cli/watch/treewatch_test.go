package watch

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestRootsThatAreCreatedDuringTheLook between the two requests of a look do not block the watch,
// not even with the smallest --most.
func TestRootsThatAreCreatedDuringTheLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		other := zk.Member(t, "a", framework.Config{SessionTimeout: 10 * time.Second}).Client
		s, err := zk.Member(t, "b", framework.Config{SessionTimeout: 10 * time.Second}).Session(t.Context())
		require.NoError(t, err)
		missed := make(chan string, 100)
		zk.DelayReplies(time.Second, zktest.Match{Session: s.ID(), Func: func(r zktest.Request) bool {
			isMissed := r.Op == zktest.OpGetData && r.Err != 0
			if isMissed {
				missed <- r.Path
			}
			return isMissed
		}})
		go func() {
			for path := range missed {
				// the test sees whether it is there
				_ = other.Create(context.Background(), path, nil, framework.Persistent)
			}
		}()
		defer close(missed)
		w := &treeWatcher{streams: &cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, root: "/app", most: 1,
			known: map[string]*watchedNode{},
			print: func(nodeChange) error { return nil }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- w.watchOnSession(ctx, s) }()
		select {
		case err := <-ended:
			require.ErrorIs(t, err, context.DeadlineExceeded)
		case <-time.After(time.Hour):
			require.Fail(t, "it ignores the end of its context")
		}
		require.Len(t, w.known, len(w.roots()))
	})
}

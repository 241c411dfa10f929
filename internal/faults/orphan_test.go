package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/ensemble"
	"github.com/lockstep-go/lockstep/locks"
)

// wantNobody waits until no contender is left at any of the paths.
func wantNobody(t *testing.T, c *framework.Client, paths ...string) {
	t.Helper()
	for _, path := range paths {
		eventually(t, func() error {
			names, _, err := c.Children(t.Context(), path)
			if errors.Is(err, framework.ErrNoNode) {
				return nil
			}
			return errors.Join(err, want("no contender at "+path, len(names) == 0, names))
		})
	}
}

// testKilledProcesses kills processes with SIGKILL at random points of their acquires.
func testKilledProcesses(t *testing.T, a *arena) {
	paths := []string{"/" + t.Name() + "/a", "/" + t.Name() + "/b"}
	c := client(t, a.at(0, 1, 2))
	left := 0
	for range 3 { // the later ones meet what the earlier ones have left
		children := make([]*child, 3)
		for i := range children {
			children[i] = spawn(t, a, "acquirer", pathVariable+"="+paths[0]+","+paths[1])
		}
		for _, c := range children {
			c.hear(t, "ready")
		}
		for _, c := range children {
			pass(t, upTo(200*time.Millisecond))
			c.kill()
		}
		for _, path := range paths {
			contenders, err := locks.NewMutex(c, path).Contenders(t.Context())
			require.NoError(t, err)
			left += len(contenders)
		}
	}
	require.Positive(t, left, "no process was killed while it was in a line")
	wantNobody(t, c, paths...)
	for _, path := range paths {
		lease, err := locks.NewMutex(c, path).TryLock(t.Context())
		require.NoError(t, err)
		require.NoError(t, lease.Release(t.Context()))
	}
}

// storm is a client whose connections are reset at random, and often just after the server has
// acted on what it will never hear the answer to.
type storm struct {
	client *framework.Client
	proxy  *ensemble.Proxy
	resets atomic.Int64
}

// blow loses replies until ctx ends: of a create, then sometimes of the look-up that follows.
func (s *storm) blow(ctx context.Context) {
	wait := func(d time.Duration) { <-time.After(d) }
	for ctx.Err() == nil {
		wait(upTo(80 * time.Millisecond))
		for again := true; again; again = rand.N(3) == 0 {
			s.proxy.Hold(ensemble.Down)
			wait(upTo(15 * time.Millisecond))
			s.proxy.Reset()
			s.proxy.Release(ensemble.Down)
			s.resets.Add(1)
			wait(upTo(20 * time.Millisecond))
		}
	}
}

// harvest counts how acquires in a storm have ended.
type harvest struct{ granted, timedOut atomic.Int64 }

// testLostReplies ends contexts at random microseconds of acquires in a storm. The sessions live
// through it, so that only the client itself can clean up.
func testLostReplies(t *testing.T, a *arena) {
	const clients, goroutines, locksTried = 2, 6, 3
	var paths []string
	for i := range locksTried {
		paths = append(paths, fmt.Sprintf("/%s/%d", t.Name(), i))
	}
	storms := make([]*storm, clients)
	for i := range storms {
		storms[i] = newStorm(t, a, i)
	}
	var h harvest
	for round := range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		require.NoError(t, together(clients*(goroutines+1), func(i int) error {
			s := storms[i%clients]
			if i < clients {
				s.blow(ctx)
				return nil
			}
			return h.reap(ctx, s.client, paths)
		}))
		cancel()
		wantNobody(t, storms[round%clients].client, paths...)
	}
	for i, s := range storms {
		session, err := s.client.Session(t.Context())
		require.NoError(t, err)
		t.Logf("client %d: %d resets, %d sessions", i, s.resets.Load(), session.Epoch())
	}
	t.Logf("%d grants, %d timed out", h.granted.Load(), h.timedOut.Load())
	require.Positive(t, h.granted.Load())
	require.Positive(t, h.timedOut.Load())
}

func newStorm(t *testing.T, a *arena, i int) *storm {
	t.Helper()
	s := &storm{proxy: a.proxy(t, i)}
	cfg := config(s.proxy.Addr())
	cfg.SessionTimeout = longTimeout
	s.client = client(t, cfg)
	return s
}

// reap acquires until ctx ends. A token must be the transaction that created the lease's node, even
// when the create's reply was lost.
func (h *harvest) reap(ctx context.Context, c *framework.Client, paths []string) error {
	for ctx.Err() == nil {
		patient := 60 * time.Millisecond
		if rand.N(8) == 0 { // so that some are granted on a slow machine too
			patient = time.Second
		}
		waiting, cancel := context.WithTimeout(ctx, upTo(patient))
		lease, err := locks.NewMutex(c, paths[rand.N(len(paths))]).Lock(waiting)
		cancel()
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			h.timedOut.Add(1)
			continue
		case err != nil:
			return err
		}
		h.granted.Add(1)
		if err := errors.Join(wantCzxid(ctx, c, lease), lease.Release(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// wantCzxid compares a lease's token with its node, unless ctx or the lease has ended.
func wantCzxid(ctx context.Context, c *framework.Client, lease *locks.Lease) error {
	st, err := c.Exists(ctx, lease.Node())
	if ctx.Err() != nil || lease.Err() != nil {
		return nil
	}
	return errors.Join(err, want(fmt.Sprintf("czxid %#x of %s", lease.Token(), lease.Node()), err != nil || st.Czxid == lease.Token(), st.Czxid))
}

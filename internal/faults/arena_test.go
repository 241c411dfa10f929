package faults

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/ensemble"
)

const (
	// timeout is T: eight ticks of the servers.
	timeout = 4 * time.Second
	// longTimeout is the longest that the servers grant.
	longTimeout = 10 * time.Second
	// patience bounds every wait; only a broken promise or a dead machine uses it up.
	patience = 2 * time.Minute
)

// credentials are for servers that want some.
var credentials = []framework.Credential{{Scheme: "digest", Auth: []byte("user:secret")}}

// arena is the ensemble that all tests share.
type arena struct{ *ensemble.Ensemble }

// roles are the servers as one fault sees them.
type roles struct{ leader, follower, other int }

// roles draws who is who; the leader may be another than the last time.
func (a *arena) roles(t *testing.T) roles {
	t.Helper()
	var r roles
	began := time.Now()
	require.Eventually(t, func() bool {
		if time.Since(began) > patience/4 { // a server has not come back from an earlier fault by itself
			a.restartSilent(t)
			began = time.Now()
		}
		followers := a.Followers()
		if len(followers) != 2 {
			return false
		}
		rand.Shuffle(2, func(i, k int) { followers[i], followers[k] = followers[k], followers[i] })
		r = roles{a.Leader(), followers[0], followers[1]}
		return r.leader >= 0
	}, patience, 20*time.Millisecond, "a leader and two followers")
	return r
}

// restartSilent starts the servers again that serve nobody: what is tested here is the client.
func (a *arena) restartSilent(t *testing.T) {
	for i := range a.Size() {
		if a.Mode(i) == "" {
			t.Logf("server %d serves nobody: it is started again", i)
			_ = a.Kill(i) // it may have ended by itself
			require.NoError(t, a.Restart(i))
		}
	}
}

// at is the configuration of a client that knows these servers only.
func (a *arena) at(servers ...int) framework.Config {
	var addrs []string
	for _, i := range servers {
		addrs = append(addrs, a.Addr(i))
	}
	return config(addrs...)
}

func config(addrs ...string) framework.Config {
	return framework.Config{Servers: addrs, SessionTimeout: timeout, DialTimeout: timeout / 4}
}

// heal undoes every fault between servers and waits until all of them serve.
func (a *arena) heal(t *testing.T) {
	t.Helper()
	a.Heal()
	require.NoError(t, a.Await(context.Background())) // in a cleanup the test's own context is over
}

// proxy stands between clients and server i until the test ends.
func (a *arena) proxy(t *testing.T, i int) *ensemble.Proxy {
	t.Helper()
	p, err := ensemble.NewProxy(a.Addr(i))
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// connect returns a client that is closed after the test. It may be called from any goroutine.
func connect(t *testing.T, cfg framework.Config, opts ...framework.Option) (*framework.Client, error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	quiet := framework.WithLogger(slog.New(slog.DiscardHandler)) // losing sessions is the point here
	c, err := framework.Connect(ctx, cfg, append(opts, quiet)...)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return c, nil
}

// client is connect for the test's own goroutine.
func client(t *testing.T, cfg framework.Config) *framework.Client {
	t.Helper()
	c, err := connect(t, cfg)
	require.NoError(t, err)
	return c
}

// firstAt makes a client's first connection go to addr, whichever server it asks for.
func firstAt(addr string) framework.Option {
	var dialled atomic.Bool
	return framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if dialled.CompareAndSwap(false, true) {
			address = addr
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	})
}

// pass lets time pass, unless the test ends.
func pass(t *testing.T, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// upTo is a random time below d.
func upTo(d time.Duration) time.Duration { return rand.N(d) }

// together runs f n times at once and joins the errors.
func together(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// eventually polls until holds returns nil, and fails with its last error otherwise.
func eventually(t *testing.T, holds func() error) {
	t.Helper()
	var last error
	for end := time.Now().Add(patience); time.Now().Before(end); pass(t, 20*time.Millisecond) {
		if last = holds(); last == nil {
			return
		}
	}
	require.NoError(t, last)
}

// want is an error that says how got differs from what is awaited, or nil.
func want(what string, ok bool, got any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("want %s, there is %v", what, got)
}

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
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

const (
	// sessionTimeout is T: eight ticks of the servers.
	sessionTimeout = 4 * time.Second
	// maxSessionTimeout is the longest session timeout that the servers accept.
	maxSessionTimeout = 10 * time.Second
	// waitLimit bounds every wait. Only a violation or a stalled machine reaches it.
	waitLimit = 2 * time.Minute
)

// credentials are for servers with ACLs or enforced authentication.
var credentials = []framework.Credential{{Scheme: "digest", Auth: []byte("user:secret")}}

// testEnv is an ensemble, and where the faults are injected in it.
type testEnv struct {
	*ensemble.Ensemble
	onObserver   bool // the faults' follower is the observer
	behindMaster bool // the faults' follower is the one that the observer gets its packets from
}

// serverRoles are the indexes of the leader and the two followers during one fault.
type serverRoles struct{ leader, follower, other int }

// chooseRoles waits for a leader and two followers, and assigns the roles. It chooses the followers
// at random. The leader may have changed since the last call.
func (env *testEnv) chooseRoles(t *testing.T) serverRoles {
	t.Helper()
	var r serverRoles
	began := time.Now()
	eventually(t, func() error { // in this goroutine, since restartSilent may fail the test
		if time.Since(began) > waitLimit/4 { // a server did not recover from an earlier fault
			env.restartSilent(t)
			began = time.Now()
		}
		followers := env.Followers()
		if len(followers) != 2 {
			return mismatch("two followers", false, followers)
		}
		rand.Shuffle(2, func(i, k int) { followers[i], followers[k] = followers[k], followers[i] })
		if env.behindMaster && env.Master(observerServer) == followers[1] {
			followers[0], followers[1] = followers[1], followers[0]
		}
		r = serverRoles{env.Leader(), followers[0], followers[1]}
		if env.onObserver {
			r.follower = observerServer
		}
		return mismatch("a leader, and the observer behind the follower", r.leader >= 0 &&
			(!env.behindMaster || env.Master(observerServer) == r.follower), r)
	})
	return r
}

// restartSilent restarts the servers that do not serve. The servers' recovery is not under test.
func (env *testEnv) restartSilent(t *testing.T) {
	for i := range env.Size() {
		if env.Mode(i) == "" {
			t.Logf("server %d does not serve: restarting it", i)
			_ = env.Kill(i) // fails if it has ended
			require.NoError(t, env.Restart(i))
		}
	}
}

// clientConfig returns the configuration of a client that knows these servers only.
func (env *testEnv) clientConfig(servers ...int) framework.Config {
	var addrs []string
	for _, i := range servers {
		addrs = append(addrs, env.Addr(i))
	}
	return config(addrs...)
}

func config(addrs ...string) framework.Config {
	return framework.Config{Servers: addrs, SessionTimeout: sessionTimeout, DialTimeout: sessionTimeout / 4}
}

// healAndAwait heals all links between servers and waits until all servers serve.
func (env *testEnv) healAndAwait(t *testing.T) {
	t.Helper()
	env.Heal()
	require.NoError(t, env.Await(context.Background())) // the test's context has ended in a cleanup
}

// newProxy returns a proxy to server i that is closed after the test.
func (env *testEnv) newProxy(t *testing.T, i int) *ensemble.Proxy {
	t.Helper()
	p, err := ensemble.NewProxy(env.Addr(i))
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// connect returns a client that is closed after the test. It may be called in any goroutine.
func connect(t *testing.T, cfg framework.Config, opts ...framework.Option) (*framework.Client, error) {
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	quiet := framework.WithLogger(slog.New(slog.DiscardHandler)) // lost sessions are expected here
	c, err := framework.Connect(ctx, cfg, append(opts, quiet)...)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		err := c.Close(ctx)
		// the fault may last
		unreachable := errors.Is(err, framework.ErrUnconfirmed) && !errors.Is(err, context.DeadlineExceeded)
		if err != nil && !unreachable {
			t.Error(err)
		}
	})
	return c, nil
}

// mustConnect connects, and fails the test after an error. It must be called in the test's
// goroutine.
func mustConnect(t *testing.T, cfg framework.Config) *framework.Client {
	t.Helper()
	c, err := connect(t, cfg)
	require.NoError(t, err)
	return c
}

// syncWithOthers lets a client's server apply all writes that other clients have made before,
// perhaps on servers that are ahead of it.
func syncWithOthers(t *testing.T, c *framework.Client) {
	t.Helper()
	session, err := c.Session(t.Context())
	require.NoError(t, err)
	require.NoError(t, session.Sync(t.Context(), "/"))
}

// withFirstServer lets a client connect to addr first.
func withFirstServer(addr string) framework.Option {
	var dialled atomic.Bool
	return framework.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if dialled.CompareAndSwap(false, true) {
			address = addr
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	})
}

// wait waits for d, or until the test ends.
func wait(t *testing.T, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// randomBelow returns a random duration below d.
func randomBelow(d time.Duration) time.Duration { return rand.N(d) }

// runConcurrently runs f in n goroutines and joins the errors.
func runConcurrently(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// eventually polls condition until it returns nil. After waitLimit it fails with the last error.
func eventually(t *testing.T, condition func() error) {
	t.Helper()
	var last error
	for end := time.Now().Add(waitLimit); time.Now().Before(end); wait(t, 20*time.Millisecond) {
		if last = condition(); last == nil {
			return
		}
	}
	require.NoError(t, last)
}

// mismatch returns nil if ok is true, otherwise an error with the wanted and the actual value.
func mismatch(what string, ok bool, got any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("want %s, got %v", what, got)
}

package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type silent struct{}

func (silent) Printf(string, ...any) {}

var openACL = zk.WorldACL(zk.PermAll)

// client is a go-zookeeper client on a link of its own.
type client struct {
	*zk.Conn
	t      *testing.T
	link   *zktest.Link
	events <-chan zk.Event
}

// connect makes a client and waits for its session.
func connect(t *testing.T, srv *zktest.Server, name string, timeout time.Duration) *client {
	t.Helper()
	link := srv.Link(name)
	events := make(chan zk.Event, 1<<16) // the library's own channel drops events while a test does not read it
	conn, _, err := zk.Connect(srv.Servers(), timeout, zk.WithDialer(link.Dial), zk.WithLogger(silent{}),
		zk.WithEventCallback(func(e zk.Event) { events <- e }))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	c := &client{Conn: conn, t: t, link: link, events: events}
	c.await(zk.StateHasSession)
	return c
}

func (c *client) await(state zk.State) {
	c.t.Helper()
	for e := range c.events {
		if e.State == state {
			return
		}
	}
	c.t.Fatalf("never %v", state)
}

func (c *client) create(path string, flags int32) {
	c.t.Helper()
	_, err := c.Create(path, nil, flags, openACL)
	require.NoError(c.t, err)
}

func (c *client) exists(path string) bool {
	c.t.Helper()
	found, _, err := c.Exists(path)
	require.NoError(c.t, err)
	return found
}

// deletion is a watch for the end of a node that exists.
func (c *client) deletion(path string) <-chan zk.Event {
	c.t.Helper()
	found, _, gone, err := c.ExistsW(path)
	require.NoError(c.t, err)
	require.True(c.t, found)
	return gone
}

// bubble runs a test in virtual time, with a server whose sessions end exactly.
func bubble(t *testing.T, test func(*testing.T, *zktest.Server)) {
	synctest.Test(t, func(t *testing.T) { test(t, zktest.Start(t, zktest.WithExactExpiry())) })
}

func TestSessionExpiresItsTimeoutAfterTheLastPacket(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", 9*time.Second), connect(t, srv, "b", 9*time.Second)
		a.create("/mine", zk.FlagEphemeral)
		lastPacket := time.Now()
		gone := b.deletion("/mine")

		a.link.BlackHole(true, true)
		require.Equal(t, zk.EventNodeDeleted, (<-gone).Type)
		require.Equal(t, 9*time.Second, time.Since(lastPacket))
		a.link.Heal()
		a.await(zk.StateExpired)
	})
}

func TestSessionExpiryIsRoundedUpByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.WithTick(2*time.Second))
		start := time.Now()
		a, b := connect(t, srv, "a", 9*time.Second), connect(t, srv, "b", 9*time.Second)
		a.create("/mine", zk.FlagEphemeral)
		gone := b.deletion("/mine")
		a.link.BlackHole(true, true)
		<-gone
		require.Equal(t, 10*time.Second, time.Since(start))
		a.link.Heal()
	})
}

// An upward black hole alone: the server hears nothing, but what it says
// arrives.
func TestBlackHoleHoldsOneDirection(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", 9*time.Second), connect(t, srv, "b", 9*time.Second)
		a.create("/watched", 0)
		_, _, changed, err := a.GetW("/watched")
		require.NoError(t, err)
		a.link.BlackHole(true, false)
		_, err = b.Set("/watched", nil, -1)
		require.NoError(t, err)
		require.Equal(t, zk.EventNodeDataChanged, (<-changed).Type)

		a.link.Heal()
		a.link.BlackHole(false, true)
		created := make(chan error, 1)
		go func() {
			_, err := a.Create("/made", nil, 0, openACL)
			created <- err
		}()
		synctest.Wait()
		require.True(t, b.exists("/made"))
		require.Empty(t, created)
		a.link.BlackHole(false, false)
		require.NoError(t, <-created)
	})
}

func TestSessionMovesToANewConnection(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a := connect(t, srv, "a", 9*time.Second)
		a.create("/mine", zk.FlagEphemeral)
		id := a.SessionID()
		a.link.Reset()
		a.await(zk.StateDisconnected)
		a.await(zk.StateHasSession)
		require.Equal(t, id, a.SessionID())
		require.True(t, a.exists("/mine"))
		require.Equal(t, "a#2", srv.Sessions()[0].Remote)
		require.Equal(t, 2, a.link.Dials())
	})
}

func TestCreateIsAppliedWhenItsReplyIsDropped(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a := connect(t, srv, "a", 9*time.Second)
		a.create("/locks", 0)
		lost := srv.DropReply(1, zktest.Match{Op: zktest.OpCreate, Path: "/locks/"})
		_, err := a.Create("/locks/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, openACL)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		<-lost.Hit()
		a.await(zk.StateDisconnected)
		a.await(zk.StateHasSession)
		require.Len(t, srv.Children("/locks"), 1)
		require.Equal(t, framework.SessionID(a.SessionID()), srv.Tree("/locks")[1].Stat.EphemeralOwner)
	})
}

func TestClientsSurviveARestart(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a, b := connect(t, srv, "a", 9*time.Second), connect(t, srv, "b", 9*time.Second)
		a.create("/mine", zk.FlagEphemeral)
		gone := b.deletion("/mine")
		srv.Restart()
		a.await(zk.StateDisconnected)
		a.await(zk.StateHasSession)
		b.await(zk.StateHasSession)
		require.NoError(t, a.Delete("/mine", -1))
		require.Equal(t, zk.EventNodeDeleted, (<-gone).Type, "the client sets its watches again")
	})
}

func TestHalfOpenDialsAreNotAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a := connect(t, srv, "a", 9*time.Second)
		id := a.SessionID()
		a.link.HalfOpen(true)
		a.link.Reset()
		a.await(zk.StateConnected) // and no more: nobody answers the handshake
		time.Sleep(5 * time.Second)
		require.Equal(t, 2, a.link.Dials())
		require.Zero(t, srv.Connections())
		a.link.HalfOpen(false)
		a.await(zk.StateHasSession)
		require.Equal(t, id, a.SessionID())
	})
}

func TestCutRefusesDialsUntilHealed(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a := connect(t, srv, "a", 9*time.Second)
		a.link.Cut()
		a.await(zk.StateDisconnected)
		time.Sleep(8 * time.Hour)
		require.Empty(t, srv.Sessions())
		require.Greater(t, a.link.Dials(), 1000)
		a.link.Heal()
		a.await(zk.StateExpired)
		a.await(zk.StateHasSession)
	})
}

func TestAFrozenServerEndsOverdueSessionsWhenThawed(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a := connect(t, srv, "a", 9*time.Second)
		a.create("/mine", zk.FlagEphemeral)
		srv.Freeze()
		a.await(zk.StateDisconnected)
		time.Sleep(time.Hour)
		_, found := srv.Node("/mine")
		require.True(t, found)
		srv.Thaw()
		a.await(zk.StateExpired)
		_, found = srv.Node("/mine")
		require.False(t, found)
	})
}

func TestAShortFreezeIsOnlyADelay(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a := connect(t, srv, "a", 9*time.Second)
		srv.Freeze()
		start := time.Now()
		time.AfterFunc(2*time.Second, srv.Thaw)
		a.create("/a", 0)
		require.Equal(t, 2*time.Second, time.Since(start))
	})
}

func TestContainersAreReapedOnceTheyWereUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.WithContainerInterval(10*time.Second))
		a := connect(t, srv, "a", 9*time.Second)
		for _, path := range []string{"/used", "/fresh"} {
			_, err := a.CreateContainer(path, nil, zk.FlagContainer, openACL)
			require.NoError(t, err)
		}
		a.create("/used/child", 0)
		time.Sleep(time.Hour)
		require.True(t, a.exists("/used"))
		require.NoError(t, a.Delete("/used/child", -1))
		time.Sleep(11 * time.Second)
		require.False(t, a.exists("/used"))
		require.True(t, a.exists("/fresh"))
	})
}

func TestTTLNodesGoWhenUnchangedForTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.WithContainerInterval(time.Second), zktest.WithExtendedTypes())
		a := connect(t, srv, "a", 9*time.Second)
		_, err := a.CreateTTL("/ttl", nil, zk.FlagTTL, openACL, time.Minute)
		require.NoError(t, err)
		time.Sleep(50 * time.Second)
		_, err = a.Set("/ttl", nil, -1)
		require.NoError(t, err)
		time.Sleep(50 * time.Second)
		require.True(t, a.exists("/ttl"))
		time.Sleep(12 * time.Second)
		require.False(t, a.exists("/ttl"))
	})
}

func TestDelayIsOneWay(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		a := connect(t, srv, "a", 9*time.Second)
		a.link.Delay(100 * time.Millisecond)
		start := time.Now()
		a.create("/a", 0)
		require.Equal(t, 200*time.Millisecond, time.Since(start))
	})
}

func TestAVirtualDay(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		for _, name := range []string{"a", "b", "c"} {
			connect(t, srv, name, 9*time.Second).create("/"+name, zk.FlagEphemeral)
		}
		time.Sleep(24 * time.Hour)
		require.Equal(t, []string{"a", "b", "c", "zookeeper"}, srv.Children("/"))
		require.Equal(t, 3, srv.Connections())
		require.Greater(t, srv.Requests()[zktest.OpPing], int64(3*24*3600/9))
	})
}

package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type silent struct{}

func (silent) Printf(string, ...any) {}

// connect makes a go-zookeeper client on a link of its own and waits for its
// session.
func connect(t *testing.T, srv *zktest.Server, name string, timeout time.Duration) (*zk.Conn, *zktest.Link, <-chan zk.Event) {
	t.Helper()
	link := srv.Link(name)
	conn, events, err := zk.Connect(srv.Servers(), timeout, zk.WithDialer(link.Dial), zk.WithLogger(silent{}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			return conn, link, events
		}
	}
	t.Fatal("no session")
	return nil, nil, nil
}

func TestSessionExpiresItsTimeoutAfterTheLastPacket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.WithExactExpiry())
		a, link, _ := connect(t, srv, "a", 9*time.Second)
		b, _, _ := connect(t, srv, "b", 9*time.Second)
		_, err := a.Create("/mine", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		lastPacket := time.Now()
		_, _, gone, err := b.ExistsW("/mine")
		require.NoError(t, err)

		link.BlackHole(true, true)
		event := <-gone
		require.Equal(t, zk.EventNodeDeleted, event.Type)
		require.Equal(t, 9*time.Second, time.Since(lastPacket))
		link.Heal()
	})
}

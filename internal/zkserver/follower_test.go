package zkserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// onFollower runs a test with a client on a follower. The client's session of 10 s has an ephemeral
// node. The leader sends a PING each half second.
func onFollower(t *testing.T, test func(t *testing.T, s *Server, a *rawClient, hold func(toLeader, fromLeader bool))) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, Config{Tick: time.Second, ExactExpiry: true, Followers: true})
		st := newTestClients(t, s)
		a := st.joinFor("a", 10*time.Second)
		a.mustCall(wire.OpCreate, createRequest("/e", "", wire.FlagEphemeral))
		hold, err := s.Follower(a.session)
		require.NoError(t, err)
		test(t, s, a, hold)
		checkInvariants(t, s)
	})
}

func exists(s *Server, path string) bool {
	_, found := s.Node(path)
	return found
}

func (r *rawClient) ping() { r.mustCall(wire.OpPing, &wire.EmptyRequest{}) }

// pingFor sends a pair of pings every three seconds for a time.
func (r *rawClient) pingFor(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(3 * time.Second) {
		r.ping()
		r.ping()
	}
}

func TestAFollowerPassesItsRecordsOn(t *testing.T) {
	onFollower(t, func(t *testing.T, s *Server, a *rawClient, _ func(bool, bool)) {
		a.pingFor(30 * time.Second)
		require.True(t, exists(s, "/e"))
		time.Sleep(11 * time.Second)
		require.False(t, exists(s, "/e"))
		a.waitForClose()
	})
}

func TestDisconnectedFollowerAnswersPings(t *testing.T) {
	onFollower(t, func(t *testing.T, s *Server, a *rawClient, hold func(bool, bool)) {
		hold(true, true)
		a.pingFor(12 * time.Second)
		require.False(t, exists(s, "/e"), "the leader has got no record of the session")
		a.ping()
		hold(false, false)
		a.waitForClose()
	})
}

func TestAWriteDoesNotTellTheLeaderOfItsSession(t *testing.T) {
	onFollower(t, func(t *testing.T, s *Server, a *rawClient, hold func(bool, bool)) {
		time.Sleep(9*time.Second + 100*time.Millisecond) // a PING is due each half second
		a.mustCall(wire.OpCreate, createRequest("/a", "", 0))
		a.mustCall(wire.OpCreate, createRequest("/b", "", 0))
		hold(true, false) // before the next PING
		time.Sleep(2 * time.Second)
		require.False(t, exists(s, "/e"))
		a.waitForClose()
	})
}

func TestAFollowerLosesOneRecordOfTwo(t *testing.T) {
	onFollower(t, func(t *testing.T, s *Server, a *rawClient, _ func(bool, bool)) { // the record of the create was lost
		time.Sleep(5 * time.Second)
		a.ping()
		time.Sleep(4 * time.Second)
		a.ping() // the record of this ping is lost
		time.Sleep(5 * time.Second)
		require.True(t, exists(s, "/e"))
		time.Sleep(2 * time.Second)
		require.False(t, exists(s, "/e"))
	})
}

func TestHeldFollowerPacketsArriveInOrder(t *testing.T) {
	onFollower(t, func(t *testing.T, s *Server, a *rawClient, hold func(bool, bool)) {
		hold(true, false)
		a.send(wire.OpCreate, createRequest("/a", "", 0))
		a.send(wire.OpCreate, createRequest("/a/b", "", 0))
		a.send(wire.OpPing, &wire.EmptyRequest{}) // behind the writes
		time.Sleep(time.Second)
		require.False(t, exists(s, "/a"))
		hold(false, true)
		require.True(t, exists(s, "/a/b"))
		began := time.Now()
		time.AfterFunc(2*time.Second, func() { hold(false, false) })
		for _, xid := range []int32{2, 3, wire.XidPing} {
			head, _ := a.await()
			require.Equal(t, wire.OK, head.Err)
			require.Equal(t, xid, head.Xid)
		}
		require.Equal(t, 2*time.Second, time.Since(began))
	})
}

func TestOnlyAConnectionToAFollowerHasItsLever(t *testing.T) {
	onFollower(t, func(t *testing.T, s *Server, _ *rawClient, _ func(bool, bool)) {
		_, err := s.Follower(12345)
		require.ErrorContains(t, err, "no connection to a follower")
	})
	inBubble(t, func(t *testing.T, s *Server, st *testClients) {
		_, err := s.Follower(st.joinClient("a").session)
		require.ErrorContains(t, err, "no connection to a follower")
	})
}

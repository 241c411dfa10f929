package faults

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// TestARefusedTransactionIsOrdered shows why a refused heartbeat proves as much as an accepted one
// (docs/adr/0093-a-refused-heartbeat-counts.md): a follower that is cut off from its leader, and
// still answers other requests, answers neither. It answers both behind the transactions that the
// leader has committed meanwhile.
func TestARefusedTransactionIsOrdered(t *testing.T) {
	e := ensemble.Private(t, ensemble.Config{Links: true, NoFsync: true})
	for name, path := range map[string]string{"refused": "/none", "accepted": "/"} {
		t.Run(name, func(t *testing.T) {
			for try := 1; !answersInOrder(t, e, path); try++ {
				// on a slow machine the follower notices that it was cut off, and closes its
				// connections
				require.Less(t, try, 10, "the follower closed the connection in each try")
			}
		})
	}
}

// answersInOrder checks a node in a transaction over a follower that is cut off from its leader. It
// returns false if a server has closed a connection.
func answersInOrder(t *testing.T, e *ensemble.Ensemble, path string) bool {
	require.NoError(t, e.Await(t.Context()))
	followers := e.Followers()
	leader := e.Leader()
	if len(followers) < 2 || leader < 0 {
		return false
	}
	checker, other, writer := &rawSession{password: make([]byte, 16)}, &rawSession{password: make([]byte, 16)},
		&rawSession{password: make([]byte, 16)}
	for s, server := range map[*rawSession]int{checker: followers[0], other: followers[0], writer: leader} {
		if s.connect(e.Addr(server)) != nil {
			return false
		}
		defer s.conn.Close()
	}
	defer e.Heal()
	require.NoError(t, e.CutOff(followers[0], leader))
	answers := make(chan *wire.ReplyHeader, 1)
	check := &wire.MultiRequest{
		Parts: []wire.MultiPart{{Op: wire.OpCheck, Body: &wire.NumberRequest{Path: path, Number: wire.AnyVersion}}}}
	if checker.send(1, wire.OpMulti, check) != nil {
		return false
	}
	go func() { answers <- checker.header() }()
	for number := range int32(20) { // the follower serves its clients
		if other.send(number+1, wire.OpExists, &wire.WatchRequest{Path: "/"}) != nil || other.header() == nil {
			return false
		}
	}
	create := &wire.CreateRequest{Path: "/during-", Flags: wire.FlagSequential, ACL: wire.WorldACL(wire.PermAll)}
	if writer.send(1, wire.OpCreate, create) != nil {
		return false
	}
	written := writer.header()
	if written == nil {
		return false
	}
	require.Equal(t, wire.OK, written.Err)
	select {
	case answer := <-answers:
		require.Nil(t, answer, "the follower has answered without its leader")
		return false
	default:
	}
	e.Heal()
	answer := <-answers
	if answer == nil {
		return false
	}
	require.Greater(t, answer.Zxid, written.Zxid)
	return true
}

// header returns the head of the next answer, or nil if the connection has ended.
func (s *rawSession) header() *wire.ReplyHeader {
	frame, err := s.frame()
	if err != nil {
		return nil
	}
	var h wire.ReplyHeader
	d := wire.NewDecoder(frame)
	h.Decode(&d)
	if d.Err() != nil {
		return nil
	}
	return &h
}

//go:build unix

package doctor

import (
	"io"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/fourletter"
)

func TestQuorumFollowsFromTheServersRoles(t *testing.T) {
	for name, c := range map[string]struct {
		listed, reached int
		roles           map[string]int
		silent          []string
		wrong           bool
	}{
		"all":             {3, 3, map[string]int{"leader": 1, "follower": 2}, nil, false},
		"one is gone":     {3, 2, map[string]int{"leader": 1, "follower": 1}, nil, true},
		"no leader":       {2, 2, map[string]int{"follower": 2}, nil, true},
		"two ensembles":   {2, 2, map[string]int{"leader": 2}, nil, true},
		"not an ensemble": {2, 2, map[string]int{"standalone": 2}, nil, true},
		"one alone":       {1, 1, map[string]int{"standalone": 1}, nil, false},
		"five of seven":   {7, 5, map[string]int{"leader": 1, "follower": 4}, nil, false},
		"not told":        {3, 3, nil, []string{"a", "b", "c"}, false},

		"a silent one may follow":             {3, 3, map[string]int{"leader": 1, "follower": 1}, []string{"c"}, false},
		"a silent one may lead":               {3, 3, map[string]int{"follower": 2}, []string{"c"}, false},
		"a silent one beside two leaders":     {3, 3, map[string]int{"leader": 2}, []string{"c"}, true},
		"two, and one is silent":              {2, 2, map[string]int{"leader": 1}, []string{"b"}, true},
		"one is gone, and another one silent": {3, 2, map[string]int{"leader": 1}, []string{"b"}, true},
	} {
		d := &diagnoses{streams: &cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, json: true}
		require.NoError(t, d.judgeQuorum(c.listed, c.reached, c.roles, c.silent))
		require.Equal(t, c.wrong, d.wrong > 0, name)
	}
}

func TestDoctorTellsWhatObserversNeed(t *testing.T) {
	require.Empty(t, adviceOnObservers(0, framework.Config{}))
	require.Empty(t, adviceOnObservers(2, framework.Config{ObserverMasters: true}))
	require.Contains(t, adviceOnObservers(2, framework.Config{}),
		"2: if a server's zoo.cfg has observerMasterPort, set LOCKSTEP_OBSERVER_MASTERS=true")
}

// TestDoctorSaysWhyAServerDoesNotServe, by what it tells of itself and by what the others do.
func TestDoctorSaysWhyAServerDoesNotServe(t *testing.T) {
	const leads = "Zookeeper version: 3.8.0-5a02a05, built\nLatency min/avg/max: 0/1/2\nMode: leader\n"
	const follows = "Zookeeper version: 3.8.0-${mvngit.commit.id}, built\nMode: follower\n"
	const notServing = "This ZooKeeper instance is not currently serving requests\n"
	const failures = "zk_server_state\tfollower\nzk_unrecoverable_error_count\t"
	for _, c := range []struct {
		says, mntr, other string
		ok                bool
		want              string
	}{
		{follows, failures + "0\n", leads, true, "follower, version 3.8.0, answers in "},
		{follows, "mntr is not executed because it is not in the whitelist.\n", leads, true, "follower, version 3.8.0, "},
		// with a full disk a server calls itself a follower, since it comes back again and again
		{follows, failures + "2\n", leads, false, "follower, but errors that it cannot recover from have stopped it " +
			"since its start: 2"},
		{notServing, "", leads, false, "it answers, but serves no requests: another server leads, and it has not joined it"},
		{notServing, "", notServing, false, "it answers, but serves no requests: it has no quorum"},
		{"READ-ONLY mode; serving only read-only clients\nMode: read-only\n", "", notServing, false,
			"it serves reads only: it has no quorum; lockstep does not use it"},
		{"", "", leads, false, "it accepted the connection, and closed it without an answer"},
	} {
		first := answering(t, map[string]string{"srvr": c.says, "mntr": c.mntr})
		second := answering(t, map[string]string{"srvr": c.other})
		var texts []string
		d := &diagnoses{take: func(check string, ok bool, text, advice string) {
			if check == "server" {
				texts = append(texts, text)
				require.Equal(t, ok, advice == "")
				require.True(t, len(texts) > 1 || ok == c.ok, text)
			}
		}}
		_, err := d.examineServers(t.Context(), framework.Config{Servers: []string{first, second}},
			fourletter.Asker{})
		require.NoError(t, err)
		require.Len(t, texts, 2)
		require.Contains(t, texts[0], first+": "+c.want)
	}
}

// answering is the address of a server that answers these four-letter words, until the test ends.
func answering(t *testing.T, answers map[string]string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			word := make([]byte, 4)
			_, _ = io.ReadFull(conn, word)
			_, _ = io.WriteString(conn, answers[string(word)])
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return listener.Addr().String()
}

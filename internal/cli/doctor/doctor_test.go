//go:build unix

package doctor

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
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

package election_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
)

func TestLeadersOfSeveralElections(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		defer a.lead(t).Resign(t.Context())
		go func() { _, _ = b.Campaign(t.Context()) }()
		other := election.New(b.client, "/elections/b")
		term, err := other.Campaign(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		paths := []string{"/elections/b", "/elections/none", path}
		leaders, err := moduleonly.Leaders(t.Context(), b.client, paths...)
		require.NoError(t, err)
		for i, p := range paths {
			one, err := election.New(b.client, p).Leader(t.Context())
			require.Equal(t, err, leaders[i].Err)
			if err == nil {
				require.Equal(t, one, leaders[i].Candidate)
				require.Equal(t, one.Session, leaders[i].Session)
			}
		}
		require.ErrorIs(t, leaders[1].Err, election.ErrNoLeader)
		require.Equal(t, "a", leaders[2].Candidate.(election.Candidate).ID)
		require.EqualValues(t, 1, leaders[2].Candidate.(election.Candidate).Number)
		require.NoError(t, term.Resign(t.Context()))
		_, err = b.client.Set(t.Context(), path+"~term", []byte("no record"), framework.AnyVersion)
		require.NoError(t, err)
		leaders, err = moduleonly.Leaders(t.Context(), b.client, paths...)
		require.NoError(t, err)
		require.ErrorIs(t, leaders[0].Err, election.ErrNoLeader)
		require.ErrorIs(t, leaders[2].Err, framework.ErrBadRecord)
		_, err = moduleonly.Leaders(t.Context(), nil, path)
		require.Error(t, err)
	})
}

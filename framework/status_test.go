package framework_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

func TestStatusCountsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		s := session(t, m)
		synctest.Wait() // what the session's start has sent is counted
		before := m.Status().Requests
		for range 3 {
			_, err := s.Exists(t.Context(), "/")
			require.NoError(t, err)
		}
		require.Equal(t, before+3, m.Status().Requests)
		_, err := s.GetAll(t.Context(), "/a", "/b", "/c")
		require.NoError(t, err)
		require.Equal(t, before+4, m.Status().Requests, "many nodes are one request")
		_, _, err = m.Get(t.Context(), "/none")
		require.Error(t, err)
		require.Equal(t, before+5, m.Status().Requests, "a refused one counts")
	})
}

package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/testkit/exampletest"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// TestAWeekOfNights runs the scenario in virtual time: a week takes milliseconds.
func TestAWeekOfNights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t, zktest.WithSessionTimeouts(time.Second, time.Hour)) // proofs of life are rare
		var out strings.Builder
		s := &scenario{
			out: &out, spec: "0 3 * * *", night: 24 * time.Hour,
			connect: func(_ context.Context, office string) (*framework.Client, error) {
				return zk.Member(t, office, framework.Config{SessionTimeout: time.Hour}).Client, nil
			},
		}
		require.NoError(t, s.run(t.Context()))
		var nights []string
		for _, e := range s.books.nights() {
			nights = append(nights, e.night.Format("02 15:04"))
		}
		require.Equal(t, []string{"01 03:00", "02 03:00", "03 03:00", "06 03:00", "07 03:00"}, nights)
		for _, says := range []string{
			" closes the books of 01-01 03:00:00, on time\n",
			"2000-01-03 03:00:00  Lisbon closes the books of 01-03 03:00:00, on time\n",
			"Cairo: missed 2 nights from 01-04 03:00:00 on: no leader\n",
			"2000-01-06 06:00:00  Cairo closes the books of 01-06 03:00:00, 3h0m0s late\n",
			"  7 nights were due\n  5 were run: the books of each were closed once\n  2 were missed, and are recorded\n\nHeld: ",
		} {
			require.Contains(t, out.String(), says)
		}
		require.Equal(t, 5, strings.Count(out.String(), "closes the books of"), "as in the summary")
		require.NotRegexp(t, `(?m)^.{81}`, out.String(), "wider than a terminal")
	})
}

func TestNightsOfOneSecond(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"--night", "1s"}, &out))
	require.Contains(t, out.String(), "were missed, and are recorded")
}

func TestOnRealServers(t *testing.T) {
	servers := ensemble.Shared(t)
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"--zk", strings.Join(servers, ",")}, &out))
	require.Contains(t, out.String(), "were missed, and are recorded")
}

func TestBadFlagsAreRefused(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), []string{"--night", "1500ms"}, &strings.Builder{}), "1.5s")
	require.ErrorContains(t, run(t.Context(), []string{"--night", "-1s"}, &strings.Builder{}), "-1s")
}

package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

// TestEachRowHasItsMeasurement checks that the rows name work, and are compared with rows that exist.
func TestEachRowHasItsMeasurement(t *testing.T) {
	count := map[job]int{}
	for _, j := range jobs {
		count[j]++
	}
	for _, j := range jobs {
		require.Contains(t, works, workOf(j.work), j)
		require.Contains(t, jobs, j.against(), j)
		require.Equal(t, 1, count[j], j)
	}
}

// TestInMemory makes the measurements whose servers can run in this process.
func TestInMemory(t *testing.T) {
	for _, j := range jobs {
		if !slices.Contains([]string{"uncontended", "contended", "goroutines", "queue", "counter"}, j.work) ||
			j.peer == curatorPeer || j.peer == kazooPeer {
			continue
		}
		var servers string
		switch j.servers {
		case zk1:
			addr, err := zktest.Start(t).ListenTCP("127.0.0.1:0")
			require.NoError(t, err)
			servers = addr
		case redis1:
			servers = miniredis.RunT(t).Addr()
		default:
			continue
		}
		t.Run(j.String(), func(t *testing.T) {
			m := measurement{work: j.work, peer: j.peer, servers: servers, warmup: time.Millisecond,
				span: 50 * time.Millisecond, session: 10 * time.Second}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f, err := measurements[j.work](ctx, m)
			require.NoError(t, err)
			require.Positive(t, f.in(workOf(j.work).unit))
		})
	}
}

func TestRatiosSayHowManyTimesAsFastOursIs(t *testing.T) {
	r := &report{Rows: []row{
		{Work: "uncontended", Servers: zk1, Peer: lockstepPeer, Unit: perSecond, Figures: []float64{100, 300, 200}},
		{Work: "uncontended", Servers: zk1, Peer: zkPeer, Unit: perSecond, Figures: []float64{50, 100, 200}},
		{Work: "takeover", Servers: zk1, Peer: lockstepPeer, Unit: milliseconds, Figures: []float64{1}},
		{Work: "takeover", Servers: etcd1, Peer: etcdPeer, Unit: milliseconds, Figures: []float64{4}},
	}}
	r.summarize()
	require.Nil(t, r.Rows[0].Ratio)
	require.Equal(t, []float64{200, 100, 300}, []float64{r.Rows[0].Median, r.Rows[0].Least, r.Rows[0].Most})
	require.Equal(t, &spread{2, 1, 3}, r.Rows[1].Ratio)
	require.Equal(t, &spread{4, 4, 4}, r.Rows[3].Ratio)
}

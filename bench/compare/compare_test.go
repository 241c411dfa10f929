//go:build linux

package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

// TestEachRowHasItsMeasurement checks that the rows name work, and are compared with rows that
// exist.
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
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			// A busy machine may do nothing in a short span: it gets a longer one, until the test's
			// time is over.
			for span := 50 * time.Millisecond; ; span *= 2 {
				f, err := measurements[j.work](ctx, measurement{work: j.work, peer: j.peer, servers: servers,
					warmup: time.Millisecond, span: span, session: 10 * time.Second})
				require.NoError(t, err)
				if f.in(workOf(j.work).unit) > 0 {
					return
				}
			}
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

// TestPagesAreMadeFromTheReports checks that the tables and charts in docs are those of the reports
// beside them: "make compare" and "make compare-holders" write both.
func TestPagesAreMadeFromTheReports(t *testing.T) {
	const docs = "../../docs"
	for _, made := range tables {
		page, err := os.ReadFile(filepath.Join(docs, made.page))
		require.NoError(t, err)
		want, err := withTable(page, made.name, func() (string, error) { return made.table(docs) })
		require.NoError(t, err)
		require.Equal(t, string(want), string(page))
	}
	var r report
	text, err := os.ReadFile(filepath.Join(docs, "compare.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &r))
	for name, c := range map[string]colours{"compare-light.svg": light, "compare-dark.svg": dark} {
		chart, err := os.ReadFile(filepath.Join(docs, name))
		require.NoError(t, err)
		require.Equal(t, string(r.chart(c)), string(chart), name)
		require.NoError(t, xml.Unmarshal(chart, new(struct{})))
	}
}

func TestATableNeedsItsPlace(t *testing.T) {
	table := func() (string, error) { return "new\n", nil }
	page, err := withTable([]byte("a\n<!-- x: generated -->\nold\n<!-- x: end -->\nb\n"), "x", table)
	require.NoError(t, err)
	require.Equal(t, "a\n<!-- x: generated -->\nnew\n<!-- x: end -->\nb\n", string(page))
	_, err = withTable([]byte("a\n"), "x", table)
	require.ErrorContains(t, err, "no comments")
}

// TestBothBelieve checks what is said of a library whose holder is told before the next one is
// granted, of one whose holder is told late, and of one whose holder is never told.
func TestBothBelieve(t *testing.T) {
	never, short := outcome{Granted: unseen, Told: -0.97}, outcome{Granted: 4, Told: 4.004, Together: 0.004}
	late, untold := outcome{Granted: 4, Told: 10.4, Together: 6.4}, outcome{Granted: 4, Told: unseen, Together: 21.2}
	for _, row := range []struct {
		outcomes    []outcome
		median, all string
	}{
		{[]outcome{never}, "never", "never"},
		{[]outcome{late, never, short}, "< 0.01 s", "never – 6.40 s"},
		{[]outcome{untold, late}, "≥ 21 s", "6.40 s – ≥ 21 s"},
		{[]outcome{untold, untold}, "≥ 21 s", "≥ 21 s"},
	} {
		median, all := trialRow{Outcomes: row.outcomes}.together()
		require.Equal(t, []string{row.median, row.all}, []string{median, all})
	}
}

func TestBadInput(t *testing.T) {
	for says, args := range map[string][]string{
		"no row matches":    {"-only", "nothing"},
		"no trial matches":  {"-holders", "-only", "nothing"},
		"-only: error pars": {"-only", "("},
		"-turns 0":          {"-turns", "0"},
		"-frozen -1s":       {"-holders", "-frozen", "-1s"},
		"no such work":      {"-measure", "nothing"},
		"no such library":   {"-measure", "uncontended", "-peer", "nothing"},
		"has no queue":      {"-measure", "queue", "-peer", etcdPeer, "-servers", "127.0.0.1:1"},
	} {
		require.ErrorContains(t, run(args), says)
	}
}

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hourOf returns the points of an hour, with a sample every ten seconds.
func hourOf(value func(at time.Duration) float64) (points []point) {
	for at := time.Duration(0); at <= time.Hour; at += 10 * time.Second {
		points = append(points, point{at, value(at)})
	}
	return points
}

func TestTrendFindsALeakInNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	leak := hourOf(func(at time.Duration) float64 {
		if r.IntN(5) == 0 {
			return 1000 * r.Float64() // a fifth says nothing
		}
		return 100 + 24*at.Hours() + r.Float64()
	})
	require.InDelta(t, 24, slope(leak), 2)
	f := fitTrend(seriesName{"worker-1.1", goroutines}, leak)
	require.Equal(t, "GROWS", f.verdict())
	require.Equal(t, "falls", trend{rise: -f.rise, bound: f.bound}.verdict())
}

func TestTrendOfNoiseIsFlat(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	sawtooth := hourOf(func(at time.Duration) float64 { return 100 + float64(at/time.Second%120) + 5*r.Float64() })
	require.Equal(t, "flat", fitTrend(seriesName{"server-1", "znodes"}, sawtooth).verdict())
}

func TestTrendIgnoresTheWarmUp(t *testing.T) {
	warm := hourOf(func(at time.Duration) float64 { return min(at.Minutes(), 10) * 100 })
	require.Equal(t, "flat", fitTrend(seriesName{"server-1", "znodes"}, after(warm, 10*time.Minute)).verdict())
	require.Equal(t, 10*time.Minute, after(warm, 10*time.Minute)[0].at)
	require.Empty(t, after(warm, 2*time.Hour))
}

func TestTrendIgnoresShortSeries(t *testing.T) {
	points := hourOf(func(time.Duration) float64 { return 1 })
	require.True(t, coversRun(points, time.Hour))
	require.False(t, coversRun(points[:100], time.Hour))
	require.False(t, coversRun(nil, time.Hour))
}

// newRecorderWithEvents returns a recorder, and the file from which it reads events.
func newRecorderWithEvents(t *testing.T) (*recorder, *os.File) {
	o := options{out: filepath.Join(t.TempDir(), "soak")}
	r, err := newRecorder(o, nil, 7)
	require.NoError(t, err)
	events, err := os.OpenFile(o.out+".events", os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	t.Cleanup(func() {
		events.Close()
		require.NoError(t, r.close())
	})
	return r, events
}

func TestRecorderReadsPartialLinesLater(t *testing.T) {
	r, events := newRecorderWithEvents(t)
	for _, part := range []string{
		`{"kind":"stats","process":7,"goroutines":3}` + "\n" + `{"kind":"stats","worker":"worker-1.1","pro`,
		`cess":9}` + "\n",
		`{"kind":"worked"}` + "\n" + `{"kind":"killed","worker":"worker-1.1"}` + "\n" +
			`{"kind":"ended","worker":"worker-1.1"}` + "\n",
	} {
		_, err := events.WriteString(part)
		require.NoError(t, err)
		require.NoError(t, r.readEvents())
	}
	require.Equal(t, map[string]event{"pipeline": {Kind: "stats", Worker: "pipeline", Process: 7, Goroutines: 3}},
		r.alive)
	require.Equal(t, 1, r.done)
	require.Equal(t, 1, r.killed)
}

func TestSampleOfThisProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("there is no /proc")
	}
	r, _ := newRecorderWithEvents(t)
	r.alive["worker-1.1"] = event{Process: os.Getpid(), Goroutines: 5, Heap: 1 << 20}
	r.alive["worker-2.1"] = event{Process: 1 << 30} // it has ended
	self, err := os.Executable()
	require.NoError(t, err)
	r.o.pipeline = self
	require.NoError(t, r.sample(time.Second))
	for _, measure := range []string{residentMemory, anonymousMemory, openDescriptors, goroutines, liveHeap} {
		points := r.series[seriesName{"worker-1.1", measure}]
		require.Len(t, points, 1, measure)
		require.Positive(t, points[0].value, measure)
	}
	require.Equal(t, []point{{time.Second, 1}}, r.series[seriesName{"pipeline", processes}])
	require.NotContains(t, r.series, seriesName{"worker-2.1", residentMemory})
}

func TestSampleOfServers(t *testing.T) {
	n := numbers("zk_version\t3.8.0-1, built on x\nzk_znode_count\t17\nzk_avg_latency\t0.5\n")
	require.Equal(t, map[string]float64{"zk_znode_count": 17, "zk_avg_latency": 0.5}, n)
}

// newFourLetterServer returns the address of a server that gives the same answer to each
// four-letter word.
func newFourLetterServer(t *testing.T, report string) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(nc, make([]byte, 4))
			_, _ = io.WriteString(nc, report)
			nc.Close()
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-ended
	})
	return ln.Addr().String()
}

func TestServerCountersNeedAllServers(t *testing.T) {
	r, _ := newRecorderWithEvents(t)
	serves := newFourLetterServer(t, "zk_znode_count\t17\nzk_watch_count\t2\nzk_num_alive_connections\t1\n")
	sample{r, time.Second}.servers([]string{serves,
		newFourLetterServer(t, "This ZooKeeper instance is not currently serving requests\n")})
	require.Empty(t, r.series)
	sample{r, 2 * time.Second}.servers([]string{serves, serves})
	require.Equal(t, []point{{2 * time.Second, 17}}, r.series[seriesName{"server-2", "znodes"}])
	require.Equal(t, []point{{2 * time.Second, 4}}, r.series[seriesName{"servers", "watches"}])
}

// goodSummary returns the summary of a run without a violation.
func goodSummary() summary {
	return summary{
		result: result{Rounds: 2, Sum: 10, Want: 10, took: time.Hour},
		trends: []trend{fitTrend(seriesName{"worker-1.1", liveHeap},
			hourOf(func(time.Duration) float64 { return 3 << 20 }))},
	}
}

func TestSummaryVerdict(t *testing.T) {
	require.NoError(t, goodSummary().verdict())
	require.Contains(t, goodSummary().text(), "all flat, and the sum is right")
	require.Regexp(t, `live heap +worker-1.1 +3.00 MiB +\+0.00 MiB +flat`, goodSummary().text())
	for want, spoil := range map[string]func(*summary){
		"the sum is 9, but must be 10":         func(s *summary) { s.Sum = 9 },
		"the sum is 0, but must be 0":          func(s *summary) { s.result = result{took: time.Hour} },
		"the pipeline: it broke":               func(s *summary) { s.err = errors.New("it broke") },
		"too short":                            func(s *summary) { s.trends = nil },
		"znodes of server-2 was not measured":  func(s *summary) { s.missing = []seriesName{{"server-2", "znodes"}} },
		"live heap of worker-1.1 grows":        func(s *summary) { s.trends[0].rise = 1 << 20 },
		"FAILED\nlive heap of worker-1.1 grow": func(s *summary) { s.trends[0].rise = 1 << 20 },
	} {
		s := goodSummary()
		spoil(&s)
		require.False(t, s.ok())
		require.Contains(t, s.text(), want)
	}
}

// TestSummaryMissesSeries checks that the summary names each expected series that has no values, or
// values for the smaller part of the run only.
func TestSummaryMissesSeries(t *testing.T) {
	r, _ := newRecorderWithEvents(t)
	r.addrs, r.o.unkilled = []string{"a", "b"}, 1
	flat := hourOf(func(time.Duration) float64 { return 1 })
	for _, n := range expectedSeries(2, 1) {
		r.series[n] = flat
	}
	require.Contains(t, r.series, seriesName{"server-2", "znodes"})
	require.Contains(t, r.series, seriesName{"worker-1.1", goroutines})
	complete := goodSummary().result
	require.Empty(t, summarise(r, complete, 0).missing)
	require.NoError(t, summarise(r, complete, 0).verdict())
	delete(r.series, seriesName{"servers", "watches"})
	r.series[seriesName{"server-2", "znodes"}] = flat[:100]
	require.ElementsMatch(t, []seriesName{{"servers", "watches"}, {"server-2", "znodes"}},
		summarise(r, complete, 0).missing)
}

func TestPlotIsWellFormed(t *testing.T) {
	c := seriesByName{}
	for at := time.Duration(0); at < time.Hour; at += 10 * time.Second {
		c.add("worker-1.1", liveHeap, point{at, 5e6})
		c.add("pipeline", itemsDone, point{at, at.Seconds()})
		c.add("pipeline", workersKilled, point{at, at.Minutes()})
	}
	c.add("worker-9.9", liveHeap, point{time.Minute, 1e9})
	drawn := draw(c)
	d := xml.NewDecoder(strings.NewReader(drawn))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	require.Contains(t, drawn, "worker-1.1")
	require.NotContains(t, drawn, "worker-9.9", "it was killed soon")
	require.Contains(t, drawn, workersKilled)
	require.Contains(t, draw(seriesByName{}), "</svg>")
}

func TestTableRoundTrip(t *testing.T) {
	r, _ := newRecorderWithEvents(t)
	r.alive["worker-1.1"] = event{Process: 1 << 30, Goroutines: 5, Heap: 1 << 20}
	require.NoError(t, r.sample(1500*time.Millisecond))
	c, err := readTable(r.o.out + ".csv")
	require.NoError(t, err)
	require.Equal(t, r.series, c)
	o := options{out: r.o.out, table: r.o.out + ".csv"}
	require.NoError(t, redraw(o))
	drawn, err := os.ReadFile(o.out + ".svg")
	require.NoError(t, err)
	require.Equal(t, draw(r.series), string(drawn))
	for _, bad := range []string{"a,b,c,d\nx,y,z,1\n", "a,b,c,d\n1,y,z,x\n", "a,b\n1,2,3\n"} {
		require.NoError(t, os.WriteFile(o.table, []byte(bad), 0o644))
		require.Error(t, redraw(o), bad)
	}
	require.ErrorIs(t, redraw(options{table: "no.csv"}), os.ErrNotExist)
}

func TestPlotLimitsAreRounded(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, 0.3: 0.4, 1: 1, 1.1: 2, 33: 40, 47: 50, 61: 80, 99: 100,
		12345: 20000} {
		require.InDelta(t, want, roundUp(v), 1e-9, v)
	}
}

package scheduler

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/zktest"
)

// TestAtMostOnceInAStorm lets 20 members whose clocks differ by up to 10 s run 10,000 ticks, while
// leaders are killed, links break and replies are lost: no tick runs twice or overlaps another run
// of its job, and every tick is accounted for.
func TestAtMostOnceInAStorm(t *testing.T) {
	for seed := range uint64(*storms) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				(&storm{world: w, r: rand.New(rand.NewPCG(seed, 5)), runs: map[string]int{}}).rage(t)
			})
		})
	}
}

// storms is how many storms there are, each from a seed of its own.
var storms = flag.Int("storms", 1, "how many storms the schedulers have to stand")

var stormJobs = map[string]string{
	"a": "* * * * * *", "b": "* * * * * *", "c": "* * * * * *", "d": "* * * * * *", "e": "@every 1s", "f": "@every 2s",
	"slow": "* * * * * *", "five": "*/5 * * * * *",
}

// stormTicks is how many ticks a storm lasts.
func stormTicks() int64 {
	if testing.Short() {
		return 2_000
	}
	return 10_000
}

// storm is what is done to a cluster, and what its jobs have seen.
type storm struct {
	*world
	r       *rand.Rand
	members []*actor
	made    int

	mu    sync.Mutex
	runs  map[string]int // of each run's job and tick
	going map[string]int // of each job
	total int
}

func (s *storm) jobs() (all []Job) {
	for name, spec := range stormJobs {
		j := Job{Name: name, Spec: spec, Run: s.run, Deadline: 4 * time.Second}
		if slices.Contains([]string{"b", "c", "e", "slow"}, name) {
			j.Placement = Spread
		}
		all = append(all, j)
	}
	return all
}

// run counts what must not be, and takes some time.
func (s *storm) run(ctx context.Context, run Run) error {
	s.count(run, 1)
	defer s.count(run, -1)
	h := fnv.New64a()
	h.Write([]byte(run.ID))
	switch n := time.Duration(h.Sum64() % 4000); {
	case run.Job == "slow":
		return lasting(n*time.Millisecond)(ctx, run)
	case run.Job == "five" && n < 400:
		panic("rare")
	case run.Job == "five":
		return lasting(n*4*time.Millisecond)(ctx, run)
	}
	return nil
}

func (s *storm) count(run Run, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.going == nil {
		s.going = map[string]int{}
	}
	if s.going[run.Job] += by; s.going[run.Job] > 1 {
		s.t.Errorf("%d runs of %s go on", s.going[run.Job], run.Job)
	}
	if by < 0 {
		return
	}
	key := run.Job + " " + run.Tick.Format(time.RFC3339)
	if s.runs[key]++; s.runs[key] > 1 {
		s.t.Errorf("%s runs again", key)
	}
	s.total++
}

// enlist adds a member with a wrong clock.
func (s *storm) enlist() {
	skew := time.Duration(s.r.Int64N(int64(10*time.Second))) - 5*time.Second
	s.made++
	m := s.start(fmt.Sprint("m", s.made), s.jobs(), WithNow(func() time.Time { return time.Now().Add(skew) }),
		WithGrace(time.Duration(s.r.IntN(4))*time.Second))
	s.members = append(s.members, m)
}

func (s *storm) rage(t *testing.T) {
	for range 20 {
		s.enlist()
	}
	for s.due() < stormTicks() {
		time.Sleep(time.Duration(s.r.Int64N(int64(20 * time.Second))))
		s.strike()
	}
	for _, m := range s.members {
		m.link.Heal()
	}
	time.Sleep(2*timeout + 5*time.Second)
	for _, m := range s.members {
		m.stop()
	}
	for _, m := range s.members {
		require.NoError(t, <-m.done)
	}
	s.judge(t)
}

// strike hurts somebody, the leader most of all.
func (s *storm) strike() {
	i := slices.IndexFunc(s.members, func(m *actor) bool { return m.name == s.leader() })
	if i < 0 || s.r.IntN(4) == 0 {
		i = s.r.IntN(len(s.members))
	}
	m := s.members[i]
	switch s.r.IntN(10) {
	case 0, 1:
		m.kill()
		s.members = slices.Delete(s.members, i, i+1)
		s.enlist()
	case 2:
		m.stop()
		if err := <-m.done; err != nil {
			s.t.Errorf("%s: %v", m.name, err)
		}
		_ = m.client.Close(context.Background())
		s.members = slices.Delete(s.members, i, i+1)
		s.enlist()
	case 3:
		m.link.Cut()
	case 4:
		m.link.BlackHole(true, s.r.IntN(2) == 0)
	case 5:
		m.link.Reset()
	case 6, 7:
		names := []string{"a", "b", "slow", "five"}
		s.DropReply(1+s.r.IntN(3),
			zktest.Match{Op: zktest.OpMulti, Path: testPath + "/jobs/" + names[s.r.IntN(len(names))],
				Func: zktest.Request.Writes})
	case 8:
		s.Restart()
	default:
		for _, m := range s.members {
			m.link.Heal()
		}
	}
}

// due is how many ticks were seen to.
func (s *storm) due() (n int64) {
	for name := range stormJobs {
		n += s.state(name).Due()
	}
	return n
}

func (s *storm) judge(t *testing.T) {
	var fired, lost int64
	for name, spec := range stormJobs {
		state := s.requireBalanced(name, spec)
		require.Empty(t, state.Running)
		fired += state.Fired
		lost += state.Missed[ReasonRunnerLost]
		s.requireGaps(t, name, spec, state)
		t.Logf("%s: fired %d, missed %v", name, state.Fired, state.Missed)
	}
	require.LessOrEqual(t, fired, int64(s.total), "what is stored as run has run")
	require.GreaterOrEqual(t, fired+lost, int64(s.total), "what has run is stored")
	require.Greater(t, s.made, 20)
	require.Greater(t, fired, stormTicks()/5)
}

// requireGaps checks the stored gaps against the schedule and what has run.
func (s *storm) requireGaps(t *testing.T, name, spec string, state State) {
	schedule := parsed(t, spec, nil)
	for _, g := range state.Gaps {
		require.Equal(t, g.Count, schedule.findDueTicks(g.From.Add(-time.Second), g.To).count, "%s: %v", name, g)
		if g.Reason == ReasonRunnerLost {
			continue // it may have begun
		}
		for tick := g.From; !tick.After(g.To); tick = schedule.Next(tick) {
			require.Zero(t, s.runs[name+" "+tick.Format(time.RFC3339)], "%s at %v was missed and run", name, tick)
		}
	}
}

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
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// full makes the year a whole one, with 100 jobs and 10 members. By default it is a month, with
// fewer; with -short ten days.
var full = flag.Bool("year", false, "a whole year of 100 jobs and 10 members, which takes minutes")

// TestAYearOfTicks lets members with wrong clocks run jobs of all policies, while they are
// restarted in turn, killed, and cut off at random. No tick of an AtMostOnce job runs twice, none
// is lost without a record, runs overlap only where they may, and the history tells what has run.
func TestAYearOfTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.WithSessionTimeouts(time.Second, time.Hour),
			zktest.WithContainerInterval(24*time.Hour))
		y := &year{
			world: &world{srv, t, &journal{}, framework.Config{SessionTimeout: 20 * time.Minute}},
			r:     rand.New(rand.NewPCG(1, 2)), days: 30, jobs: yearJobs(20), size: 4,
			seen: map[string]int{}, going: map[string]int{}, runs: map[string]map[int64]Outcome{},
		}
		if testing.Short() {
			y.days = 10
		}
		if *full {
			y.days, y.jobs, y.size = 365, yearJobs(100), 10
		}
		y.looker = y.Member(t, "looker", y.config).Client
		y.pass()
		y.judge()
	})
}

// year is what is done to a cluster, and what its jobs have seen.
type year struct {
	*world
	r       *rand.Rand
	days    int
	size    int
	jobs    []Job
	members []*actor
	made    int
	looker  *framework.Client // of nobody who takes part

	mu    sync.Mutex
	seen  map[string]int               // starts of a job's tick
	going map[string]int               // runs of a job
	runs  map[string]map[int64]Outcome // what each run by its token returned
	total int
}

// yearJobs are jobs of all policies, most of them daily.
func yearJobs(n int) (all []Job) {
	specs := []string{"%d 3 * * *", "%d 0 * * *", "%d 12 * * 1-5", "%d */6 * * *", "@daily", "%d 2 1,15 * *",
		"%d 8-18/5 * * *", "@every 7h", "%d 4 * * 0", "%d 23 * * *"}
	for i := range n {
		spec := specs[i%len(specs)]
		if spec[0] == '%' {
			spec = fmt.Sprintf(spec, i*7%60)
		}
		j := Job{
			Name: fmt.Sprintf("j%02d", i), Spec: spec,
			Deadline: []time.Duration{time.Minute, time.Hour, 12 * time.Hour}[i%3],
			Misfire:  []Misfire{MisfireLatest, MisfireSkip, MisfireAll, MisfireLatest}[i%4],
			Overlap:  []Overlap{OverlapForbid, OverlapForbid, OverlapAllow, OverlapReplace, OverlapForbid}[i%5],
		}
		if i%2 == 0 {
			j.Placement = Spread
		}
		if i%7 == 0 {
			j.Guarantee = AtLeastOnce
		}
		if i%6 == 0 {
			j.Attempts, j.Jitter = 3, 10*time.Minute
		}
		all = append(all, j)
	}
	return all
}

// run counts what must not be, and takes up to ten hours.
func (y *year) run(j Job) func(context.Context, Run) error {
	return func(ctx context.Context, run Run) (err error) {
		y.begin(j, run)
		defer func() { y.end(j, run, err) }()
		h := fnv.New64a()
		h.Write([]byte(run.ID))
		n := mixBits(h.Sum64())
		took := time.Duration(n % uint64(20*time.Minute))
		if n%10 == 0 {
			took *= 30
		}
		if err := lasting(took)(ctx, run); err != nil {
			return err
		}
		if n%17 == 0 {
			return fmt.Errorf("fails, and would again: %d", n)
		}
		return nil
	}
}

func (y *year) begin(j Job, run Run) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.total++
	if y.going[j.Name]++; y.going[j.Name] > 1 && j.Overlap != OverlapAllow {
		y.t.Errorf("%d runs of %s go on", y.going[j.Name], j.Name)
	}
	if run.Attempt > 1 {
		return
	}
	key := j.Name + " " + run.Tick.Format(time.RFC3339)
	if y.seen[key]++; y.seen[key] > 1 {
		y.t.Errorf("%s runs again", key)
	}
}

func (y *year) end(j Job, run Run, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.going[j.Name]--
	if y.runs[j.Name] == nil {
		y.runs[j.Name] = map[int64]Outcome{}
	}
	outcome := Succeeded
	if err != nil {
		outcome = Failed
	}
	y.runs[j.Name][run.Token] = outcome
}

// enlist adds a member with a wrong clock.
func (y *year) enlist() {
	skew := time.Duration(y.r.Int64N(int64(8*time.Second))) - 4*time.Second
	y.made++
	var all []Job
	for _, j := range y.jobs {
		j.Run = y.run(j)
		all = append(all, j)
	}
	drain := time.Duration(y.r.IntN(40)) * time.Minute
	m := y.member(fmt.Sprint("m", y.made), all, WithNow(func() time.Time { return time.Now().Add(skew) }),
		WithGrace(drain), WithHistory(20))
	m.settings.maxPause = 3 * time.Hour // no clock is set here
	m.report.onEvent = nil
	m.run(y.t)
	y.members = append(y.members, m)
}

func (y *year) pass() {
	for range y.size {
		y.enlist()
	}
	end := time.Now().AddDate(0, 0, y.days)
	for time.Now().Before(end) {
		time.Sleep(time.Duration(y.r.Int64N(int64(40 * time.Hour))))
		y.strike()
	}
	for _, m := range y.members {
		m.link.Heal()
	}
	time.Sleep(12 * time.Hour)
	for _, m := range y.members {
		m.stop()
	}
	for _, m := range y.members {
		require.NoError(y.t, <-m.done)
	}
	synctest.Wait()
}

// strike hurts somebody, or restarts all in turn.
func (y *year) strike() {
	i := y.r.IntN(len(y.members))
	m := y.members[i]
	switch y.r.IntN(8) {
	case 0, 1:
		m.kill()
		y.members = slices.Delete(y.members, i, i+1)
		y.enlist()
	case 2, 3:
		for range y.members { // a rolling restart
			y.retire()
			time.Sleep(5 * time.Minute)
		}
	case 4:
		m.link.Cut()
		time.Sleep(time.Duration(y.r.Int64N(int64(time.Hour))))
		m.link.Heal()
	case 5:
		m.link.BlackHole(y.r.IntN(2) == 0, true)
		time.Sleep(time.Duration(y.r.Int64N(int64(time.Hour))))
		m.link.Heal()
	case 6:
		m.link.Reset()
	default:
		y.Restart()
	}
}

// retire replaces the oldest member, which drains meanwhile.
func (y *year) retire() {
	m := y.members[0]
	y.members = y.members[1:]
	m.stop()
	y.enlist()
	go func() {
		if err := <-m.done; err != nil {
			y.t.Errorf("%s: %v", m.name, err)
		}
		_ = m.client.Close(context.Background())
	}()
}

func (y *year) judge() {
	var due, fired, missed int64
	for _, j := range y.jobs {
		state := y.requireBalanced(j.Name, j.Spec)
		require.Empty(y.t, state.Running, j.Name)
		due, fired = due+state.Due(), fired+state.Fired
		for _, n := range state.Missed {
			missed += n
		}
		y.requireHistory(j)
	}
	y.t.Logf("%d days, %d jobs, %d members: %d ticks due, %d run, %d missed, %d attempts", y.days, len(y.jobs), y.made,
		due, fired, missed, y.total)
	require.Greater(y.t, fired, due/2)
}

// requireHistory compares what is recorded with what the functions have returned.
func (y *year) requireHistory(j Job) {
	runs, err := New(y.looker, testPath).Runs(context.Background(), j.Name)
	require.NoError(y.t, err)
	require.NotEmpty(y.t, runs, j.Name)
	for i, r := range runs {
		if i > 0 {
			require.Equal(y.t, runs[i-1].Number-1, r.Number, "%s: no run is left out", j.Name)
		}
		if r.Outcome == Lost {
			continue
		}
		if got, ok := y.runs[j.Name][r.Token]; ok {
			require.Equal(y.t, got == Succeeded, r.Outcome == Succeeded, "%s: %+v", j.Name, r)
		}
	}
}

package faults

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/scheduler"
)

// cronTicks is for how many ticks of one second TestCronJobsRunOnceUnderKills runs. It kills a
// process about every ten ticks.
var cronTicks = flag.Int("cron-ticks", 30, "how many seconds jobs run while processes are killed")

const (
	cronProcesses = 5
	cronSpec      = "* * * * * *"
)

func init() { childMains["cron"] = runCron }

// cronJobs returns one job of the leader and five spread jobs. Each is due every second.
func cronJobs(run func(context.Context, scheduler.Run) error) (jobs []scheduler.Job) {
	for i := range 6 {
		j := scheduler.Job{Name: fmt.Sprint("j", i), Spec: cronSpec, Run: run, Deadline: 3 * time.Second}
		if i > 0 {
			j.Placement = scheduler.Spread
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// runCron runs the jobs until standard input is closed, or the process is killed.
func runCron(ctx context.Context, c *framework.Client) error {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // errors end it too
		stop()
	}()
	s := scheduler.New(c, os.Getenv(pathVariable), scheduler.WithOnEvent(func(e scheduler.Event) {
		if e.Kind == scheduler.EventLeading {
			printLine("leading", e.Run.Token)
		}
	}))
	for _, j := range cronJobs(func(_ context.Context, run scheduler.Run) error {
		printLine("ran", fmt.Sprint(run.Job, "@", run.Tick.Format(time.TimeOnly), " ", run.Token))
		return nil
	}) {
		if err := s.Add(j); err != nil {
			return err
		}
	}
	return s.Run(ctx)
}

// cronCluster has the processes, and the runs that they have printed.
type cronCluster struct {
	t       *testing.T
	servers []string
	path    string

	mu        sync.Mutex
	processes []*cronProcess
	leader    *cronProcess
	ran       map[string]int  // by job and tick
	ranSince  map[string]bool // the jobs that living processes have run since the latest kill
	readers   sync.WaitGroup
}

type cronProcess struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

// startProcess starts a process and reads its output.
func (c *cronCluster) startProcess() {
	p := &cronProcess{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), roleVariable+"=cron", serversVariable+"="+strings.Join(c.servers, ","),
		pathVariable+"="+c.path)
	p.cmd.Stderr, p.cmd.SysProcAttr = os.Stderr, newProcessGroup()
	stdin, err := p.cmd.StdinPipe()
	require.NoError(c.t, err)
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, p.cmd.Start())
	p.stdin = stdin
	c.mu.Lock()
	c.processes = append(c.processes, p)
	c.mu.Unlock()
	c.readers.Go(func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			c.readLine(p, lines.Text())
		}
		_ = p.cmd.Wait() // the exit status does not matter
	})
}

func (c *cronCluster) readLine(p *cronProcess, line string) {
	word, value, _ := strings.Cut(line, " ")
	c.mu.Lock()
	defer c.mu.Unlock()
	switch word {
	case "leading":
		c.leader = p
	case "ran":
		tick, _, _ := strings.Cut(value, " ")
		if c.ran[tick]++; c.ran[tick] > 1 {
			c.t.Errorf("%s ran twice", tick)
		}
		if job, _, _ := strings.Cut(tick, "@"); slices.Contains(c.processes, p) {
			c.ranSince[job] = true
		}
	}
}

// awaitRuns waits until the living processes have run each job since the latest kill.
func (c *cronCluster) awaitRuns(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		return mismatch("a run of each job", len(c.ranSince) == len(cronJobs(nil)), c.ranSince)
	})
}

// killAndReplace kills the leader or another process, and starts a new one.
func (c *cronCluster) killAndReplace() {
	c.mu.Lock()
	i := rand.IntN(len(c.processes))
	for k, p := range c.processes {
		if p == c.leader && rand.IntN(3) > 0 {
			i = k
		}
	}
	p := c.processes[i]
	c.processes = append(c.processes[:i:i], c.processes[i+1:]...)
	clear(c.ranSince)
	c.mu.Unlock()
	_ = p.cmd.Process.Kill() // it is alive
	c.startProcess()
}

// stopAll stops all processes and reads the rest of their output.
func (c *cronCluster) stopAll() {
	c.mu.Lock()
	for _, p := range c.processes {
		_ = p.stdin.Close()
	}
	c.mu.Unlock()
	c.readers.Wait()
}

// TestCronJobsRunOnceUnderKills runs jobs with a tick each second in five processes, and kills one
// after the other. No tick may run twice, and each must be run or recorded as missed. After each
// kill, the others must run each job.
func TestCronJobsRunOnceUnderKills(t *testing.T) {
	t.Parallel()
	c := &cronCluster{t: t, servers: ensemble.Shared(t), path: fmt.Sprintf("/cron-faults-%d", time.Now().UnixNano()),
		ran: map[string]int{}, ranSince: map[string]bool{}}
	t.Cleanup(func() {
		for _, p := range c.processes {
			_ = p.cmd.Process.Kill() // fails if it has ended
		}
		c.readers.Wait()
	})
	for range cronProcesses {
		c.startProcess()
	}
	kills := 0
	for left := *cronTicks; left > 0; {
		n := min(left, 7+rand.IntN(6))
		left -= n
		wait(t, time.Duration(n)*time.Second)
		c.awaitRuns(t)
		if left > 0 {
			c.killAndReplace()
			kills++
		}
	}
	client := mustConnect(t, config(c.servers...))
	s := scheduler.New(client, c.path)
	for _, j := range cronJobs(nil) { // until the runs of the processes that were killed are recorded as lost
		eventually(t, func() error {
			state, err := s.State(t.Context(), j.Name)
			return errors.Join(err, mismatch("no run of "+j.Name, len(state.Running) == 0, state.Running))
		})
	}
	c.stopAll()
	syncWithOthers(t, client)
	for _, j := range cronJobs(nil) {
		state, err := s.State(t.Context(), j.Name)
		require.NoError(t, err)
		c.checkCounts(t, j.Name, state, kills)
	}
}

// checkCounts compares a job's state with what the processes have printed. Each tick must have run
// or be recorded as missed, for a reason that a killed process or a busy machine can cause. How
// many ticks are missed is no promise, since it depends on how soon the machine runs the next
// member: so the only bound on the runs is that awaitRuns has seen one before the first kill and
// after each.
func (c *cronCluster) checkCounts(t *testing.T, name string, state scheduler.State, kills int) {
	schedule, err := scheduler.ParseSpec(cronSpec, nil)
	require.NoError(t, err)
	var due, ran int64
	for tick := schedule.Next(state.Registered); !tick.After(state.Last); tick = schedule.Next(tick) {
		due++
		ran += int64(c.ran[name+"@"+tick.Format(time.TimeOnly)])
	}
	printed := int64(0)
	for tick, n := range c.ran {
		if strings.HasPrefix(tick, name+"@") {
			printed += int64(n)
		}
	}
	t.Logf("%s: %d due, %d recorded as run, missed %v; %d printed by the processes", name, due, state.Fired,
		state.Missed, ran)
	require.Equal(t, due, state.Due(), name)
	require.Empty(t, state.Running, name)
	require.GreaterOrEqual(t, ran, state.Fired, "each run that is recorded has run")
	require.LessOrEqual(t, ran, state.Fired+state.Missed[scheduler.ReasonRunnerLost],
		"each run is recorded as run or lost")
	require.Equal(t, printed, ran, "each run is of a tick that was due")
	require.GreaterOrEqual(t, ran, int64(kills+1))
	for reason := range state.Missed {
		require.Contains(t, []scheduler.Reason{scheduler.ReasonOverlap, scheduler.ReasonNoLeader, scheduler.ReasonLate,
			scheduler.ReasonRunnerLost}, reason, name)
	}
}

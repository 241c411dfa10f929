package faults

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/ensemble"
	"github.com/lockstep-go/lockstep/scheduler"
)

// cronTicks is how many one-second ticks TestCronUnderKills lasts; a process is killed about every ten of them.
var cronTicks = flag.Int("cron-ticks", 30, "how many seconds jobs run while their processes are killed")

const (
	cronProcesses = 5
	cronSpec      = "* * * * * *"
)

func init() { childRoles["cron"] = playCron }

// cronJobs are one on the leader and some that are spread, each due every second.
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

// playCron runs the jobs until its standard input ends, or it is killed.
func playCron(ctx context.Context, c *framework.Client) error {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // any end will do
		stop()
	}()
	s := scheduler.New(c, os.Getenv(pathVariable), scheduler.WithObserver(func(e scheduler.Event) {
		if e.Kind == scheduler.EventLeading {
			say("leading", e.Run.Token)
		}
	}))
	for _, j := range cronJobs(func(_ context.Context, run scheduler.Run) error {
		say("ran", fmt.Sprint(run.Job, "@", run.Tick.Format(time.TimeOnly), " ", run.Token))
		return nil
	}) {
		if err := s.Add(j); err != nil {
			return err
		}
	}
	return s.Run(ctx)
}

// cronTeam is the processes, and what they have said.
type cronTeam struct {
	t       *testing.T
	servers []string
	path    string

	mu     sync.Mutex
	all    []*cronProcess
	leader *cronProcess
	ran    map[string]int
	heard  sync.WaitGroup
}

type cronProcess struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

// enlist starts a process.
func (c *cronTeam) enlist() {
	p := &cronProcess{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), roleVariable+"=cron", serversVariable+"="+strings.Join(c.servers, ","), pathVariable+"="+c.path)
	p.cmd.Stderr, p.cmd.SysProcAttr = os.Stderr, ownGroup()
	stdin, err := p.cmd.StdinPipe()
	require.NoError(c.t, err)
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, p.cmd.Start())
	p.stdin = stdin
	c.mu.Lock()
	c.all = append(c.all, p)
	c.mu.Unlock()
	c.heard.Go(func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			c.hear(p, lines.Text())
		}
		_ = p.cmd.Wait() // killed, or stopped: what it has said is what counts
	})
}

func (c *cronTeam) hear(p *cronProcess, line string) {
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
	}
}

// kill kills the leader, or anybody, and starts another one.
func (c *cronTeam) kill() {
	c.mu.Lock()
	i := rand.IntN(len(c.all))
	for k, p := range c.all {
		if p == c.leader && rand.IntN(3) > 0 {
			i = k
		}
	}
	p := c.all[i]
	c.all = append(c.all[:i:i], c.all[i+1:]...)
	c.mu.Unlock()
	_ = p.cmd.Process.Kill() // it lives
	c.enlist()
}

// end stops all and hears them out.
func (c *cronTeam) end() {
	c.mu.Lock()
	for _, p := range c.all {
		_ = p.stdin.Close()
	}
	c.mu.Unlock()
	c.heard.Wait()
}

// TestCronUnderKills lets five processes run a tick each second of several jobs while one after the other is
// killed. No tick runs twice, and each is run, or recorded as missed.
func TestCronUnderKills(t *testing.T) {
	c := &cronTeam{t: t, servers: ensemble.Shared(t), path: fmt.Sprintf("/cron-faults-%d", time.Now().UnixNano()), ran: map[string]int{}}
	t.Cleanup(func() {
		for _, p := range c.all {
			_ = p.cmd.Process.Kill() // most have ended
		}
		c.heard.Wait()
	})
	for range cronProcesses {
		c.enlist()
	}
	for left := *cronTicks; left > 0; {
		n := min(left, 7+rand.IntN(6))
		left -= n
		pass(t, time.Duration(n)*time.Second)
		if left > 0 {
			c.kill()
		}
	}
	pass(t, 2*timeout) // the dead one's runs are recorded as lost
	c.end()
	s := scheduler.New(client(t, config(c.servers...)), c.path)
	for _, j := range cronJobs(nil) {
		state, err := s.State(t.Context(), j.Name)
		require.NoError(t, err)
		c.judge(t, j.Name, state)
	}
}

func (c *cronTeam) judge(t *testing.T, name string, state scheduler.State) {
	schedule, err := scheduler.ParseSpec(cronSpec, nil)
	require.NoError(t, err)
	var due, ran int64
	for tick := schedule.Next(state.Registered); !tick.After(state.Last); tick = schedule.Next(tick) {
		due++
		ran += int64(c.ran[name+"@"+tick.Format(time.TimeOnly)])
	}
	t.Logf("%s: %d due, %d run, missed %v; %d said that they ran", name, due, state.Fired, state.Missed, ran)
	require.Equal(t, due, state.Due(), name)
	require.Empty(t, state.Running, name)
	require.GreaterOrEqual(t, ran, state.Fired, "what is recorded as run has run")
	require.LessOrEqual(t, ran, state.Fired+state.Missed[scheduler.ReasonRunnerLost], "what has run is recorded")
	require.Greater(t, state.Fired, due/3)
	require.Greater(t, due, int64(*cronTicks/2))
}

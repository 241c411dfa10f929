package faults

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// TestOrdinaryInterruptions checks that ordinary interruptions end no hold at the default timeouts,
// and no command under a lock: restarts of one server after the other, a killed leader, and 6 s
// without a leader. The servers' settings are those of ZooKeeper's sample configuration.
func TestOrdinaryInterruptions(t *testing.T) {
	t.Parallel()
	env := &testEnv{Ensemble: ensemble.Private(t, ensemble.Config{
		Links: true, NoFsync: true, Patience: waitLimit, Tick: 2 * time.Second, InitLimit: 10, SyncLimit: 5,
	})}
	lockstep := filepath.Join(t.TempDir(), "lockstep")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-race=false", "-o", lockstep,
		"github.com/lockstep-go/lockstep/cmd/lockstep").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for name, interrupt := range map[string]func(*testing.T, *testEnv){
		"one server after the other restarts": restartEachServer,
		"the leader is killed":                killAndRestartLeader,
		"no leader for 6 s":                   keepLeaderless,
	} {
		t.Run(name, func(t *testing.T) {
			for try := 1; !survive(t, env, lockstep, interrupt); try++ {
				require.Less(t, try, 4, "the machine is too busy for an interruption of a usual length")
			}
		})
	}
}

// ordinaryInterruption is the longest time for which no server serves in these tests if the machine
// is not too busy: 6 s, and an election.
const ordinaryInterruption = 10 * time.Second

var defaultTimeout = framework.Config{}.WithDefaults().SessionTimeout

// survive interrupts holds and commands, and requires that none ends. It returns false if the
// machine was so busy that the interruption took longer than ordinaryInterruption.
func survive(t *testing.T, env *testEnv, lockstep string, interrupt func(*testing.T, *testEnv)) bool {
	require.NoError(t, env.Await(t.Context()))
	holds := holdAtDefaults(t, env)
	var commands []*lockedCommand
	for i := range 2 {
		commands = append(commands, startLockedCommand(t, env, lockstep, i))
	}
	wait(t, defaultTimeout/2+randomBelow(defaultTimeout/4))
	longest := env.watchService(t)
	interrupt(t, env)
	if d := longest(); d > ordinaryInterruption {
		t.Logf("no server served for %v: once more", d)
		holds.release(t)
		for _, c := range commands {
			c.finish()
		}
		return false
	}
	holds.awaitHeartbeats(t)
	t.Logf("no server served for %v; %v of a lease was left at the least", longest(),
		holds.lowest.Round(time.Millisecond))
	for _, c := range commands {
		require.Equal(t, 4, c.finish(), c.printed.String())
		t.Logf("the output of the command's lockstep: %q", c.printed.String())
	}
	holds.release(t)
	return true
}

// watchService returns a function that returns the longest time, since the call, for which no
// leader has served.
func (env *testEnv) watchService(t *testing.T) (longest func() time.Duration) {
	var most atomic.Int64
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for last := time.Now(); ; {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			most.Store(max(most.Load(), int64(time.Since(last))))
			if env.Leader() >= 0 {
				last = time.Now()
			}
		}
	})
	t.Cleanup(sync.OnceFunc(func() { close(stop); watching.Wait() }))
	return func() time.Duration { return time.Duration(most.Load()).Round(time.Millisecond) }
}

func restartEachServer(t *testing.T, env *testEnv) {
	for i := range env.Size() {
		require.NoError(t, env.Kill(i))
		require.NoError(t, env.Restart(i))
		require.NoError(t, env.Await(t.Context()))
	}
}

func killAndRestartLeader(t *testing.T, env *testEnv) {
	leader := env.chooseRoles(t).leader
	require.NoError(t, env.Kill(leader))
	env.awaitLeader(t)
	require.NoError(t, env.Restart(leader))
	require.NoError(t, env.Await(t.Context()))
}

// keepLeaderless kills the leader, and isolates a follower for 6 s, so that the ensemble has no
// quorum and no leader.
func keepLeaderless(t *testing.T, env *testEnv) {
	r := env.chooseRoles(t)
	t.Cleanup(func() { env.healAndAwait(t) })
	require.NoError(t, env.Isolate(r.follower))
	require.NoError(t, env.Kill(r.leader))
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); wait(t, 100*time.Millisecond) {
		require.Equal(t, -1, env.Leader())
	}
	env.Heal()
	env.awaitLeader(t)
	require.NoError(t, env.Restart(r.leader))
	require.NoError(t, env.Await(t.Context()))
}

func (env *testEnv) awaitLeader(t *testing.T) {
	t.Helper()
	eventually(t, func() error { l := env.Leader(); return mismatch("a leader", l >= 0, l) })
}

// defaultHolds are holds of clients with the default configuration, and the shortest time that was
// left of a lease.
type defaultHolds struct {
	grants []*grant
	stop   func()
	lowest time.Duration // to be read once stop was called
}

// holdAtDefaults takes locks with several clients whose heartbeats are spread over their interval.
func holdAtDefaults(t *testing.T, env *testEnv) *defaultHolds {
	holds := &defaultHolds{grants: make([]*grant, 8), lowest: time.Hour}
	require.NoError(t, runConcurrently(len(holds.grants), func(i int) error {
		wait(t, defaultTimeout/4*time.Duration(i)/time.Duration(len(holds.grants)))
		client, err := connect(t, framework.Config{Servers: env.Addrs()})
		if err != nil {
			return err
		}
		session, err := client.Session(t.Context())
		if err := errors.Join(err, mismatch("the default session timeout", err != nil ||
			session.Timeout() == defaultTimeout, session)); err != nil {
			return err
		}
		// a try that took too long may have lost it
		history := &lockHistory{t: t, path: fmt.Sprintf("/%s/%d", t.Name(), i), naive: true}
		holds.grants[i], err = history.lock("the holder", client)
		return err
	}))
	stop := make(chan struct{})
	var watching sync.WaitGroup
	holds.stop = sync.OnceFunc(func() { close(stop); watching.Wait() })
	t.Cleanup(holds.stop)
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
			for _, g := range holds.grants {
				holds.lowest = min(holds.lowest, g.lease.Remaining())
			}
		}
	})
	return holds
}

// release releases the locks.
func (holds *defaultHolds) release(t *testing.T) {
	holds.stop()
	for _, g := range holds.grants {
		g.release(t.Context())
	}
}

// awaitHeartbeats waits until a heartbeat has extended each lease, and requires that no hold has
// ended.
func (holds *defaultHolds) awaitHeartbeats(t *testing.T) {
	t.Helper()
	for _, g := range holds.grants {
		eventually(t, func() error {
			left := g.lease.Remaining()
			return mismatch("a proven hold", g.hasEnded() || left > defaultTimeout*5/8, left)
		})
		require.False(t, g.hasEnded(), "the hold was lost: %v", g.lease.Err())
	}
	holds.stop()
}

// lockedCommand is a command under "lockstep lock" that ends with code 4 when a file exists.
type lockedCommand struct {
	printed bytes.Buffer
	finish  func() (code int)
}

func startLockedCommand(t *testing.T, env *testEnv, lockstep string, i int) *lockedCommand {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(lockstep, "lock", fmt.Sprintf("%s/%d", strings.ReplaceAll("/command/"+t.Name(), " ", "-"), i),
		"--zk", strings.Join(env.Addrs(), ","),
		"--", "sh", "-c", `touch "$0/ready"; while [ ! -e "$0/go" ]; do sleep 0.1; done; exit 4`, dir)
	cmd.WaitDelay = time.Second
	c := &lockedCommand{}
	cmd.Stdout, cmd.Stderr = &c.printed, &c.printed
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // the state says how it ended
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	eventually(t, func() error { _, err := os.Stat(filepath.Join(dir, "ready")); return err })
	c.finish = func() int {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o644))
		<-ended
		return cmd.ProcessState.ExitCode()
	}
	return c
}

//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// count has contenders processes at once add 1 to a number in a file, so many times each. Reading,
// adding and writing are separate, so that any two holders at once lose something. On a busy
// machine a holder may lose its lease: its command was ended before or after it has counted, and is
// run again.
func count(t *testing.T, s *stage, contenders, times int, lock ...string) {
	require.NoError(t, os.WriteFile(s.file("number"), []byte("0\n"), 0o644))
	const add = `n=$(cat "$DIR/number"); echo $((n + 1)) >"$DIR/number.$$"; mv "$DIR/number.$$" "$DIR/number"`
	failed := make(chan error, contenders)
	var ended atomic.Int64 // commands whose holder has lost its lease
	for range contenders {
		go func() {
			for counted := 0; counted < times; {
				p := s.start(append(lock, "--", "sh", "-c", add)...)
				<-p.ended
				switch code := p.cmd.ProcessState.ExitCode(); {
				case code == 0:
					counted++
				case code == cli.ExitLost && strings.Contains(read(p.err), "lease runs out"):
					ended.Add(1)
				default:
					failed <- fmt.Errorf("exit code %d: %s", code, read(p.err))
					return
				}
			}
			failed <- nil
		}()
	}
	for range contenders {
		require.NoError(t, <-failed)
	}
	n := number(t, read(s.file("number")))
	require.GreaterOrEqual(t, n, int64(contenders*times))
	require.LessOrEqual(t, n, int64(contenders*times)+ended.Load())
}

func TestTwentyProcessesCount(t *testing.T) {
	s := newStage(t)
	count(t, s, 20, 5, "lock", "counter")
	s.left()
}

// onEnsemble is the stage on the real servers, with a root of its own that goes with the test.
func onEnsemble(t *testing.T) (s *stage, root string) {
	s = onServers(t, strings.Join(ensemble.Shared(t), ","))
	root = "/lockstep-cli-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	s.env = append(s.env, "LOCKSTEP_ROOT="+root)
	t.Cleanup(func() { removeTree(t, s, root) })
	return s, root
}

func removeTree(t *testing.T, s *stage, path string, auth ...framework.Credential) {
	c, err := framework.New(framework.Config{Servers: strings.Split(s.servers, ","), Auth: auth})
	require.NoError(t, err)
	c.Start()
	ctx, cancel := context.WithTimeout(context.Background(), patience) // the test's has ended
	defer cancel()
	defer c.Close(ctx)
	var remove func(path string)
	remove = func(path string) {
		names, _, _ := c.Children(ctx, path)
		for _, name := range names {
			remove(znode.Join(path, name))
		}
		_ = c.Delete(ctx, path, framework.AnyVersion)
	}
	remove(path)
}

func TestTwentyProcessesCountOnAnEnsemble(t *testing.T) {
	s, _ := onEnsemble(t)
	each := 50
	if testing.Short() {
		each = 10
	}
	count(t, s, 20, each, "lock", "counter")
}

func TestAKilledHolderLetsTheNextIn(t *testing.T) {
	s, _ := onEnsemble(t)
	holder := s.start("lock", "demo", "--session-timeout", "4s", "--", "sh", "-c", "echo $$; exec sleep 1000")
	pid := holder.line(0)
	next := s.start("lock", "demo", "--", "sh", "-c", "echo $LOCKSTEP_TOKEN")
	holder.signal(syscall.SIGKILL)
	holder.wait()
	s.gone(pid)
	require.Equal(t, 0, next.wait())
	require.Positive(t, number(t, read(next.out)))
}

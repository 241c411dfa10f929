//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/zktest"
)

// copies makes copies of a node and all below it, with another name.
func (s *stage) copies(c *framework.Client, dir, name string, n int) {
	s.t.Helper()
	tree := s.zk.Tree(dir + name)
	for i := range n {
		var ops []framework.Op
		for _, node := range tree {
			ops = append(ops, framework.CreateOp(strings.ReplaceAll(node.Path, "/"+name,
				fmt.Sprintf("/%s-%03d", name, i)), node.Data, framework.Persistent))
		}
		_, err := c.Multi(s.t.Context(), ops...)
		require.NoError(s.t, err)
	}
}

// sent is how many requests a command has sent, without pings.
func (s *stage) sent(args ...string) (n int64, out string) {
	s.t.Helper()
	count := func() (n int64) {
		for op, sent := range s.zk.Requests() {
			if op != zktest.OpPing {
				n += sent
			}
		}
		return n
	}
	before := count()
	code, out, errs := s.run(args...)
	require.Contains(s.t, []int{0, 1}, code, errs)
	return count() - before, out
}

// TestCommandsReadManyNodesInOneRequest counts the requests of commands at 400 jobs with a
// scheduler each, 400 queues and 2,000 locks of 6 nodes.
func TestCommandsReadManyNodesInOneRequest(t *testing.T) {
	s := newStage(t)
	c := s.connected()
	p := s.start("cron", "demo", "0 3 * * *", "--", "true")
	s.queue("/lockstep/jobs/demo/members", 1)
	s.until("the owner", func() bool { return strings.Contains(s.ok("jobs", "demo"), "(leads)") })
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.wait())
	s.queue("/lockstep/jobs/demo/members", 0)
	s.copies(c, "/lockstep/jobs/", "demo", 399)
	q := queue.New(c, "/lockstep/queues/mails", codec.Bytes())
	require.NoError(t, q.Put(t.Context(), []byte("x")))
	require.NoError(t, q.Close(t.Context()))
	s.copies(c, "/lockstep/queues/", "mails", 399)
	makeLocks(t, c, 2000, 6)
	for _, command := range []struct {
		line  string
		most  int64
		lines int
		want  string
	}{
		{"jobs", 30, 401, "demo-398"},
		{"jobs --check", 30, 400, "demo-398\tno member runs it"},
		{"queue ls", 25, 401, "mails-398"},
		{"locks", 45, 2001, "l01999"},
		{"check", 140, 400, "/lockstep/jobs/demo-398\t"},
		{"doctor", 150, 0, "locks"},
	} {
		n, out := s.sent(strings.Fields(command.line)...)
		t.Logf("%s: %d requests", command.line, n)
		require.LessOrEqual(t, n, command.most, command.line)
		require.GreaterOrEqual(t, strings.Count(out, "\n"), command.lines, command.line)
		require.Contains(t, out, command.want, command.line)
	}
}

// makeLocks makes locks with so many contenders each.
func makeLocks(tb testing.TB, c *framework.Client, locks, contenders int) {
	tb.Helper()
	require.NoError(tb, c.MakeDirs(tb.Context(), cli.LocksDir))
	for i := range locks {
		dir := fmt.Sprintf("%s/l%05d", cli.LocksDir, i)
		ops := []framework.Op{framework.CreateOp(dir, nil, framework.Persistent)}
		for n := range contenders {
			node := fmt.Sprintf("%s/_c_00000000-0000-0000-0000-%012d-lock-%010d", dir, n, n)
			ops = append(ops, framework.CreateOp(node, []byte(`{"owner":"web-1","host":"10.0.0.1"}`),
				framework.Persistent))
		}
		_, err := c.Multi(tb.Context(), ops...)
		require.NoError(tb, err)
	}
}

// BenchmarkLocks prints 10,000 locks with 5 waiters each, on the servers of the shared ensemble or
// else on one in memory. A run must take 3 s at most.
func BenchmarkLocks(b *testing.B) {
	servers := os.Getenv(ensemble.ServersVariable)
	if servers == "" {
		address, err := zktest.Start(b).ListenTCP("127.0.0.1:0")
		require.NoError(b, err)
		servers = address
	}
	root := "/lockstep-bench-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	c, err := framework.New(framework.Config{Servers: strings.Split(servers, ","), Root: root})
	require.NoError(b, err)
	c.Start()
	defer c.Close(b.Context())
	makeLocks(b, c, 10_000, 6)
	defer func() {
		for i := range 10_000 {
			dir := fmt.Sprintf("%s/l%05d", cli.LocksDir, i)
			ops := []framework.Op{}
			for n := range 6 {
				ops = append(ops, framework.DeleteOp(fmt.Sprintf("%s/_c_00000000-0000-0000-0000-%012d-lock-%010d", dir,
					n, n), framework.AnyVersion))
			}
			_, err := c.Multi(b.Context(), append(ops, framework.DeleteOp(dir, framework.AnyVersion))...)
			require.NoError(b, err)
		}
	}()
	b.ResetTimer()
	for range b.N {
		cmd := exec.Command(program, "locks", "--zk", servers, "--root", root)
		cmd.Env = append(os.Environ(), testproc.Environment()...)
		out, err := cmd.Output()
		require.NoError(b, err)
		require.Equal(b, 10_001, bytes.Count(out, []byte("\n")))
	}
}

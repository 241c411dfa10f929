package faults

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// child is a process of its own that plays a role.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Reader
}

// spawn starts a child, which is killed after the test at the latest.
func spawn(t *testing.T, a *arena, role string, env ...string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+role, serversVariable+"="+strings.Join(a.Addrs(), ","))
	c.cmd.Env = append(c.cmd.Env, env...)
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = ownGroup()
	var err error
	c.stdin, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	c.lines = bufio.NewReader(stdout)
	require.NoError(t, c.cmd.Start())
	t.Cleanup(c.kill)
	return c
}

// kill may be called twice.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	_ = c.cmd.Wait()         // as it should, killed
}

// end waits for the child's own end.
func (c *child) end(t *testing.T) {
	t.Helper()
	timer := time.AfterFunc(patience, c.dump)
	defer timer.Stop()
	require.NoError(t, c.cmd.Wait())
}

// dump has the child print its goroutines and end.
func (c *child) dump() {
	_ = c.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended
	_ = continueProcess(c.cmd.Process)
}

// hear returns the value of the child's next line, which must begin with word.
func (c *child) hear(t *testing.T, word string) string {
	t.Helper()
	timer := time.AfterFunc(patience, c.dump)
	defer timer.Stop()
	line, err := c.lines.ReadString('\n')
	require.NoError(t, err)
	value, ok := strings.CutPrefix(strings.TrimSpace(line), word+" ")
	require.True(t, ok, "want %q from the child, got %q", word, line)
	return value
}

func (c *child) hearToken(t *testing.T) int64 {
	t.Helper()
	token, err := strconv.ParseInt(c.hear(t, "held"), 10, 64)
	require.NoError(t, err)
	return token
}

// takeover is a lock that a child holds until it is stopped, and the next holder in this process.
type takeover struct {
	path, target string
	client       *framework.Client
	child        *child
}

func newTakeover(t *testing.T, a *arena, role string) *takeover {
	o := &takeover{path: "/" + t.Name() + "/lock", target: "/" + t.Name() + "/target"}
	o.client = client(t, a.at(0, 1, 2))
	require.NoError(t, o.client.MakeDirs(t.Context(), "/"+t.Name()))
	require.NoError(t, o.client.Create(t.Context(), o.target, nil, framework.Persistent))
	o.child = spawn(t, a, role, pathVariable+"="+o.path, targetVariable+"="+o.target)
	return o
}

// wantText fails unless the protected node has this text.
func (o *takeover) wantText(t *testing.T, text string) {
	t.Helper()
	got, _, err := o.client.Get(t.Context(), o.target)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
}

// succeed waits for the lock, which only the end of the child's session can give, and writes.
func (o *takeover) succeed(t *testing.T, token int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lease, err := locks.NewMutex(o.client, o.path).Lock(ctx)
	require.NoError(t, err)
	require.Greater(t, lease.Token(), token, "the late one's token must be the lower one")
	_, err = o.client.Multi(ctx, lease.Guard(), framework.SetOp(o.target, []byte("next"), framework.AnyVersion))
	require.NoError(t, err)
}

// testFrozenProcess stops a holder's process until somebody else holds, and has it write then.
func testFrozenProcess(t *testing.T, a *arena) {
	o := newTakeover(t, a, "writer")
	token := o.child.hearToken(t)
	o.wantText(t, "in time")
	require.NoError(t, stopProcess(o.child.cmd.Process))
	o.succeed(t, token)
	_, err := fmt.Fprintln(o.child.stdin, "write") // what it finds when it wakes
	require.NoError(t, err)
	require.NoError(t, continueProcess(o.child.cmd.Process))
	require.Contains(t, o.child.hear(t, "lease"), framework.ErrSessionLost.Error())
	require.Contains(t, o.child.hear(t, "late"), framework.ErrSessionLost.Error())
	require.Contains(t, o.child.hear(t, "forced"), framework.ErrNoNode.Error())
	o.child.end(t)
	o.wantText(t, "next")
}

// testStoppedBeforeSending has the process stop between its last look at the lease and the sending:
// the servers must refuse what comes then.
func testStoppedBeforeSending(t *testing.T, a *arena) {
	o := newTakeover(t, a, "sleeper")
	token := o.child.hearToken(t)
	o.child.hear(t, "stop")
	require.NoError(t, stopProcess(o.child.cmd.Process))
	o.succeed(t, token)
	require.NoError(t, continueProcess(o.child.cmd.Process))
	require.NotEqual(t, "<nil>", o.child.hear(t, "late"))
	require.Contains(t, o.child.hear(t, "lease"), framework.ErrSessionLost.Error())
	o.child.end(t)
	o.wantText(t, "next")
}

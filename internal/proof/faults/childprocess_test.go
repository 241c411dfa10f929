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

// child is a child process that runs one of childMains.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Reader
}

// startChild starts a child, which is killed after the test.
func startChild(t *testing.T, env *testEnv, role string, variables ...string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+role, serversVariable+"="+strings.Join(env.Addrs(), ","))
	c.cmd.Env = append(c.cmd.Env, variables...)
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = newProcessGroup()
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

// kill kills the child, if it has not ended.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // fails if it has ended
	_ = c.cmd.Wait()         // reports the kill
}

// wait waits until the child ends by itself.
func (c *child) wait(t *testing.T) {
	t.Helper()
	timer := time.AfterFunc(waitLimit, c.dumpGoroutines)
	defer timer.Stop()
	require.NoError(t, c.cmd.Wait())
}

// dumpGoroutines lets the child print its goroutines and exit.
func (c *child) dumpGoroutines() {
	_ = c.cmd.Process.Signal(syscall.SIGQUIT) // fails if it has ended
	_ = continueProcess(c.cmd.Process)
}

// readLine reads the child's next line, which must begin with word, and returns its value.
func (c *child) readLine(t *testing.T, word string) string {
	t.Helper()
	timer := time.AfterFunc(waitLimit, c.dumpGoroutines)
	defer timer.Stop()
	line, err := c.lines.ReadString('\n')
	require.NoError(t, err)
	value, ok := strings.CutPrefix(strings.TrimSpace(line), word+" ")
	require.True(t, ok, "want %q from the child, got %q", word, line)
	return value
}

func (c *child) readToken(t *testing.T) int64 {
	t.Helper()
	token, err := strconv.ParseInt(c.readLine(t, "held"), 10, 64)
	require.NoError(t, err)
	return token
}

// processTakeover is a lock that a child holds until it is stopped, and that this process acquires
// then.
type processTakeover struct {
	path, target string
	client       *framework.Client
	child        *child
}

func newProcessTakeover(t *testing.T, env *testEnv, role string) *processTakeover {
	p := &processTakeover{path: "/" + t.Name() + "/lock", target: "/" + t.Name() + "/target"}
	p.client = mustConnect(t, env.clientConfig(0, 1, 2))
	require.NoError(t, p.client.MakeDirs(t.Context(), "/"+t.Name()))
	require.NoError(t, p.client.Create(t.Context(), p.target, nil, framework.Persistent))
	p.child = startChild(t, env, role, pathVariable+"="+p.path, targetVariable+"="+p.target)
	return p
}

// requireText requires that the protected node has a text. It reads after a sync, because another
// client may have written it.
func (p *processTakeover) requireText(t *testing.T, text string) {
	t.Helper()
	syncWithOthers(t, p.client)
	got, _, err := p.client.Get(t.Context(), p.target)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
}

// lockAndWrite waits for the lock, which is free when the child's session has ended, and writes.
func (p *processTakeover) lockAndWrite(t *testing.T, token int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	lease, err := locks.NewMutex(p.client, p.path).Lock(ctx)
	require.NoError(t, err)
	require.Greater(t, lease.Token(), token, "the stopped holder's token must be lower")
	_, err = p.client.Multi(ctx, lease.Guard(), framework.SetOp(p.target, []byte("next"), framework.AnyVersion))
	require.NoError(t, err)
}

// testFrozenProcess stops a holder's process until this process holds the lock. The continued
// process must not be able to write.
func testFrozenProcess(t *testing.T, env *testEnv) {
	p := newProcessTakeover(t, env, "writer")
	token := p.child.readToken(t)
	p.requireText(t, "in time")
	require.NoError(t, stopProcess(p.child.cmd.Process))
	p.lockAndWrite(t, token)
	_, err := fmt.Fprintln(p.child.stdin, "write") // it reads this after it continues
	require.NoError(t, err)
	require.NoError(t, continueProcess(p.child.cmd.Process))
	require.Contains(t, p.child.readLine(t, "lease"), framework.ErrSessionLost.Error())
	require.Contains(t, p.child.readLine(t, "late"), framework.ErrSessionLost.Error())
	require.Contains(t, p.child.readLine(t, "forced"), framework.ErrNoNode.Error())
	p.child.wait(t)
	p.requireText(t, "next")
}

// testStoppedBeforeSending stops the process after it has checked its lease and before it sends its
// write. The servers must refuse the write.
func testStoppedBeforeSending(t *testing.T, env *testEnv) {
	p := newProcessTakeover(t, env, "stopped sender")
	token := p.child.readToken(t)
	p.child.readLine(t, "stop")
	require.NoError(t, stopProcess(p.child.cmd.Process))
	p.lockAndWrite(t, token)
	_, err := fmt.Fprintln(p.child.stdin, "send") // it reads this after it continues
	require.NoError(t, err)
	require.NoError(t, continueProcess(p.child.cmd.Process))
	require.NotEqual(t, "<nil>", p.child.readLine(t, "late"))
	require.Contains(t, p.child.readLine(t, "lease"), framework.ErrSessionLost.Error())
	p.child.wait(t)
	p.requireText(t, "next")
}

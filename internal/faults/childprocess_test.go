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

// kill kills the child. It may be called twice.
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

// readLine returns the value of the child's next line, which must begin with word.
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

// processTakeover is a lock that a child holds until it is stopped, and that this process takes over.
type processTakeover struct {
	path, target string
	client       *framework.Client
	child        *child
}

func newProcessTakeover(t *testing.T, env *testEnv, role string) *processTakeover {
	o := &processTakeover{path: "/" + t.Name() + "/lock", target: "/" + t.Name() + "/target"}
	o.client = mustConnect(t, env.clientConfig(0, 1, 2))
	require.NoError(t, o.client.MakeDirs(t.Context(), "/"+t.Name()))
	require.NoError(t, o.client.Create(t.Context(), o.target, nil, framework.Persistent))
	o.child = startChild(t, env, role, pathVariable+"="+o.path, targetVariable+"="+o.target)
	return o
}

// requireText requires the text of the protected node, which another client may have written.
func (o *processTakeover) requireText(t *testing.T, text string) {
	t.Helper()
	syncWithOthers(t, o.client)
	got, _, err := o.client.Get(t.Context(), o.target)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
}

// lockAndWrite waits for the lock, which is free when the child's session has ended, and writes.
func (o *processTakeover) lockAndWrite(t *testing.T, token int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	lease, err := locks.NewMutex(o.client, o.path).Lock(ctx)
	require.NoError(t, err)
	require.Greater(t, lease.Token(), token, "the stopped holder's token must be lower")
	_, err = o.client.Multi(ctx, lease.Guard(), framework.SetOp(o.target, []byte("next"), framework.AnyVersion))
	require.NoError(t, err)
}

// testFrozenProcess stops a holder's process until this process holds the lock. The continued process must not be able to write.
func testFrozenProcess(t *testing.T, env *testEnv) {
	o := newProcessTakeover(t, env, "writer")
	token := o.child.readToken(t)
	o.requireText(t, "in time")
	require.NoError(t, stopProcess(o.child.cmd.Process))
	o.lockAndWrite(t, token)
	_, err := fmt.Fprintln(o.child.stdin, "write") // it reads this after it continues
	require.NoError(t, err)
	require.NoError(t, continueProcess(o.child.cmd.Process))
	require.Contains(t, o.child.readLine(t, "lease"), framework.ErrSessionLost.Error())
	require.Contains(t, o.child.readLine(t, "late"), framework.ErrSessionLost.Error())
	require.Contains(t, o.child.readLine(t, "forced"), framework.ErrNoNode.Error())
	o.child.wait(t)
	o.requireText(t, "next")
}

// testStoppedBeforeSending stops the process between the check of its lease and the sending of its write: the servers must refuse the
// write.
func testStoppedBeforeSending(t *testing.T, env *testEnv) {
	o := newProcessTakeover(t, env, "sleeper")
	token := o.child.readToken(t)
	o.child.readLine(t, "stop")
	require.NoError(t, stopProcess(o.child.cmd.Process))
	o.lockAndWrite(t, token)
	require.NoError(t, continueProcess(o.child.cmd.Process))
	require.NotEqual(t, "<nil>", o.child.readLine(t, "late"))
	require.Contains(t, o.child.readLine(t, "lease"), framework.ErrSessionLost.Error())
	o.child.wait(t)
	o.requireText(t, "next")
}

//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/testkit/logtest"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
	"github.com/lockstep-go/lockstep/zktest"
)

// program is the file of the program that the tests start.
var program = os.Args[0]

// TestMain makes this test binary the program itself when asked to, so that the tests run real
// processes with the same race detector and coverage as their own. With -short they run the program
// as users build it, which starts with a fraction of the work.
func TestMain(m *testing.M) {
	framework.WatchdogMain()
	if testproc.IsProgram() {
		os.Exit(runProgram())
	}
	flag.Parse()
	remove := func() {}
	if testing.Short() {
		var err error
		if remove, err = buildProgram(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		remove()
		os.Exit(code)
	}))
}

func buildProgram() (remove func(), err error) {
	dir, err := os.MkdirTemp("", "lockstep-")
	if err != nil {
		return nil, err
	}
	program = filepath.Join(dir, "lockstep")
	out, err := exec.Command("go", "build", "-race=false", "-buildvcs=false", "-o", program, ".").CombinedOutput()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("go build: %w: %s", err, out), os.RemoveAll(dir))
	}
	return func() { _ = os.RemoveAll(dir) }, nil
}

const patience = 60 * time.Second

// stage is a server and a directory for a test's processes.
type stage struct {
	t       *testing.T
	zk      *zktest.Server
	servers string
	dir     string
	env     []string
	in      *os.File // the standard input of what is started, or nil for none
}

func newStage(t *testing.T, opts ...zktest.Option) *stage {
	t.Helper()
	zk := zktest.Start(t, append([]zktest.Option{zktest.WithTick(500 * time.Millisecond),
		zktest.WithSessionTimeouts(time.Second, time.Minute)}, opts...)...)
	address, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	s := onServers(t, address)
	s.zk = zk
	return s
}

func onServers(t *testing.T, servers string) *stage {
	s := &stage{t: t, servers: servers, dir: t.TempDir()}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LOCKSTEP_") {
			s.env = append(s.env, v)
		}
	}
	s.env = append(append(s.env, testproc.Environment()...), "LOCKSTEP_SERVERS="+servers, "DIR="+s.dir)
	return s
}

// process is a lockstep that runs or has run.
type process struct {
	stage    *stage
	cmd      *exec.Cmd
	out, err string // files
	ended    chan struct{}
	terminal shownText // of startOnTerminal
}

// shownText is what a terminal shows.
type shownText struct {
	logtest.Buffer
	whole chan struct{} // closed when the program has closed the terminal
}

// start starts lockstep.
func (s *stage) start(args ...string) *process {
	s.t.Helper()
	p := &process{stage: s, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Env = s.env
	if s.in != nil {
		p.cmd.Stdin = s.in
	}
	dir, err := os.MkdirTemp(s.dir, "process")
	require.NoError(s.t, err)
	p.out, p.err = filepath.Join(dir, "out"), filepath.Join(dir, "err")
	out, err := os.Create(p.out)
	require.NoError(s.t, err)
	defer out.Close()
	errs, err := os.Create(p.err)
	require.NoError(s.t, err)
	defer errs.Close()
	p.cmd.Stdout, p.cmd.Stderr = out, errs
	require.NoError(s.t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the state says how it ended
	}()
	s.t.Cleanup(func() {
		if s.t.Failed() {
			testproc.QuitAll(p.cmd.Process) // if it hangs, its standard error says where
			<-p.ended
			s.t.Logf("lockstep %q\nstdout: %s\nstderr: %s", args, read(p.out), read(p.err))
		}
		_ = p.cmd.Process.Kill() // most have ended
		<-p.ended
	})
	return p
}

// environment is held while the environment of this process is that of a stage.
var environment sync.Mutex

// run runs lockstep to its end, in this process, with streams of its own. Only one call of all
// tests runs at a time.
func (s *stage) run(args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	environment.Lock()
	defer environment.Unlock()
	defer s.setEnvironment()()
	dir, err := os.MkdirTemp(s.dir, "run")
	require.NoError(s.t, err)
	open := func(name string, flag int) *os.File {
		f, err := os.OpenFile(name, flag, 0o600)
		require.NoError(s.t, err)
		s.t.Cleanup(func() { _ = f.Close() }) // a command that was left behind may have it
		return f
	}
	out, errs := filepath.Join(dir, "out"), filepath.Join(dir, "err")
	streams := &cli.Streams{In: s.in, Out: open(out, os.O_CREATE|os.O_WRONLY), Err: open(errs, os.O_CREATE|os.O_WRONLY)}
	if s.in == nil {
		streams.In = open(os.DevNull, os.O_RDONLY)
	}
	code = runCommandLine(s.t.Context(), streams, args)
	return code, read(out), read(errs)
}

// setEnvironment makes the variables of the stage those of this process, until restore is called.
// It touches no variable that stays the same: parallel tests read PATH and the like meanwhile.
func (s *stage) setEnvironment() (restore func()) {
	before := os.Environ()
	change := func(from, to []string) {
		stay := map[string]bool{}
		for _, v := range to {
			name, value, _ := strings.Cut(v, "=")
			stay[name] = true
			if now, set := os.LookupEnv(name); !set || now != value {
				require.NoError(s.t, os.Setenv(name, value))
			}
		}
		for _, v := range from {
			if name, _, _ := strings.Cut(v, "="); !stay[name] {
				require.NoError(s.t, os.Unsetenv(name))
			}
		}
	}
	change(before, s.env)
	return func() { change(s.env, before) }
}

// wait returns the exit code.
func (p *process) wait() int {
	p.stage.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		require.Fail(p.stage.t, "did not end")
	}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 1000 + int(status.Signal()) // no shell is between us and it: this is never an exit code
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (p *process) signal(s syscall.Signal) {
	p.stage.t.Helper()
	require.NoError(p.stage.t, p.cmd.Process.Signal(s))
}

// line waits for the n-th line of standard output, from 0.
func (p *process) line(n int) string {
	p.stage.t.Helper()
	return p.stage.line(p.out, n)
}

// fields waits for a line and splits it at tabs.
func (p *process) fields(n int) []string {
	p.stage.t.Helper()
	return strings.Split(p.line(n), "\t")
}

// file is a file in the stage's directory, $DIR to commands.
func (s *stage) file(name string) string { return filepath.Join(s.dir, name) }

// line waits for the n-th whole line of a file.
func (s *stage) line(file string, n int) string {
	s.t.Helper()
	var line string
	s.until("line "+strconv.Itoa(n)+" of "+file, func() bool {
		lines := strings.SplitAfter(read(file), "\n")
		if len(lines) <= n || !strings.HasSuffix(lines[n], "\n") {
			return false
		}
		line = strings.TrimSuffix(lines[n], "\n")
		return true
	})
	return line
}

func (s *stage) until(what string, ok func() bool) {
	s.t.Helper()
	require.Eventually(s.t, ok, patience, 5*time.Millisecond, what)
}

// queue waits until n contenders are below a path.
func (s *stage) queue(path string, n int) {
	s.t.Helper()
	s.until("contenders", func() bool { return len(s.zk.Children(path)) == n })
}

// members waits until a double barrier has n members.
func (s *stage) members(barrier string, n int) {
	s.t.Helper()
	s.until("members", func() bool {
		for _, name := range s.zk.Children(barrier) {
			if strings.HasPrefix(name, "in-") {
				return len(s.zk.Children(barrier+"/"+name)) == n
			}
		}
		return false
	})
}

// gone waits until a process has ended.
func (s *stage) gone(pid string) {
	s.t.Helper()
	n, err := strconv.Atoi(pid)
	require.NoError(s.t, err)
	s.until("the end of process "+pid, func() bool {
		if errors.Is(syscall.Kill(n, 0), syscall.ESRCH) {
			return true
		}
		return strings.Contains(read("/proc/"+pid+"/stat"), ") Z ") // nobody waits for it here
	})
}

// expire ends every session, as the servers do.
func (s *stage) expire() {
	s.t.Helper()
	sessions := s.zk.Sessions()
	require.NotEmpty(s.t, sessions)
	for _, session := range sessions {
		require.NoError(s.t, s.zk.Expire(session.ID))
	}
}

// left requires that nothing but directories and state is left.
func (s *stage) left() {
	s.t.Helper()
	require.False(s.t, slices.ContainsFunc(s.zk.Tree("/"),
		func(n zktest.Node) bool { return n.Mode == zktest.Ephemeral }))
	require.Empty(s.t, s.zk.Sessions())
}

func read(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(b)
}

func decode(t *testing.T, line string) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal([]byte(line), &v), line)
	return v
}

package ensemble

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// server is one ZooKeeper server. Between a Kill and a Restart it has no process.
type server struct {
	args     []string // of java
	java     string
	addr     string // clients' address
	logPath  string
	launcher *launcher

	mu       sync.Mutex
	cmd      *exec.Cmd
	exited   chan struct{} // closed when cmd has ended
	isKilled bool          // by us, and not started since
	logFrom  int64         // where the text of cmd begins in the log
}

func (s *server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil && !isClosed(s.exited) {
		return fmt.Errorf("ensemble: server %s runs already", s.addr)
	}
	log, err := os.OpenFile(s.logPath, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("ensemble: open the server's log: %w", err)
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return fmt.Errorf("ensemble: the server's log: %w", err)
	}
	cmd := exec.Command(s.java, s.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttr()
	if err := s.launcher.start(cmd); err != nil {
		return fmt.Errorf("ensemble: start a server: %w", err)
	}
	s.cmd, s.exited, s.isKilled, s.logFrom = cmd, make(chan struct{}), false, info.Size()
	go reap(cmd, s.exited)
	return nil
}

func reap(cmd *exec.Cmd, exited chan struct{}) {
	_ = cmd.Wait() // a killed server's status says nothing
	close(exited)
}

// signal applies f to the process, unless it has ended.
func (s *server) signal(f func(*os.Process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil || isClosed(s.exited) {
		return fmt.Errorf("ensemble: server %s: %w", s.addr, os.ErrProcessDone)
	}
	return f(s.cmd.Process)
}

// kill sends SIGKILL to the process, which may be frozen, and waits until it has ended.
func (s *server) kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isKilled = true
	if s.cmd == nil {
		return nil
	}
	err := s.cmd.Process.Kill()
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ensemble: kill server %s: %w", s.addr, err)
	}
	<-s.exited
	return nil
}

func (s *server) killed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isKilled
}

func (s *server) running() bool {
	return s.signal(func(*os.Process) error { return nil }) == nil
}

// log returns what the server has printed, in all its processes.
func (s *server) log() string {
	b, err := os.ReadFile(s.logPath)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// logTail returns the last lines that the server has printed.
func (s *server) logTail(lines int) string {
	all := strings.Split(strings.TrimSpace(s.log()), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// hasFailed reports whether the present process has printed that an error has stopped the server.
func (s *server) hasFailed() bool {
	s.mu.Lock()
	from := s.logFrom
	s.mu.Unlock()
	log, err := os.Open(s.logPath)
	if err != nil {
		return false
	}
	defer log.Close()
	printed, _ := io.ReadAll(io.NewSectionReader(log, from, math.MaxInt64-from))
	return bytes.Contains(printed, []byte("Severe unrecoverable error"))
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

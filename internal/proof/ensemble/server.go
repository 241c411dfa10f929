package ensemble

import (
	"errors"
	"fmt"
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
	cmd := exec.Command(s.java, s.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttr()
	if err := s.launcher.start(cmd); err != nil {
		return fmt.Errorf("ensemble: start a server: %w", err)
	}
	s.cmd, s.exited, s.isKilled = cmd, make(chan struct{}), false
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

// logTail returns the last lines that the server has printed.
func (s *server) logTail(lines int) string {
	b, err := os.ReadFile(s.logPath)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

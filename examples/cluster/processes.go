package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
)

var errAllEnded = errors.New("all members have ended")

// members are the member processes.
type members struct {
	events  chan event // closed when every member has ended
	byName  map[string]*process
	readers sync.WaitGroup
	stopped sync.Once
}

type process struct {
	cmd   *exec.Cmd
	stdin io.Closer // the member ends when it is closed
}

// startMembers starts this program several times, as members. The caller must call stop, also after an error.
func startMembers(o options, environment []string) (*members, error) {
	m := &members{events: make(chan event, 1024), byName: map[string]*process{}}
	self, err := os.Executable()
	for n := 1; err == nil && n <= o.members; n++ {
		err = m.start(self, fmt.Sprintf("member-%d", n), environment)
	}
	go func() {
		m.readers.Wait()
		close(m.events)
	}()
	return m, err
}

func (m *members) start(self, name string, environment []string) error {
	cmd := exec.Command(self)
	cmd.Env = append(environment, memberVariable+"=1", framework.EnvIdentity+"="+name)
	cmd.Stderr = os.Stderr
	demo.DieWithParent(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	m.byName[name] = &process{cmd, stdin}
	m.readers.Go(func() { m.read(stdout) })
	return nil
}

// read passes on a member's events until it ends.
func (m *members) read(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err == nil { // a killed member's last line may be cut off
			m.events <- e
		}
	}
}

// kill ends a member as a crash does.
func (m *members) kill(name string) bool {
	p := m.byName[name]
	return p != nil && p.cmd.Process.Kill() == nil
}

// stop closes the members' standard input and waits for their end. It kills a member that takes too long.
func (m *members) stop() {
	m.stopped.Do(func() {
		for _, p := range m.byName {
			_ = p.stdin.Close()
		}
		late := time.AfterFunc(5*time.Second, func() {
			for name := range m.byName {
				m.kill(name)
			}
		})
		defer late.Stop()
		m.readers.Wait() // first, because Wait closes the pipes
		for _, p := range m.byName {
			_ = p.cmd.Wait()
		}
	})
}

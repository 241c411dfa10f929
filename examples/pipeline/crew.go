package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
)

// crew is the workers' processes. One goroutine owns it, except for its readers.
type crew struct {
	self        string
	spared      int // see options
	environment []string
	events      chan event
	byName      map[string]*process
	readers     sync.WaitGroup
}

type process struct {
	seat, life int // "worker-2.3" is the third process in the second worker's place
	cmd        *exec.Cmd
	stdin      io.Closer // the worker ends when it is closed
	ready      bool
	killed     bool
}

// newCrew starts this program several times, as workers. After an error it has stopped all.
func newCrew(workers, spared int, environment []string) (*crew, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &crew{self: self, spared: spared, environment: environment, events: make(chan event, 1024), byName: map[string]*process{}}
	for seat := 1; seat <= workers; seat++ {
		if _, err := c.start(seat, 1); err != nil {
			c.stop()
			return nil, err
		}
	}
	return c, nil
}

func (c *crew) start(seat, life int) (name string, err error) {
	name = fmt.Sprintf("worker-%d.%d", seat, life)
	cmd := exec.Command(c.self)
	cmd.Env = append(slices.Clone(c.environment), framework.EnvIdentity+"="+name)
	cmd.Stderr = os.Stderr
	demo.DieWithParent(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return name, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return name, err
	}
	if err := cmd.Start(); err != nil {
		return name, err
	}
	c.byName[name] = &process{seat: seat, life: life, cmd: cmd, stdin: stdin}
	c.readers.Go(func() { c.read(name, stdout, cmd) })
	return name, nil
}

// read passes on a worker's events, and its end.
func (c *crew) read(name string, stdout io.Reader, cmd *exec.Cmd) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err == nil { // a killed worker's last line may be cut off
			c.events <- e
		}
	}
	end := event{Kind: ended, Worker: name, At: time.Now()}
	if err := cmd.Wait(); err != nil {
		end.Reason = err.Error()
	}
	c.events <- end
}

// alive is the number of processes that have not ended.
func (c *crew) alive() int { return len(c.byName) }

// heed notes that a worker is ready, and replaces one that was killed. It returns the error of a worker that failed by itself.
func (c *crew) heed(e event) (started string, err error) {
	p := c.byName[e.Worker]
	switch e.Kind {
	case ready:
		p.ready = true
	case ended:
		delete(c.byName, e.Worker)
		if p.killed {
			return c.start(p.seat, p.life+1)
		}
		if e.Reason != "" {
			return "", fmt.Errorf("%s has failed: %s", e.Worker, e.Reason)
		}
	}
	return "", nil
}

// victim picks a busy worker that is not spared: the leader if asked for, otherwise any. It may return "".
func (c *crew) victim(leader string, wantLeader bool) string {
	if p := c.byName[leader]; p != nil && p.seat <= c.spared {
		wantLeader = false
	}
	var names []string
	for name, p := range c.byName {
		if p.ready && !p.killed && p.seat > c.spared && (!wantLeader || name == leader) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return names[rand.IntN(len(names))]
}

// kill ends a worker as a crash does.
func (c *crew) kill(name string) bool {
	p := c.byName[name]
	p.killed = p.cmd.Process.Kill() == nil
	return p.killed
}

// stop closes the workers' standard input and waits for their end. It kills a worker that takes too long.
func (c *crew) stop() {
	for _, p := range c.byName {
		_ = p.stdin.Close() // it may have ended
	}
	gone := make(chan struct{})
	go func() {
		c.readers.Wait()
		close(gone)
	}()
	late := time.NewTimer(5 * time.Second)
	defer late.Stop()
	for {
		select {
		case <-c.events: // the events are no longer read
		case <-late.C:
			for _, p := range c.byName {
				_ = p.cmd.Process.Kill() // it may have ended
			}
		case <-gone:
			return
		}
	}
}

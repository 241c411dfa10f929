//go:build linux

package chaos

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/internal/ensemble"
)

// client is a place in the harness where one client process runs at a time, behind proxies of its own.
type client struct {
	number  int
	role    string
	proxies []*ensemble.Proxy // to the servers that it knows
	record  *record

	mu       sync.Mutex
	process  *process
	lives    int
	lastPace string
}

// process is one life of a client.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	heard chan struct{} // closed when all that it has said was heard, and it has ended
}

// start begins the next life.
func (c *client) start(seed uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lives++
	p := &process{name: fmt.Sprintf("c%d-%d", c.number, c.lives), cmd: exec.Command(os.Args[0]), heard: make(chan struct{})}
	var addrs []string
	for _, proxy := range c.proxies {
		addrs = append(addrs, proxy.Addr())
	}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+c.role, serversVariable+"="+strings.Join(addrs, ","),
		nameVariable+"="+p.name, fmt.Sprintf("%s=%d", seedVariable, seed), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is the harness's
	stdin, err1 := p.cmd.StdinPipe()
	stdout, err2 := p.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, p.cmd.Start()); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.stdin, c.process = stdin, p
	c.record.born(p.name)
	go p.listen(stdout, c.record)
	if c.lastPace != "" {
		fmt.Fprintln(p.stdin, c.lastPace)
	}
	return nil
}

// listen notes what the process says until it has ended.
func (p *process) listen(stdout io.Reader, r *record) {
	defer close(p.heard)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		e, err := readEvent(lines.Bytes())
		if err != nil {
			r.fault(fmt.Errorf("%s: %w", p.name, err))
			continue
		}
		r.note(p.name, e, lines.Text())
	}
	err := p.cmd.Wait()
	r.gone(p.name, err)
}

// order tells the process its pace, and the next lives too.
func (c *client) order(pace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastPace = pace
	fmt.Fprintln(c.process.stdin, pace) // a process that has ended is about to be started again
}

// kill ends the process as kill -9 does, and returns once all that it has said was heard.
func (c *client) kill() error {
	p := c.present()
	c.record.doomed(p.name)
	err := p.cmd.Process.Kill()
	<-p.heard
	return err
}

// end lets the process close its client, and waits for that. One that does not come to an end is killed, and found
// fault with; before, it prints its goroutines.
func (c *client) end() {
	p := c.present()
	c.record.dismissed(p.name)
	_ = p.stdin.Close() // it may have ended
	late := time.AfterFunc(patience, func() {
		c.record.fault(fmt.Errorf("%s does not end", p.name))
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	})
	defer late.Stop()
	<-p.heard
}

func (c *client) signal(s syscall.Signal) error { return c.present().cmd.Process.Signal(s) }

func (c *client) present() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process
}

// name is that of the present life.
func (c *client) name() string { return c.present().name }

// each does something to all links of the client.
func (c *client) each(f func(*ensemble.Proxy)) func() error {
	return func() error {
		for _, p := range c.proxies {
			f(p)
		}
		return nil
	}
}

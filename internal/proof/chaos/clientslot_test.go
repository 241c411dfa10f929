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

	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// clientSlot runs client processes, one after the other, behind proxies of its own.
type clientSlot struct {
	number  int
	role    string
	files   string            // the directory that its processes keep files in, one after the other
	sink    string            // the directory of the sinks of runs, of all processes
	proxies []*ensemble.Proxy // to the servers that it knows
	history *history

	mu        sync.Mutex
	process   *childProcess
	starts    int
	lastOrder string
}

// childProcess is one process of a slot.
type childProcess struct {
	name       string
	cmd        *exec.Cmd
	stdin      io.WriteCloser
	outputRead chan struct{} // closed when the process has ended and its output was read
}

// start starts the slot's next process.
func (c *clientSlot) start(seed uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starts++
	p := &childProcess{name: fmt.Sprintf("c%d-%d", c.number, c.starts), cmd: exec.Command(os.Args[0]),
		outputRead: make(chan struct{})}
	var addrs []string
	for _, proxy := range c.proxies {
		addrs = append(addrs, proxy.Addr())
	}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+c.role, serversVariable+"="+strings.Join(addrs, ","),
		nameVariable+"="+p.name, filesVariable+"="+c.files, sinkVariable+"="+c.sink,
		fmt.Sprintf("%s=%d", seedVariable, seed), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches the harness only
	stdin, err1 := p.cmd.StdinPipe()
	stdout, err2 := p.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, p.cmd.Start()); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.stdin, c.process = stdin, p
	c.history.processStarted(p.name)
	go p.readEvents(stdout, c.history)
	if c.lastOrder != "" {
		fmt.Fprintln(p.stdin, c.lastOrder)
	}
	return nil
}

// readEvents adds the process's events to the history until it ends.
func (p *childProcess) readEvents(stdout io.Reader, h *history) {
	defer close(p.outputRead)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		e, err := readEvent(lines.Bytes())
		if err != nil {
			h.addError(fmt.Errorf("%s: %w", p.name, err))
			continue
		}
		h.add(p.name, e, lines.Text())
	}
	err := p.cmd.Wait()
	h.processEnded(p.name, err)
}

// sendOrder sends the process an order. Later processes of the slot get it too.
func (c *clientSlot) sendOrder(order string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastOrder = order
	fmt.Fprintln(c.process.stdin, order) // fails for a killed process, which is started again soon
}

// kill sends SIGKILL to the process, and returns when all output of the process was read.
func (c *clientSlot) kill() error {
	p := c.current()
	c.history.expectKill(p.name)
	err := p.cmd.Process.Kill()
	<-p.outputRead
	return err
}

// stop closes the process's standard input and waits for its end. A process that does not end
// prints its goroutines, and is reported.
func (c *clientSlot) stop() {
	p := c.current()
	c.history.expectExit(p.name)
	_ = p.stdin.Close() // it may have ended
	late := time.AfterFunc(waitLimit, func() {
		c.history.addError(fmt.Errorf("%s did not end after its standard input was closed", p.name))
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	})
	defer late.Stop()
	<-p.outputRead
}

func (c *clientSlot) signal(s syscall.Signal) error { return c.current().cmd.Process.Signal(s) }

func (c *clientSlot) current() *childProcess {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process
}

// name is the current process's name.
func (c *clientSlot) name() string { return c.current().name }

// eachProxy returns a function that calls f with each proxy of the client.
func (c *clientSlot) eachProxy(f func(*ensemble.Proxy)) func() error {
	return func() error {
		for _, p := range c.proxies {
			f(p)
		}
		return nil
	}
}

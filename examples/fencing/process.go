package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
)

// cast are the holders' processes and their events.
type cast struct {
	environment []string
	events      chan event
	holders     []*process
	readers     sync.WaitGroup
}

type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser // a line ends the holder's pause; the holder ends when it is closed
}

func newCast(environment []string) *cast {
	return &cast{environment: environment, events: make(chan event, 1024)}
}

// start starts this program again, as a holder.
func (c *cast) start(p part) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(c.environment, partVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	demo.DieWithParent(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	holder := &process{cmd, stdin}
	c.holders = append(c.holders, holder)
	c.readers.Go(func() { c.read(p.Holder, stdout, cmd) })
	return holder, nil
}

// read passes on a holder's events, and its end.
func (c *cast) read(name string, stdout io.Reader, cmd *exec.Cmd) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err == nil { // a killed holder's last line may be cut off
			c.events <- e
		}
	}
	end := event{Kind: ended, Holder: name, At: time.Now()}
	if err := cmd.Wait(); err != nil {
		end.Reason = err.Error()
	}
	c.events <- end
}

// goOn continues a frozen holder, and ends its pause.
func (p *process) goOn() error {
	if _, err := fmt.Fprintln(p.stdin, "go on"); err != nil {
		return err
	}
	return thaw(p.cmd.Process)
}

// stop kills all processes, also frozen ones, and waits for their end.
func (c *cast) stop() {
	for _, p := range c.holders {
		_ = p.cmd.Process.Kill() // fails if it has ended
	}
	c.readers.Wait()
}

package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// patience is how long a peer may take to end.
const patience = time.Minute

// errEnded is returned when a peer ends before it answers.
var errEnded = errors.New("it has ended")

// Peer is a child process that uses another library and obeys commands. Its methods may be called
// concurrently.
type Peer struct {
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr *tail // on standard error

	mu    sync.Mutex // also of writing
	last  int
	asked map[int]chan Answer

	ended chan struct{}
	err   error // how it ended; valid after ended is closed
}

// start runs a peer's program.
func start(name string, cmd *exec.Cmd) (*Peer, error) {
	p := &Peer{name: name, cmd: cmd, stderr: &tail{}, asked: map[int]chan Answer{}, ended: make(chan struct{})}
	cmd.Stderr, cmd.WaitDelay = p.stderr, patience
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("interop: %s: %w", name, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("interop: %s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("interop: %s: %w", name, err)
	}
	p.in = in
	go p.readAnswers(out)
	return p, nil
}

// readAnswers passes answers to their callers until the peer ends.
func (p *Peer) readAnswers(out io.Reader) {
	var err error
	for d := json.NewDecoder(out); err == nil; {
		var a Answer
		if err = d.Decode(&a); err == nil {
			err = p.deliver(a)
		}
	}
	if !errors.Is(err, io.EOF) { // it would block on a pipe without a reader
		_ = p.cmd.Process.Kill() // fails only if it has ended
		p.err = err
	}
	p.err = errors.Join(p.err, p.cmd.Wait())
	close(p.ended)
}

func (p *Peer) deliver(a Answer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked, ok := p.asked[a.ID]
	if !ok {
		return fmt.Errorf("an answer to %d, which was not asked", a.ID)
	}
	delete(p.asked, a.ID)
	asked <- a // has room
	return nil
}

// Do sends the peer a command and waits for its answer, or until ctx ends; the peer carries the
// command out in any case. The error includes the peer's stack trace, if any, and the end of its
// standard error.
func (p *Peer) Do(ctx context.Context, c Command) (Answer, error) {
	asked, err := p.ask(&c)
	if err != nil {
		return Answer{}, p.failed(c, err)
	}
	select {
	case a := <-asked:
		if a.Error != "" {
			return a, p.failed(c, errors.New(a.Error))
		}
		return a, nil
	case <-p.ended:
		return Answer{}, p.failed(c, errors.Join(errEnded, p.err))
	case <-ctx.Done():
		return Answer{}, p.failed(c, context.Cause(ctx))
	}
}

// ask writes a command and returns the channel of its answer.
func (p *Peer) ask(c *Command) (<-chan Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	c.ID = p.last
	line, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	asked := make(chan Answer, 1)
	p.asked[c.ID] = asked
	_, err = p.in.Write(append(line, '\n'))
	return asked, err
}

func (p *Peer) failed(c Command, err error) error {
	return fmt.Errorf("interop: %s, %s %s%s: %w\n%s", p.name, c.Do, c.Client, c.Lock, err, p.stderr)
}

// Close ends the peer, and kills it if that takes too long. It returns an error if the peer has
// ended with one.
func (p *Peer) Close() error {
	_ = p.in.Close() // fails only if it has ended
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = p.cmd.Process.Kill() // fails only if it has ended
		<-p.ended
	}
	if p.err != nil {
		return fmt.Errorf("interop: %s: %w\n%s", p.name, p.err, p.stderr)
	}
	return nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// maxTail is how many bytes are kept. It is enough for several stack traces.
const maxTail = 16 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	t.kept = t.kept[max(0, len(t.kept)-maxTail):]
	return len(b), nil
}

// String returns what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}

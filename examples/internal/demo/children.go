package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// childVariable is set in a child process that Children.Start has started. Its value is the child's
// name.
const childVariable = "LOCKSTEP_EXAMPLE_CHILD"

// IsChild reports whether this process was started by Children.Start.
func IsChild() bool { return os.Getenv(childVariable) != "" }

// Main is the main function of an example with child processes; only framework.WatchdogMain comes
// before it. In a child process it calls child. In the program itself it calls perform with the
// arguments; an interrupt ends the context. Main does not return.
func Main(name string, child func(context.Context, *Parent) error,
	perform func(ctx context.Context, args []string) error) {
	runtime.LockOSThread() // children are killed when the thread that starts them ends
	if IsChild() {
		os.Exit(runChild(child))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(ExitStatus(name, perform(ctx, os.Args[1:])))
}

// ChildEvent is an event that a child process has sent, or its end.
type ChildEvent[E any] struct {
	Child string
	At    time.Time // when the child sent it, or when the parent saw the end
	Event E
	Ended bool  // the process has ended; there is no event
	Err   error // how it has ended: nil means with exit status 0
}

// sentEvent is a line that a child writes to its standard output.
type sentEvent[E any] struct {
	At    time.Time `json:"at"`
	Event E         `json:"event"`
}

// Children are child processes that run this program. Each sends events of type E, as lines of JSON
// on its standard output.
type Children[E any] struct {
	// Events receives the events and ends of all processes. Read it until the call of Stop.
	Events chan ChildEvent[E]
	// KillAfter is how long Stop waits for a child to end before it kills the child, 5 seconds
	// unless it is changed.
	KillAfter time.Duration

	environment []string
	readers     sync.WaitGroup

	mu        sync.Mutex
	processes map[string]*childProcess // those that have not ended
}

type childProcess struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser // a line is "continue"; its end ends the child
	frozen bool
}

// NewChildren returns Children whose processes get this environment; Environment makes one. The
// caller must call Stop.
func NewChildren[E any](environment []string) *Children[E] {
	return &Children[E]{Events: make(chan ChildEvent[E], 1024), environment: environment,
		KillAfter: 5 * time.Second, processes: map[string]*childProcess{}}
}

// Start starts this program again, as a child with a name that no other running child has. The
// child's environment has further variables ("NAME=value").
func (c *Children[E]) Start(name string, variables ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(slices.Concat(c.environment, variables), childVariable+"="+name, framework.EnvIdentity+"="+name)
	cmd.Stderr = os.Stderr
	DieWithParent(cmd)
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
	c.mu.Lock()
	c.processes[name] = &childProcess{cmd: cmd, stdin: stdin}
	c.mu.Unlock()
	c.readers.Go(func() { c.read(name, stdout, cmd) })
	return nil
}

// read sends a child's events, and then its end, to Events.
func (c *Children[E]) read(name string, stdout io.Reader, cmd *exec.Cmd) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var e sentEvent[E]
		if err := json.Unmarshal(lines.Bytes(), &e); err == nil { // a killed child's last line may be cut off
			c.Events <- ChildEvent[E]{Child: name, At: e.At, Event: e.Event}
		}
	}
	err := cmd.Wait()
	c.mu.Lock()
	delete(c.processes, name)
	c.mu.Unlock()
	c.Events <- ChildEvent[E]{Child: name, At: time.Now(), Ended: true, Err: err}
}

// errChildEnded is returned for a child that has ended.
var errChildEnded = errors.New("the child has ended")

// on calls f with a child, or returns an error if the child has ended.
func (c *Children[E]) on(name string, f func(*childProcess) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.processes[name]; p != nil {
		return f(p)
	}
	return fmt.Errorf("%s: %w", name, errChildEnded)
}

// Continue lets a child return from Parent.AwaitContinue. It does nothing if the child has ended.
func (c *Children[E]) Continue(name string) {
	_ = c.on(name, func(p *childProcess) error { _, err := fmt.Fprintln(p.stdin, "continue"); return err })
}

// Kill kills a child, so that it ends as in a crash. It returns false if the child has ended
// before.
func (c *Children[E]) Kill(name string) bool {
	return c.on(name, func(p *childProcess) error { return p.cmd.Process.Kill() }) == nil
}

// End ends the context of a child, as Stop does. It does nothing if the child has ended.
func (c *Children[E]) End(name string) {
	_ = c.on(name, func(p *childProcess) error { return p.stdin.Close() })
}

// Freeze stops a child (SIGSTOP) as a long pause does: its connections stay open, and none of its
// threads runs.
func (c *Children[E]) Freeze(name string) error {
	return c.on(name, func(p *childProcess) error { p.frozen = true; return freeze(p.cmd.Process) })
}

// Resume lets a frozen child run again (SIGCONT).
func (c *Children[E]) Resume(name string) error {
	return c.on(name, func(p *childProcess) error { p.frozen = false; return resume(p.cmd.Process) })
}

// Stop closes the standard input of all children and waits until they have ended. It kills frozen
// children, and those that take longer than KillAfter. Start must not be called any more.
func (c *Children[E]) Stop() { c.StopAndHandle(func(ChildEvent[E]) {}) }

// StopAndHandle is like Stop, and calls handle with each event that was not yet read from Events.
func (c *Children[E]) StopAndHandle(handle func(ChildEvent[E])) {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.processes))
	for _, p := range all {
		_ = p.stdin.Close()
		if p.frozen {
			_ = p.cmd.Process.Kill()
		}
	}
	c.mu.Unlock()
	late := time.AfterFunc(c.KillAfter, func() {
		for _, p := range all {
			_ = p.cmd.Process.Kill()
		}
	})
	defer late.Stop()
	ended := make(chan struct{})
	go func() {
		c.readers.Wait()
		close(ended)
	}()
	for {
		select {
		case received := <-c.Events:
			handle(received)
		case <-ended:
			for len(c.Events) > 0 {
				handle(<-c.Events)
			}
			return
		}
	}
}

// Parent is a child's connection to its parent process.
type Parent struct {
	Name string // of this child

	continued chan struct{}
	mu        sync.Mutex
	out       *json.Encoder
}

// errStopped is the cause of the end of a child's context.
var errStopped = errors.New("the parent has stopped this process, or has ended")

// runChild is the main function of a child. The context ends when the parent closes the child's
// standard input, or dies. It returns the exit status. An error that wraps the cause of that end is
// no failure.
func runChild(run func(ctx context.Context, parent *Parent) error) int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // Ctrl-C reaches all processes; the parent decides
	ctx, cancel := context.WithCancelCause(context.Background())
	p := &Parent{Name: os.Getenv(childVariable), continued: make(chan struct{}), out: json.NewEncoder(os.Stdout)}
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			select {
			case p.continued <- struct{}{}:
			case <-ctx.Done():
			}
		}
		cancel(errStopped)
	}()
	err := run(ctx, p)
	if err != nil && !errors.Is(err, errStopped) && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
		return ExitBroken
	}
	return 0
}

// Send sends the parent an event.
func (p *Parent) Send(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.out.Encode(sentEvent[any]{time.Now(), event}) // fails without a parent
}

// AwaitContinue waits until the parent calls Children.Continue.
func (p *Parent) AwaitContinue(ctx context.Context) error {
	select {
	case <-p.continued:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

package watchdog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// tellLimit is how long a watchdog may leave its pipe full: for ever, if it is stopped.
	tellLimit = 50 * time.Millisecond
	// armLimit is the same for the first, large message, and startLimit for the next ones: the watchdog may not
	// be reading yet.
	armLimit   = 5 * time.Second
	startLimit = 500 * time.Millisecond
	// endLimit is how long a watchdog may take to end after the farewell.
	endLimit = time.Second
	// firstPause and lastPause bound the pauses before a watchdog that has ended is started again.
	firstPause = 10 * time.Millisecond
	lastPause  = 30 * time.Second
)

// Keeper keeps a watchdog beside this process: it starts one with the first session, tells it what changes, and
// starts another when it ends. All methods may be called at any time, from several goroutines; they do not wait
// for the watchdog, Close excepted.
type Keeper struct {
	log    *slog.Logger
	launch func() (*process, error)
	warned bool // the loop's own

	start   sync.Once
	closing chan struct{}
	closed  sync.Once
	stopped chan struct{} // closed when the loop has ended

	mu       sync.Mutex
	access   Access
	session  *Session
	commands map[int64]*kept
	next     int64
	present  *process // that is told what changes
}

// kept is a command, as its watchdog knows it.
type kept struct {
	epoch int64
	until time.Duration
	runs  *runs
}

// NewKeeper returns a Keeper that has started nothing. Its log gets one warning if there can be no watchdog.
func NewKeeper(a Access, log *slog.Logger) *Keeper {
	return &Keeper{
		access: a, log: log, launch: launch, closing: make(chan struct{}), stopped: make(chan struct{}), commands: map[int64]*kept{},
	}
}

// Trust adds authorities, in DER, that servers were verified by.
func (k *Keeper) Trust(roots [][]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.access.TLS == nil || !k.access.TLS.OwnRoots {
		return
	}
	changed := *k.access.TLS
	changed.Roots = slices.Clone(changed.Roots)
	for _, root := range roots {
		if !slices.ContainsFunc(changed.Roots, func(known []byte) bool { return bytes.Equal(known, root) }) {
			changed.Roots = append(changed.Roots, root)
		}
	}
	if len(changed.Roots) > len(k.access.TLS.Roots) {
		k.access.TLS = &changed
		k.tell(k.access)
	}
}

// Follow makes s the session to close, unless a later one is known.
func (k *Keeper) Follow(s Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session != nil && k.session.Epoch > s.Epoch {
		return
	}
	k.session = &s
	k.tell(s)
	k.start.Do(func() { go k.keep() })
}

// Lease says how much of the lease of an epoch's session is left, by a clock that is read when it is called.
func (k *Keeper) Lease(epoch int64, left func() time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.concerned(epoch) {
		return
	}
	at := now() // first: what stops this process here makes the end earlier, not later
	until := at + left()
	for _, c := range k.commands {
		if c.epoch == epoch {
			c.until = max(c.until, until)
		}
	}
	k.tell(lease{epoch, until})
}

// concerned reports whether a command runs in an epoch: nobody else needs to know of leases.
func (k *Keeper) concerned(epoch int64) bool {
	for _, c := range k.commands {
		if c.epoch == epoch {
			return true
		}
	}
	return false
}

// Begin announces a command for an epoch's session, to be called before the command is started. Its lease is to
// be told afterwards.
func (k *Keeper) Begin(epoch int64) (id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next++
	k.commands[k.next] = &kept{epoch: epoch}
	k.tell(begin{k.next, epoch})
	return k.next
}

// Runs says that a command runs as a process that nobody has waited for yet.
func (k *Keeper) Runs(id int64, pid int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.commands[id]; c != nil {
		command, err := identify(pid)
		if err != nil {
			k.log.Warn("the watchdog cannot identify a command: should this process die, its session ends by its timeout only", "pid", pid, "cause", err)
		}
		c.runs = &runs{id, command}
		k.tell(*c.runs)
	}
}

// Over says that a command has ended, or was not started.
func (k *Keeper) Over(id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.commands, id)
	k.tell(over{id})
}

// tell tells the watchdog. One that does not listen is of no use, and is replaced.
func (k *Keeper) tell(messages ...message) {
	if k.present == nil {
		return
	}
	if err := k.present.send(tellLimit, messages...); err != nil {
		k.present.kill()
		k.present = nil
	}
}

// Close ends the watchdog, which does nothing more, and returns when nothing of it is left.
func (k *Keeper) Close() {
	k.closed.Do(func() { close(k.closing) })
	k.start.Do(func() { close(k.stopped) })
	<-k.stopped
}

// keep starts watchdogs until Close is called, or none can be had.
func (k *Keeper) keep() {
	defer close(k.stopped)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		began := time.Now()
		err := k.employ()
		if time.Since(began) > lastPause {
			pause = firstPause
		}
		if err != nil && !k.warned {
			k.warned = true
			k.log.Warn("no watchdog: should this process die, what it holds is free only after the session timeout", "cause", err)
		}
		if errors.Is(err, ErrUnsupported) || !k.rest(pause) {
			return
		}
	}
}

// rest pauses; false when Close was called.
func (k *Keeper) rest(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-k.closing:
		return false
	}
}

// employ starts a watchdog and stays until it has ended. The error says that it was none.
func (k *Keeper) employ() error {
	began := time.Now()
	p, err := k.launch()
	if err != nil {
		return fmt.Errorf("start it: %w", err)
	}
	if err := k.instruct(p); err != nil {
		p.end(0)
		return errNotReady
	}
	ready := p.ready
	for {
		select {
		case <-ready:
			ready = nil
			k.log.Debug("watchdog armed", "pid", p.os.Pid, "after", time.Since(began))
		case <-p.gone:
			k.dismiss(p)
			return k.verdict(p)
		case <-k.closing:
			k.dismiss(p)
			return nil
		}
	}
}

// verdict is nil for a watchdog that was ready before it ended.
func (k *Keeper) verdict(p *process) error {
	select {
	case <-p.ready:
		k.log.Debug("the watchdog has ended, and is started again", "pid", p.os.Pid)
		return nil
	default:
		return errNotReady
	}
}

// instruct tells a new watchdog all there is to know, and makes it the present one.
func (k *Keeper) instruct(p *process) error {
	k.mu.Lock()
	access := k.access
	k.mu.Unlock()
	if err := p.send(armLimit, access); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []message
	if k.access.TLS != access.TLS {
		all = append(all, k.access)
	}
	for id, c := range k.commands {
		all = append(all, begin{id, c.epoch})
		if c.until != 0 {
			all = append(all, lease{c.epoch, c.until})
		}
		if c.runs != nil {
			all = append(all, *c.runs)
		}
	}
	if err := p.send(startLimit, append(all, *k.session)...); err != nil {
		return err
	}
	k.present = p
	return nil
}

// dismiss says farewell to a watchdog and waits until it has ended.
func (k *Keeper) dismiss(p *process) {
	k.mu.Lock()
	k.present = nil
	k.mu.Unlock()
	if err := p.send(tellLimit, farewell{}); err != nil { // without it, the pipe's end would mean a crash
		p.end(0)
		return
	}
	p.hangUp()
	p.end(endLimit)
}

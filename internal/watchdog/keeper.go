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
	// updateTimeout is how long the pipe may stay full. A stopped watchdog does not read it.
	updateTimeout = 50 * time.Millisecond
	// firstSendTimeout is the same for the first, large message, and stateSendTimeout for the next ones: the watchdog may not
	// be reading yet.
	firstSendTimeout = 5 * time.Second
	stateSendTimeout = 500 * time.Millisecond
	// exitTimeout is how long a watchdog may take to end after the closing message.
	exitTimeout = time.Second
	// firstRestartDelay and maxRestartDelay limit the pauses before a watchdog that has ended is started again.
	firstRestartDelay = 10 * time.Millisecond
	maxRestartDelay   = 30 * time.Second
)

// Keeper keeps a watchdog running beside this process: it starts one with the first session, sends it updates, and
// starts another when it ends. All methods may be called at any time, from several goroutines; they do not wait
// for the watchdog, Close excepted.
type Keeper struct {
	log          *slog.Logger
	startProcess func() (*watchdogProcess, error)
	warned       bool // the loop's own

	startOnce sync.Once
	closing   chan struct{}
	closeOnce sync.Once
	stopped   chan struct{} // closed when the loop has ended

	mu          sync.Mutex
	access      Access
	session     *Session
	commands    map[int64]*registeredCommand
	lastCommand int64
	current     *watchdogProcess // that is told what changes
}

// registeredCommand is what the watchdog must know of a command.
type registeredCommand struct {
	epoch    int64
	leaseEnd time.Duration
	started  *commandStarted
}

// NewKeeper returns a Keeper. It starts a watchdog with the first session. Its log gets one warning if no watchdog can run.
func NewKeeper(a Access, log *slog.Logger) *Keeper {
	return &Keeper{
		access: a, log: log, startProcess: startWatchdog, closing: make(chan struct{}), stopped: make(chan struct{}), commands: map[int64]*registeredCommand{},
	}
}

// AddRoots adds the authorities, in DER, that verified the servers.
func (k *Keeper) AddRoots(roots [][]byte) {
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
		k.sendUpdate(k.access)
	}
}

// SetSession makes s the session to close, unless a later one is known.
func (k *Keeper) SetSession(s Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session != nil && k.session.Epoch > s.Epoch {
		return
	}
	k.session = &s
	k.sendUpdate(s)
	k.startOnce.Do(func() { go k.runWatchdogs() })
}

// ExtendLease sends the time that is left of the lease of an epoch's session. It reads the clock before it calls left.
func (k *Keeper) ExtendLease(epoch int64, left func() time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.hasCommand(epoch) {
		return
	}
	at := leaseClock() // first: if this process stops here, the end becomes earlier, not later
	until := at + left()
	for _, c := range k.commands {
		if c.epoch == epoch {
			c.leaseEnd = max(c.leaseEnd, until)
		}
	}
	k.sendUpdate(leaseExtended{epoch, until})
}

// hasCommand reports whether a command runs in an epoch. The watchdog uses leases for commands only.
func (k *Keeper) hasCommand(epoch int64) bool {
	for _, c := range k.commands {
		if c.epoch == epoch {
			return true
		}
	}
	return false
}

// BeginCommand announces a command for an epoch's session. Call it before the command starts, and ExtendLease
// afterwards.
func (k *Keeper) BeginCommand(epoch int64) (id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lastCommand++
	k.commands[k.lastCommand] = &registeredCommand{epoch: epoch}
	k.sendUpdate(commandBegins{k.lastCommand, epoch})
	return k.lastCommand
}

// CommandStarted names the process of a command. Call it before the wait for the process.
func (k *Keeper) CommandStarted(id int64, pid int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.commands[id]; c != nil {
		command, err := identifyProcess(pid)
		if err != nil {
			k.log.Warn("the watchdog cannot identify a command: should this process die, its session ends by its timeout only", "pid", pid, "cause", err)
		}
		c.started = &commandStarted{id, command}
		k.sendUpdate(*c.started)
	}
}

// CommandEnded reports that a command has ended, or was not started.
func (k *Keeper) CommandEnded(id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.commands, id)
	k.sendUpdate(commandEnded{id})
}

// sendUpdate sends messages to the watchdog. It kills a watchdog that does not read; runWatchdogs replaces it.
func (k *Keeper) sendUpdate(messages ...message) {
	if k.current == nil {
		return
	}
	if err := k.current.sendMessages(updateTimeout, messages...); err != nil {
		k.current.killProcess()
		k.current = nil
	}
}

// Close ends the watchdog without closing the session, and returns when its process has ended.
func (k *Keeper) Close() {
	k.closeOnce.Do(func() { close(k.closing) })
	k.startOnce.Do(func() { close(k.stopped) })
	<-k.stopped
}

// runWatchdogs starts one watchdog after the other until Close is called, or the system does not support them.
func (k *Keeper) runWatchdogs() {
	defer close(k.stopped)
	for pause := firstRestartDelay; ; pause = min(2*pause, maxRestartDelay) {
		began := time.Now()
		err := k.runWatchdog()
		if time.Since(began) > maxRestartDelay {
			pause = firstRestartDelay
		}
		if err != nil && !k.warned {
			k.warned = true
			k.log.Warn("no watchdog: should this process die, what it holds is free only after the session timeout", "cause", err)
		}
		if errors.Is(err, ErrUnsupported) || !k.waitToRestart(pause) {
			return
		}
	}
}

// waitToRestart pauses. It returns false if Close was called.
func (k *Keeper) waitToRestart(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-k.closing:
		return false
	}
}

// runWatchdog starts a watchdog and returns when it has ended. It returns an error if the watchdog was not ready.
func (k *Keeper) runWatchdog() error {
	began := time.Now()
	p, err := k.startProcess()
	if err != nil {
		return fmt.Errorf("start it: %w", err)
	}
	if err := k.sendState(p); err != nil {
		p.waitOrKill(0)
		return errNotReady
	}
	ready := p.ready
	for {
		select {
		case <-ready:
			ready = nil
			k.log.Debug("watchdog armed", "pid", p.os.Pid, "after", time.Since(began))
		case <-p.exited:
			k.closeWatchdog(p)
			return k.exitError(p)
		case <-k.closing:
			k.closeWatchdog(p)
			return nil
		}
	}
}

// exitError is nil for a watchdog that was ready before it ended.
func (k *Keeper) exitError(p *watchdogProcess) error {
	select {
	case <-p.ready:
		k.log.Debug("the watchdog has ended, and is started again", "pid", p.os.Pid)
		return nil
	default:
		return errNotReady
	}
}

// sendState sends the whole state to a new watchdog, and makes it the current one.
func (k *Keeper) sendState(p *watchdogProcess) error {
	k.mu.Lock()
	access := k.access
	k.mu.Unlock()
	if err := p.sendMessages(firstSendTimeout, access); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []message
	if k.access.TLS != access.TLS {
		all = append(all, k.access)
	}
	for id, c := range k.commands {
		all = append(all, commandBegins{id, c.epoch})
		if c.leaseEnd != 0 {
			all = append(all, leaseExtended{c.epoch, c.leaseEnd})
		}
		if c.started != nil {
			all = append(all, *c.started)
		}
	}
	if err := p.sendMessages(stateSendTimeout, append(all, *k.session)...); err != nil {
		return err
	}
	k.current = p
	return nil
}

// closeWatchdog tells a watchdog that this process closes it, and waits until it has ended.
func (k *Keeper) closeWatchdog(p *watchdogProcess) {
	k.mu.Lock()
	k.current = nil
	k.mu.Unlock()
	if err := p.sendMessages(updateTimeout, parentCloses{}); err != nil { // without it, the pipe's end would mean a crash
		p.waitOrKill(0)
		return
	}
	p.closePipe()
	p.waitOrKill(exitTimeout)
}

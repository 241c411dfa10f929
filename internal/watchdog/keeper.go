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
	// updateTimeout is how long the socket may stay full before the Keeper replaces the watchdog. A
	// stopped watchdog does not read the socket.
	updateTimeout = 50 * time.Millisecond
	// firstSendTimeout is the same for the first, large message, and stateSendTimeout for the rest
	// of the state. The watchdog may not read yet.
	firstSendTimeout = 5 * time.Second
	stateSendTimeout = 500 * time.Millisecond
	// exitTimeout is how long a watchdog may take to end after the closing message.
	exitTimeout = time.Second
	// firstRestartDelay and maxRestartDelay limit the pauses before a watchdog that has ended is
	// started again.
	firstRestartDelay = 10 * time.Millisecond
	maxRestartDelay   = 30 * time.Second
)

// Keeper keeps a watchdog running beside this process. It starts one with the first session, sends
// it updates, and starts another one when it ends. All methods may be called at any time, from
// several goroutines. Only Close waits for the end of the watchdog. The other methods wait about
// half a second at most, if a watchdog does not read its socket.
type Keeper struct {
	log          *slog.Logger
	startProcess func() (*watchdogProcess, error)
	warned       bool // the log has the warning; only runWatchdogs uses it

	startOnce sync.Once
	closing   chan struct{}
	closeOnce sync.Once
	stopped   chan struct{} // closed when runWatchdogs has ended, or will not run

	mu          sync.Mutex
	access      Access
	session     *Session
	commands    map[int64]*registeredCommand
	lastCommand int64
	current     *watchdogProcess // the watchdog that gets updates; nil while none does
}

// registeredCommand is a command, for the messages to a watchdog.
type registeredCommand struct {
	epoch    int64
	leaseEnd time.Duration // by leaseClock; 0 before the first ExtendLease
	started  *commandStarted
}

// NewKeeper returns a Keeper. It starts a watchdog with the first session. Its log gets one warning
// if no watchdog can run.
func NewKeeper(a Access, log *slog.Logger) *Keeper {
	return &Keeper{
		access: a, log: log, startProcess: startWatchdog, closing: make(chan struct{}), stopped: make(chan struct{}),
		commands: map[int64]*registeredCommand{},
	}
}

// AddRoots adds certificates, in DER, of the authorities by which this process has verified
// servers.
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

// SetSession makes s the session to close, unless a session of a later epoch is set.
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

// ExtendLease tells the watchdog the end of the lease of an epoch's session. left returns the rest
// of the lease.
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

// ShortenLease is ExtendLease for a lease that ends earlier than before.
func (k *Keeper) ShortenLease(epoch int64, left func() time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.hasCommand(epoch) {
		return
	}
	at := leaseClock() // first, as in ExtendLease
	until := at + left()
	for _, c := range k.commands {
		if c.epoch == epoch && c.leaseEnd != 0 {
			c.leaseEnd = min(c.leaseEnd, until)
		}
	}
	k.sendUpdate(leaseShortened{epoch, until})
}

// hasCommand reports whether a command is registered for an epoch. Without one the watchdog needs
// no lease.
func (k *Keeper) hasCommand(epoch int64) bool {
	for _, c := range k.commands {
		if c.epoch == epoch {
			return true
		}
	}
	return false
}

// BeginCommand registers a command of an epoch's session. Call it before the command starts, and
// then call ExtendLease.
func (k *Keeper) BeginCommand(epoch int64) (id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lastCommand++
	k.commands[k.lastCommand] = &registeredCommand{epoch: epoch}
	k.sendUpdate(commandBegins{k.lastCommand, epoch})
	return k.lastCommand
}

// CommandStarted tells the watchdog which process a command is. Call it before you wait for the
// process.
func (k *Keeper) CommandStarted(id int64, pid int) {
	if err := k.identifyCommand(id, pid); err != nil {
		k.log.Warn("the watchdog cannot identify a command: if this process dies while the command runs, its "+
			"session ends only after the session timeout", "pid", pid, "cause", err)
	}
}

func (k *Keeper) identifyCommand(id int64, pid int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.commands[id]
	if c == nil {
		return nil
	}
	command, err := identifyProcess(pid)
	c.started = &commandStarted{id, command}
	k.sendUpdate(*c.started)
	return err
}

// CommandEnded tells the watchdog that a command has ended, or could not be started.
func (k *Keeper) CommandEnded(id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.commands, id)
	k.sendUpdate(commandEnded{id})
}

// sendUpdate sends messages to the current watchdog. If that does not read them in time, it kills
// the watchdog, which runWatchdogs then replaces.
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

// runWatchdogs runs one watchdog after the other until Close is called. It returns at once if the
// system does not support watchdogs.
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
			k.log.Warn("no watchdog runs: if this process dies, its locks are free only after the session timeout",
				"cause", err)
		}
		if errors.Is(err, ErrUnsupported) || !k.waitToRestart(pause) {
			return
		}
	}
}

// waitToRestart pauses for d. It returns false if Close is called before.
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

// runWatchdog starts a watchdog and returns when it has ended. It returns an error if the watchdog
// ended before it was ready.
func (k *Keeper) runWatchdog() error {
	began := time.Now()
	p, err := k.startProcess()
	if err != nil {
		return fmt.Errorf("start a watchdog: %w", err)
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

// exitError returns nil if the watchdog was ready before it ended, and errNotReady otherwise.
func (k *Keeper) exitError(p *watchdogProcess) error {
	select {
	case <-p.ready:
		k.log.Debug("the watchdog has ended; another one is started", "pid", p.os.Pid)
		return nil
	default:
		return errNotReady
	}
}

// sendState sends the whole state to a new watchdog, and makes that the current one.
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

// closeWatchdog sends the closing message to a watchdog, and waits until the watchdog has ended.
func (k *Keeper) closeWatchdog(p *watchdogProcess) {
	k.mu.Lock()
	k.current = nil
	k.mu.Unlock()
	if err := p.sendMessages(updateTimeout, parentCloses{}); err != nil {
		// without the closing message, the watchdog would close the session at the socket's end
		p.waitOrKill(0)
		return
	}
	p.closeSocket()
	p.waitOrKill(exitTimeout)
}

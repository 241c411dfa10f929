//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// fault is what happens to a holder, while another client waits.
type fault string

const (
	cutOff    fault = "the holder's server is cut off from the others"
	frozen    fault = "the holder's process stands still"
	failover  fault = "the leading server or primary is killed"
	clockJump fault = "a clock is set forward by a minute"
)

// trial is one row of the table: a library under a fault.
type trial struct {
	fault fault
	peer  string
	note  string // how the fault was made
	run   func(ctx context.Context, t trial, h *holders) (outcome, error)
}

// outcome is what was seen: when the second one was granted and when the first one was told that it
// holds no longer, in seconds after the fault, unseen if that did not happen while they were
// watched; and for how long both believed to hold.
type outcome struct{ Granted, Told, Together float64 }

const unseen = -1

// trialRow is a row of docs/compare-holders.json, with an outcome of each turn.
type trialRow struct {
	Fault, Peer, Note string
	Outcomes          []outcome
}

type holdersReport struct {
	Command, Date, Machine string
	Session                string
	Frozen                 string
	Rows                   []trialRow
}

// holders has what trials share.
type holders struct {
	dir    string
	frozen time.Duration
	turn   int
}

// holderSession is the session timeout, time to live or expiry of the holders.
const holderSession = 4 * time.Second

var zooKeeperPeers = []string{lockstepPeer, curatorPeer, kazooPeer, zkPeer}

func trials() (all []trial) {
	for _, p := range zooKeeperPeers {
		all = append(all, trial{cutOff, p, "a follower of three; syncLimit is 10 s", cutOffZooKeeper})
	}
	all = append(all, trial{cutOff, etcdPeer, "a follower of three", cutOffEtcd},
		trial{cutOff, redislockPeer, "its replica is made the primary", cutOffRedis},
		trial{cutOff, redsyncPeer, "its replica is made the primary", cutOffRedis},
		trial{cutOff, postgresPeer, "its replica is made the primary", cutOffPostgres})
	for _, p := range zooKeeperPeers {
		all = append(all, trial{frozen, p, "", freezeHolder})
	}
	for _, p := range []string{etcdPeer, redislockPeer, redsyncPeer, postgresPeer} {
		all = append(all, trial{frozen, p, "", freezeHolder})
	}
	for _, p := range zooKeeperPeers {
		all = append(all, trial{failover, p, "three servers", failOverZooKeeper})
	}
	all = append(all, trial{failover, etcdPeer, "three servers", failOverEtcd},
		trial{failover, redislockPeer, "the replica lacks the last second", failOverRedis},
		trial{failover, redsyncPeer, "the replica lacks the last second", failOverRedis},
		trial{failover, postgresPeer, "its replica is made the primary", failOverPostgres})
	for _, p := range zooKeeperPeers {
		all = append(all, trial{clockJump, p, "of the server", jumpOfServer})
	}
	all = append(all, trial{clockJump, curatorPeer, "of the holder", jumpOfHolder},
		trial{clockJump, kazooPeer, "of the holder", jumpOfHolder})
	return all
}

// compareHolders makes each trial once in each turn.
func compareHolders(ctx context.Context, matches func(string) bool, turns int,
	frozenFor time.Duration) (r *holdersReport, err error) {
	r = &holdersReport{Date: time.Now().UTC().Format(time.DateOnly), Session: holderSession.String(),
		Frozen: frozenFor.String(), Machine: machine()}
	h := &holders{frozen: frozenFor}
	if h.dir, err = os.MkdirTemp("", "compare-holders-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(h.dir)) }()
	if err := os.Chmod(h.dir, 0o755); err != nil {
		return nil, err
	}
	var selected []trial
	for _, t := range trials() {
		if matches(t.String()) {
			selected = append(selected, t)
			r.Rows = append(r.Rows, trialRow{Fault: string(t.fault), Peer: t.peer, Note: t.note})
		}
	}
	for turn := range turns {
		for i, t := range selected {
			h.turn++
			o, err := h.make(ctx, t)
			if err != nil && ctx.Err() == nil {
				fmt.Fprintf(os.Stderr, "%v: %v; once more\n", t, err)
				o, err = h.make(ctx, t)
			}
			if err != nil {
				return nil, fmt.Errorf("%v: %w", t, err)
			}
			fmt.Fprintf(os.Stderr, "turn %d of %d  %v  granted %.2f s, told %.2f s, together %.2f s\n", turn+1, turns, t,
				o.Granted, o.Told, o.Together)
			r.Rows[i].Outcomes = append(r.Rows[i].Outcomes, o)
		}
	}
	return r, nil
}

// make makes a trial. It gives up when that lasts far too long, as with servers that did not start.
func (h *holders) make(ctx context.Context, t trial) (outcome, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.frozen+3*time.Minute, errors.New("the trial lasts too long"))
	defer cancel()
	return t.run(ctx, t, h)
}

func (t trial) String() string { return fmt.Sprintf("%s/%s/%s", t.fault, t.peer, t.note) }

func (r *holdersReport) print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%s; %s; session timeout, time to live or expiry %s\n\n", r.Command, r.Date, r.Machine, r.Session)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "fault\tlibrary\t\tboth believe to hold, median\trange")
	for _, row := range r.Rows {
		median, all := row.together()
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", row.Fault, row.Peer, row.Note, median, all)
	}
	return t.Flush()
}

// together says for how long both believed to hold: the median of the turns, the longer one of the
// two in the middle, and their range.
func (row trialRow) together() (median, all string) {
	sorted := slices.SortedFunc(slices.Values(row.Outcomes), func(a, b outcome) int {
		return cmp.Compare(a.Together, b.Together)
	})
	least, most := sorted[0].together(), sorted[len(sorted)-1].together()
	if all = least; most != least {
		all += " – " + most
	}
	return sorted[len(sorted)/2].together(), all
}

func (o outcome) together() string {
	switch {
	case o.Granted != unseen && o.Told == unseen:
		return fmt.Sprintf("≥ %.0f s", o.Together)
	case o.Together == 0:
		return "never"
	case o.Together < 0.005:
		return "< 0.01 s"
	}
	return fmt.Sprintf("%.2f s", o.Together)
}

func (r *holdersReport) write(dir string) error {
	return errors.Join(writeJSON(filepath.Join(dir, "compare-holders.json"), r), writeTables(dir))
}

// observe starts a holder and a waiter on their servers, lets the fault happen, and watches them.
// The fault returns when it has happened, and from when on the holder can be expected to act.
func observe(ctx context.Context, peer string, holds, waits []string, watched time.Duration,
	happen func(holder *member) (at, awake time.Time, err error), environ ...string) (o outcome, err error) {
	name := fmt.Sprintf("holders-%d", time.Now().UnixNano())
	holder, err := startMember(ctx, peer, "lock", holds, name, holderSession, environ...)
	if err != nil {
		return o, err
	}
	defer holder.kill()
	if err := awaitWithin(ctx, holder, "HELD"); err != nil {
		return o, err
	}
	waiter, err := startMember(ctx, peer, "lock", waits, name, holderSession)
	if err != nil {
		return o, err
	}
	defer waiter.kill()
	if peer != postgresPeer { // that connects when its server is the primary
		if err := awaitWithin(ctx, waiter, "UP"); err != nil {
			return o, err
		}
	}
	if err := pause(ctx, 3*time.Second); err != nil { // some renewals
		return o, err
	}
	at, awake, err := happen(holder)
	if err != nil {
		return o, err
	}
	if err := pause(ctx, time.Until(awake.Add(watched))); err != nil {
		return o, err
	}
	end := time.Now()
	granted, isGranted := waiter.saidAt("HELD")
	told, isTold := holder.saidAt("OVER")
	o = outcome{Granted: unseen, Told: unseen}
	if isTold {
		o.Told = told.Sub(at).Seconds()
	} else {
		told = end
	}
	if isGranted {
		o.Granted = granted.Sub(at).Seconds()
		if granted.Before(awake) {
			granted = awake
		}
		o.Together = max(0, told.Sub(granted).Seconds())
	}
	return o, nil
}

func awaitWithin(ctx context.Context, m *member, word string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, err := m.await(ctx, word)
	return err
}

func (m *member) saidAt(word string) (time.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.said[word]
	return at, ok
}

// atOnce is a fault after which the holder goes on at once.
func atOnce(f func() error) func(*member) (time.Time, time.Time, error) {
	return func(*member) (time.Time, time.Time, error) {
		now := time.Now()
		return now, now, f()
	}
}

// newDir makes a directory for a server.
func (h *holders) newDir(name string) (string, error) {
	dir := filepath.Join(h.dir, fmt.Sprintf("%s-%d-%d", name, h.turn, time.Now().UnixNano()))
	return dir, os.Mkdir(dir, 0o755)
}

func without(list []string, i int) []string { return slices.Delete(slices.Clone(list), i, i+1) }

func cutOffZooKeeper(ctx context.Context, t trial, _ *holders) (o outcome, err error) {
	e, err := ensemble.Start(ctx, ensemble.Config{Links: true})
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	f := e.Followers()[0]
	return observe(ctx, t.peer, []string{e.Addr(f)}, without(e.Addrs(), f), 25*time.Second,
		atOnce(func() error { return e.Isolate(f) }))
}

func failOverZooKeeper(ctx context.Context, t trial, _ *holders) (o outcome, err error) {
	e, err := ensemble.Start(ctx, ensemble.Config{})
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return observe(ctx, t.peer, e.Addrs(), e.Addrs(), 12*time.Second, atOnce(func() error {
		return e.Kill(e.Leader())
	}))
}

// freezeHolder stops the holder's process, with one server of its store.
func freezeHolder(ctx context.Context, t trial, h *holders) (o outcome, err error) {
	addr, closeServer, err := h.server(ctx, t.peer)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, closeServer()) }()
	freeze := func(holder *member) (at, awake time.Time, err error) {
		at = time.Now()
		err = holder.command.Process.Signal(syscall.SIGSTOP)
		err = errors.Join(err, pause(ctx, h.frozen))
		awake = time.Now()
		return at, awake, errors.Join(err, holder.command.Process.Signal(syscall.SIGCONT))
	}
	return observe(ctx, t.peer, []string{addr}, []string{addr}, 10*time.Second, freeze)
}

// server starts one server of a library's store.
func (h *holders) server(ctx context.Context, peer string) (addr string, end func() error, err error) {
	start := map[string]func(context.Context, string) (*process, error){etcdPeer: startEtcd, redislockPeer: startRedis,
		redsyncPeer: startRedis, postgresPeer: startPostgres}[peer]
	if start == nil {
		e, err := ensemble.Start(ctx, ensemble.Config{Servers: 1})
		if err != nil {
			return "", nil, err
		}
		return e.Addr(0), e.Close, nil
	}
	dir, err := h.newDir("server")
	if err != nil {
		return "", nil, err
	}
	p, err := start(ctx, dir)
	if err != nil {
		return "", nil, err
	}
	return p.addr, func() error { p.kill(); return nil }, nil
}

// fakeClocks is the environment of a process whose wall clock libfaketime sets. It does not reach
// programs in Go, which ask the kernel themselves.
func (h *holders) fakeClocks() (environ []string, jump func() error, err error) {
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if len(found) == 0 {
		return nil, nil, errors.New("libfaketime is not installed")
	}
	dir, err := h.newDir("clock")
	if err != nil {
		return nil, nil, err
	}
	file := filepath.Join(dir, "offset")
	set := func(offset string) error { return os.WriteFile(file, []byte(offset+"\n"), 0o644) }
	return []string{"LD_PRELOAD=" + found[0], "FAKETIME_TIMESTAMP_FILE=" + file, "FAKETIME_DONT_FAKE_MONOTONIC=1",
		"FAKETIME_NO_CACHE=1"}, func() error { return set("+60s") }, set("+0s")
}

func jumpOfServer(ctx context.Context, t trial, h *holders) (o outcome, err error) {
	environ, jump, err := h.fakeClocks()
	if err != nil {
		return o, err
	}
	for _, e := range environ { // the servers inherit it, the members do not
		name, value, _ := strings.Cut(e, "=")
		if err := os.Setenv(name, value); err != nil {
			return o, err
		}
	}
	addr, closeServer, err := h.server(ctx, t.peer)
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		err = errors.Join(err, os.Unsetenv(name))
	}
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, closeServer()) }()
	return observe(ctx, t.peer, []string{addr}, []string{addr}, 12*time.Second, atOnce(jump))
}

func jumpOfHolder(ctx context.Context, t trial, h *holders) (o outcome, err error) {
	environ, jump, err := h.fakeClocks()
	if err != nil {
		return o, err
	}
	addr, closeServer, err := h.server(ctx, t.peer)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, closeServer()) }()
	return observe(ctx, t.peer, []string{addr}, []string{addr}, 12*time.Second, atOnce(jump), environ...)
}

// cutOffRedis makes the replica the primary, as an operator or Sentinel does on the other side of a
// cut. The holder and its server do not learn of it.
func cutOffRedis(ctx context.Context, t trial, h *holders) (o outcome, err error) {
	primary, replica, err := h.redisPair(ctx)
	if err != nil {
		return o, err
	}
	defer primary.kill()
	defer replica.kill()
	waits := redirect{to: replica.addr}
	if err := waits.listen(); err != nil {
		return o, err
	}
	defer waits.close()
	return observe(ctx, t.peer, []string{primary.addr}, []string{waits.addr}, 15*time.Second, atOnce(func() error {
		return errors.Join(redisDo(ctx, replica, "REPLICAOF", "NO", "ONE"), waits.open())
	}))
}

// failOverRedis kills a primary whose replica lacks what came last, and makes that the primary.
func failOverRedis(ctx context.Context, t trial, h *holders) (o outcome, err error) {
	primary, replica, err := h.redisPair(ctx)
	if err != nil {
		return o, err
	}
	defer primary.kill()
	defer replica.kill()
	if err := replica.command.Process.Signal(syscall.SIGSTOP); err != nil {
		return o, err
	}
	if err := redisDo(ctx, primary, "CLIENT", "KILL", "TYPE", "replica"); err != nil {
		return o, err
	}
	waits := redirect{to: replica.addr}
	if err := waits.listen(); err != nil {
		return o, err
	}
	defer waits.close()
	return observe(ctx, t.peer, []string{primary.addr}, []string{waits.addr}, 10*time.Second, atOnce(func() error {
		primary.kill()
		return errors.Join(replica.command.Process.Signal(syscall.SIGCONT),
			redisDo(ctx, replica, "REPLICAOF", "NO", "ONE"), waits.open())
	}))
}

func cutOffPostgres(ctx context.Context, t trial, h *holders) (o outcome, err error) {
	return promotePostgres(ctx, t, h, false)
}

func failOverPostgres(ctx context.Context, t trial, h *holders) (o outcome, err error) {
	return promotePostgres(ctx, t, h, true)
}

// promotePostgres makes the replica the primary. A replica grants advisory locks of its own at any
// time: the waiter comes when it has become the primary, as a program that looks for the primary
// does.
func promotePostgres(ctx context.Context, t trial, h *holders, kill bool) (o outcome, err error) {
	primary, replica, err := h.postgresPair(ctx)
	if err != nil {
		return o, err
	}
	defer primary.kill()
	defer replica.kill()
	waits := redirect{to: replica.addr}
	if err := waits.listen(); err != nil {
		return o, err
	}
	defer waits.close()
	return observe(ctx, t.peer, []string{primary.addr}, []string{waits.addr}, 15*time.Second, atOnce(func() error {
		if kill {
			primary.kill()
		}
		c, err := pgx.Connect(ctx, postgresURL(replica.addr))
		if err != nil {
			return err
		}
		defer func() { _ = c.Close(ctx) }()
		_, err = c.Exec(ctx, "select pg_promote()")
		return errors.Join(err, waits.open())
	}))
}

func cutOffEtcd(ctx context.Context, t trial, h *holders) (o outcome, err error) {
	c, err := startEtcdCluster(ctx, h)
	if err != nil {
		return o, err
	}
	defer c.close()
	leader, err := c.leader(ctx)
	if err != nil {
		return o, err
	}
	f := (leader + 1) % 3
	return observe(ctx, t.peer, []string{c.addrs()[f]}, without(c.addrs(), f), 25*time.Second, atOnce(func() error {
		return errors.Join(runIP("-n", c.names[f], "route", "add", "blackhole", c.ip((f+1)%3)+"/32"),
			runIP("-n", c.names[f], "route", "add", "blackhole", c.ip((f+2)%3)+"/32"))
	}))
}

func failOverEtcd(ctx context.Context, t trial, h *holders) (o outcome, err error) {
	c, err := startEtcdCluster(ctx, h)
	if err != nil {
		return o, err
	}
	defer c.close()
	leader, err := c.leader(ctx)
	if err != nil {
		return o, err
	}
	return observe(ctx, t.peer, c.addrs(), c.addrs(), 12*time.Second, atOnce(func() error {
		c.processes[leader].kill()
		c.processes[leader] = nil
		return nil
	}))
}

func machine() string {
	return fmt.Sprintf("%d cores, %s, clients and servers on one machine", runtime.NumCPU(), runtime.GOARCH)
}

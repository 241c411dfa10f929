//go:build linux

package chaos

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/internal/ensemble"
)

// trouble is a kind of fault.
type trouble struct {
	name        string
	least, most time.Duration // how long it lasts
	// strike begins it, and returns what ends it; nil if there is nothing that it could hit.
	strike func(a *arena, r *rand.Rand) (mend func() error, err error)
}

// between names the links between servers: one fault at a time strikes them.
const between = "links between servers"

var troubles = []trouble{
	{"server killed", 0, 5 * time.Second, killServer},
	{"majority killed", 2 * time.Second, 8 * time.Second, killMajority},
	{"server stopped", time.Second, 8 * time.Second, stopServer},
	{"client killed", 0, 4 * time.Second, killClient},
	{"client stopped", timeout / 8, 3 * timeout, stopClient},
	{"leader cut off", 4 * time.Second, 9 * time.Second, cutLeader},
	{"follower cut off", 5 * time.Second, 9 * time.Second, cutFollower},
	{"client cut for a moment", 100 * time.Millisecond, timeout, cutClient},
	{"client cut", timeout, 3 * timeout, cutClient},
	{"client black-holed", timeout, 3 * timeout, swallowClient},
	{"client bound to a follower that is cut off", timeout, 5 * timeout / 2, bindClient},
	{"all links slow", 3 * time.Second, 8 * time.Second, slowAll},
	{diskFull, 3 * time.Second, 6 * time.Second, fillDisk},
}

const diskFull = "disk full"

func anyOf(int) bool { return true }

// after runs one thing when another was done.
func after(f func() error, then func()) func() error {
	return func() error {
		defer then()
		return f()
	}
}

func killServer(a *arena, r *rand.Rand) (func() error, error) {
	i, free, ok := a.claim(r, "server", a.Size(), anyOf)
	if !ok {
		return nil, nil
	}
	return after(func() error { return a.Restart(i) }, free), a.Kill(i)
}

// killMajority leaves no quorum, so that all sessions end if it lasts.
func killMajority(a *arena, r *rand.Rand) (func() error, error) {
	first, err := killServer(a, r)
	if first == nil {
		return nil, err
	}
	second, again := killServer(a, r)
	if second == nil {
		return first, errors.Join(err, again)
	}
	return func() error { return errors.Join(first(), second()) }, errors.Join(err, again)
}

func stopServer(a *arena, r *rand.Rand) (func() error, error) {
	i, free, ok := a.claim(r, "server", a.Size(), anyOf)
	if !ok {
		return nil, nil
	}
	return after(func() error { return a.Thaw(i) }, free), a.Freeze(i)
}

// fillDisk ends with the server's restart, since ZooKeeper gives up when it cannot write.
func fillDisk(a *arena, r *rand.Rand) (func() error, error) {
	i, free, ok := a.claim(r, "server", a.Size(), anyOf)
	if !ok {
		return nil, nil
	}
	mend := func() error { return errors.Join(a.Kill(i), a.FreeDisk(i), a.Restart(i)) }
	return after(mend, free), a.FillDisk(i)
}

func killClient(a *arena, r *rand.Rand) (func() error, error) {
	i, free, ok := a.claim(r, "client", len(a.clients), anyOf)
	if !ok {
		return nil, nil
	}
	seed := r.Uint64()
	return after(func() error { return a.clients[i].start(seed) }, free), a.clients[i].kill()
}

func stopClient(a *arena, r *rand.Rand) (func() error, error) {
	i, free, ok := a.claim(r, "client", len(a.clients), anyOf)
	if !ok {
		return nil, nil
	}
	c := a.clients[i]
	return after(func() error { return c.signal(syscall.SIGCONT) }, free), c.signal(syscall.SIGSTOP)
}

// cutLeader cuts the leader off from both followers, elections included, while clients reach it.
func cutLeader(a *arena, r *rand.Rand) (func() error, error) {
	leader := a.Leader()
	_, free, ok := a.claim(r, between, 1, func(int) bool { return leader >= 0 })
	if !ok {
		return nil, nil
	}
	return after(a.reunite, free), a.Isolate(leader)
}

// cutFollower cuts a follower off from its leader, while clients reach both.
func cutFollower(a *arena, r *rand.Rand) (func() error, error) {
	leader, followers := a.Leader(), a.Followers()
	_, free, ok := a.claim(r, between, 1, func(int) bool { return leader >= 0 && len(followers) > 0 })
	if !ok {
		return nil, nil
	}
	return after(a.reunite, free), a.CutOff(leader, followers[r.IntN(len(followers))])
}

// bindClient leaves a client one server, a follower, and cuts that off from the leader: the client goes on hearing from it
// while the others end its session.
func bindClient(a *arena, r *rand.Rand) (func() error, error) {
	leader, followers := a.Leader(), a.Followers()
	_, free, ok := a.claim(r, between, 1, func(int) bool { return leader >= 0 && len(followers) > 0 })
	if !ok {
		return nil, nil
	}
	i, freeToo, ok := a.claim(r, "links of client", len(a.clients), anyOf)
	if !ok {
		free()
		return nil, nil
	}
	follower := followers[r.IntN(len(followers))]
	for server, p := range a.clients[i].proxies {
		if server != follower {
			p.Cut()
		}
	}
	time.Sleep(timeout / 4) // it comes to the follower, or was there
	mend := func() error { return errors.Join(a.reunite(), a.clients[i].each((*ensemble.Proxy).Heal)()) }
	return after(after(mend, freeToo), free), a.CutOff(leader, follower)
}

func (a *arena) reunite() error {
	a.Heal()
	return nil
}

// cutClient resets a client's connections, and refuses new ones.
func cutClient(a *arena, r *rand.Rand) (func() error, error) {
	i, free, ok := a.claim(r, "links of client", len(a.clients), anyOf)
	if !ok {
		return nil, nil
	}
	c := a.clients[i]
	return after(c.each((*ensemble.Proxy).Heal), free), c.each((*ensemble.Proxy).Cut)()
}

// swallowClient loses what a client sends, what it is sent, or both, and tells nobody.
func swallowClient(a *arena, r *rand.Rand) (func() error, error) {
	i, free, ok := a.claim(r, "links of client", len(a.clients), anyOf)
	if !ok {
		return nil, nil
	}
	c, d := a.clients[i], []ensemble.Direction{ensemble.Up, ensemble.Down, ensemble.Both}[r.IntN(3)]
	return after(c.each((*ensemble.Proxy).Heal), free), c.each(func(p *ensemble.Proxy) { p.Hold(d) })()
}

func slowAll(a *arena, r *rand.Rand) (func() error, error) {
	_, free, ok := a.claim(r, "pace of links", 1, anyOf)
	if !ok {
		return nil, nil
	}
	d := 20*time.Millisecond + time.Duration(r.Int64N(int64(100*time.Millisecond)))
	return after(func() error { return a.slow(0) }, free), a.slow(d)
}

func (a *arena) slow(d time.Duration) error {
	for _, c := range a.clients {
		_ = c.each(func(p *ensemble.Proxy) { p.Slow(d) })()
	}
	return a.Slow(d)
}

//go:build linux

package chaos

import (
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// faultKind is one kind of fault.
type faultKind struct {
	name                     string
	minDuration, maxDuration time.Duration // the fault's duration
	// inject begins the fault and returns the function that undoes it, or nil if no target is free.
	inject func(env *testEnv, rng *rand.Rand) (undo func() error, err error)
}

// serverLinks is the target of all faults of links between servers, so that only one of them is
// active at a time.
const serverLinks = "links between servers"

var faultKinds = []faultKind{
	{"server killed", 0, 5 * time.Second, killServer},
	{"majority killed", 2 * time.Second, 8 * time.Second, killMajority},
	{"server stopped", time.Second, 8 * time.Second, pauseServer},
	{"client killed", 0, 4 * time.Second, killClient},
	{"client stopped", sessionTimeout / 8, 3 * sessionTimeout, pauseClient},
	{"leader cut off", 4 * time.Second, 9 * time.Second, cutLeader},
	{"follower cut off", 5 * time.Second, 9 * time.Second, cutFollower},
	{"client cut for a moment", 100 * time.Millisecond, sessionTimeout, cutClient},
	{"client cut", sessionTimeout, 3 * sessionTimeout, cutClient},
	{"client black-holed", sessionTimeout, 3 * sessionTimeout, blackHoleClient},
	{"client bound to a follower that is cut off", sessionTimeout, 5 * sessionTimeout / 2, bindClientToCutOffFollower},
	{"all links slow", 3 * time.Second, 8 * time.Second, slowLinks},
	{diskFull, 3 * time.Second, 6 * time.Second, fillDisk},
}

const diskFull = "disk full"

func anyTarget(int) bool { return true }

// undoAndFree undoes a fault, and then frees its target for others.
func undoAndFree(f func() error, then func()) func() error {
	return func() error {
		defer then()
		return f()
	}
}

func killServer(env *testEnv, rng *rand.Rand) (func() error, error) {
	i, free, ok := env.claimTarget(rng, "server", env.Size(), anyTarget)
	if !ok {
		return nil, nil
	}
	return undoAndFree(func() error { return env.Restart(i) }, free), env.Kill(i)
}

// killMajority leaves no quorum: all sessions end if it lasts.
func killMajority(env *testEnv, rng *rand.Rand) (func() error, error) {
	first, err := killServer(env, rng)
	if first == nil {
		return nil, err
	}
	second, again := killServer(env, rng)
	if second == nil {
		return first, errors.Join(err, again)
	}
	return func() error { return errors.Join(first(), second()) }, errors.Join(err, again)
}

func pauseServer(env *testEnv, rng *rand.Rand) (func() error, error) {
	i, free, ok := env.claimTarget(rng, "server", env.Size(), anyTarget)
	if !ok {
		return nil, nil
	}
	return undoAndFree(func() error { return env.Thaw(i) }, free), env.Freeze(i)
}

// fillDisk fills a server's disk, and kills the server as soon as the full disk has stopped it.
// Otherwise ZooKeeper 3.8.0 continues in the same process, and joins the others again while its
// former thread still writes the log (ZOOKEEPER-4541): in about one of ten runs the servers have
// different nodes from then on.
func fillDisk(env *testEnv, rng *rand.Rand) (func() error, error) {
	i, free, ok := env.claimTarget(rng, "server", env.Size(), anyTarget)
	if !ok {
		return nil, nil
	}
	if err := env.FillDisk(i); err != nil {
		free()
		return nil, err
	}
	ended := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for !env.HasFailed(i) {
			select {
			case <-ended:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
		_ = env.Kill(i) // the undo kills it again
	})
	undo := func() error {
		close(ended)
		watcher.Wait()
		return errors.Join(env.Kill(i), env.FreeDisk(i), env.Restart(i))
	}
	return undoAndFree(undo, free), nil
}

func killClient(env *testEnv, rng *rand.Rand) (func() error, error) {
	i, free, ok := env.claimTarget(rng, "client", len(env.clients), anyTarget)
	if !ok {
		return nil, nil
	}
	seed := rng.Uint64()
	return undoAndFree(func() error { return env.clients[i].start(seed) }, free), env.clients[i].kill()
}

func pauseClient(env *testEnv, rng *rand.Rand) (func() error, error) {
	i, free, ok := env.claimTarget(rng, "client", len(env.clients), anyTarget)
	if !ok {
		return nil, nil
	}
	c := env.clients[i]
	return undoAndFree(func() error { return c.signal(syscall.SIGCONT) }, free), c.signal(syscall.SIGSTOP)
}

// cutLeader cuts the leader off from both followers, also for elections. Clients reach all servers.
func cutLeader(env *testEnv, rng *rand.Rand) (func() error, error) {
	leader := env.Leader()
	_, free, ok := env.claimTarget(rng, serverLinks, 1, func(int) bool { return leader >= 0 })
	if !ok {
		return nil, nil
	}
	return undoAndFree(env.healServerLinks, free), env.Isolate(leader)
}

// cutFollower cuts a follower off from its leader. Clients reach both.
func cutFollower(env *testEnv, rng *rand.Rand) (func() error, error) {
	leader, followers := env.Leader(), env.Followers()
	_, free, ok := env.claimTarget(rng, serverLinks, 1, func(int) bool { return leader >= 0 && len(followers) > 0 })
	if !ok {
		return nil, nil
	}
	return undoAndFree(env.healServerLinks, free), env.CutOff(leader, followers[rng.IntN(len(followers))])
}

// bindClientToCutOffFollower lets a client reach one follower only, and cuts that follower off from
// the leader. The follower still answers the client while the other servers end its session.
func bindClientToCutOffFollower(env *testEnv, rng *rand.Rand) (func() error, error) {
	leader, followers := env.Leader(), env.Followers()
	_, free, ok := env.claimTarget(rng, serverLinks, 1, func(int) bool { return leader >= 0 && len(followers) > 0 })
	if !ok {
		return nil, nil
	}
	i, freeToo, ok := env.claimTarget(rng, "links of client", len(env.clients), anyTarget)
	if !ok {
		free()
		return nil, nil
	}
	follower := followers[rng.IntN(len(followers))]
	for server, p := range env.clients[i].proxies {
		if server != follower {
			p.Cut()
		}
	}
	time.Sleep(sessionTimeout / 4) // time for the client to reconnect to the follower
	undo := func() error {
		return errors.Join(env.healServerLinks(), env.clients[i].eachProxy((*ensemble.Proxy).Heal)())
	}
	return undoAndFree(undoAndFree(undo, freeToo), free), env.CutOff(leader, follower)
}

func (env *testEnv) healServerLinks() error {
	env.Heal()
	return nil
}

// cutClient resets a client's connections and refuses new ones.
func cutClient(env *testEnv, rng *rand.Rand) (func() error, error) {
	i, free, ok := env.claimTarget(rng, "links of client", len(env.clients), anyTarget)
	if !ok {
		return nil, nil
	}
	c := env.clients[i]
	return undoAndFree(c.eachProxy((*ensemble.Proxy).Heal), free), c.eachProxy((*ensemble.Proxy).Cut)()
}

// blackHoleClient drops what a client sends, what is sent to it, or both, and keeps the connections
// open.
func blackHoleClient(env *testEnv, rng *rand.Rand) (func() error, error) {
	i, free, ok := env.claimTarget(rng, "links of client", len(env.clients), anyTarget)
	if !ok {
		return nil, nil
	}
	c, d := env.clients[i], []ensemble.Direction{ensemble.Up, ensemble.Down, ensemble.Both}[rng.IntN(3)]
	return undoAndFree(c.eachProxy((*ensemble.Proxy).Heal), free), c.eachProxy(func(p *ensemble.Proxy) { p.Hold(d) })()
}

func slowLinks(env *testEnv, rng *rand.Rand) (func() error, error) {
	_, free, ok := env.claimTarget(rng, "delay of links", 1, anyTarget)
	if !ok {
		return nil, nil
	}
	d := 20*time.Millisecond + time.Duration(rng.Int64N(int64(100*time.Millisecond)))
	return undoAndFree(func() error { return env.slowAllLinks(0) }, free), env.slowAllLinks(d)
}

func (env *testEnv) slowAllLinks(d time.Duration) error {
	for _, c := range env.clients {
		_ = c.eachProxy(func(p *ensemble.Proxy) { p.Slow(d) })()
	}
	return env.Slow(d)
}

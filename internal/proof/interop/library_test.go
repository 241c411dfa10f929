package interop

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/locks"
)

// forever is the wait of a contender that does not give up.
const forever time.Duration = -1

// contender is a lock object of one library, with a client of its own.
type contender interface {
	// lock acquires the lock. It waits for at most wait: 0 tries once, forever waits without a
	// limit.
	lock(ctx context.Context, wait time.Duration) (granted bool, err error)
	unlock(ctx context.Context) error
	// participants returns the line as the library lists it. listedNames returns what it should
	// list.
	participants(ctx context.Context) ([]string, error)
	listedNames(line []node) []string
	// work enters a critical section.
	work(ctx context.Context, w work) error
	// sessionID returns the client's first session.
	sessionID() session
}

// library is one library, with its contenders.
type library struct {
	name string
	// newContender returns a contender with the lock of a role at path.
	newContender func(t *testing.T, r role, path string) contender
	supports     func(role) bool
}

var (
	lockstepLibrary = library{"Lockstep", newLockstepContender, func(r role) bool { return r.ours != nil }}
	curatorLibrary  = library{"Curator", func(t *testing.T, r role, path string) contender {
		return newPeerContender(t, curator.get(t), r.curator, r.paths(path))
	}, func(r role) bool { return r.curator.Kind != "" }}
	kazooLibrary = library{"kazoo", func(t *testing.T, r role, path string) contender {
		return kazooContender{newPeerContender(t, kazoo.get(t), r.kazoo, r.paths(path))}
	}, func(r role) bool { return r.kazoo.Kind != "" }}

	libraries = []library{lockstepLibrary, curatorLibrary, kazooLibrary}
)

// mix is several libraries that share one lock.
type mix []library

var (
	// pairs are the mixes of two libraries: that of the first contender and that of the second.
	pairs = []mix{{lockstepLibrary, curatorLibrary}, {curatorLibrary, lockstepLibrary}, {lockstepLibrary, kazooLibrary},
		{kazooLibrary, lockstepLibrary},
		{curatorLibrary, kazooLibrary}, {kazooLibrary, curatorLibrary}}
	mixes = []mix{{lockstepLibrary, curatorLibrary}, {lockstepLibrary, kazooLibrary},
		{lockstepLibrary, curatorLibrary, kazooLibrary}}
)

func (m mix) supports(r role) bool {
	return !slices.ContainsFunc(m, func(t library) bool { return !t.supports(r) })
}

func (m mix) String() string {
	var names []string
	for _, t := range m {
		names = append(names, t.name)
	}
	return strings.Join(names, ", ")
}

// lockstepContender is a contender of Lockstep.
type lockstepContender struct {
	locker  locks.Locker
	client  *framework.Client
	session session
	lease   *locks.Lease
}

func newLockstepContender(t *testing.T, r role, path string) contender {
	t.Helper()
	c, s := connect(t)
	return &lockstepContender{locker: r.ours(c, path), client: c, session: s}
}

func (o *lockstepContender) lock(ctx context.Context, wait time.Duration) (granted bool, err error) {
	limited := ctx
	if wait > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	ask := o.locker.Lock
	if wait == 0 {
		ask = o.locker.TryLock
	}
	lease, err := ask(limited)
	switch {
	case err == nil:
		o.lease = lease
		return true, nil
	case errors.Is(err, locks.ErrNotAcquired), limited.Err() != nil && ctx.Err() == nil:
		return false, nil
	}
	return false, err
}

func (o *lockstepContender) unlock(ctx context.Context) error { return o.lease.Release(ctx) }

func (o *lockstepContender) participants(ctx context.Context) (nodes []string, err error) {
	r, err := locks.Inspect(ctx, o.client, o.locker.Path())
	if err != nil {
		return nil, err
	}
	for _, e := range append(r.Holders, r.Waiters...) {
		nodes = append(nodes, e.Node)
	}
	return nodes, nil
}

func (o *lockstepContender) listedNames(line []node) []string { return paths(line) }

func (o *lockstepContender) sessionID() session { return o.session }

// peerContender is a contender of Curator or another peer.
type peerContender struct {
	peer    *Peer
	lockIn  Command // what commands about the lock have in common
	session session
}

var names atomic.Int64

func newPeerContender(t *testing.T, p *Peer, c Command, paths []string) peerContender {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	name := strconv.FormatInt(names.Add(1), 10)
	opened, err := p.Do(ctx, Command{Do: "open", Client: name,
		Servers: strings.Join(ensemble.Shared(t), ","), Timeout: int(sessionTimeout.Milliseconds())})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		_, err := p.Do(ctx, Command{Do: "close", Client: name})
		require.NoError(t, err)
	})
	c.Do, c.Client, c.Lock, c.Paths = "new", name, name, paths
	_, err = p.Do(ctx, c)
	require.NoError(t, err)
	return peerContender{p, Command{Client: name, Lock: name, Part: c.Part}, session{opened.Session, opened.Password}}
}

func (p peerContender) do(ctx context.Context, do string) (Answer, error) {
	c := p.lockIn
	c.Do = do
	return p.peer.Do(ctx, c)
}

func (p peerContender) lock(ctx context.Context, wait time.Duration) (granted bool, err error) {
	c := p.lockIn
	c.Do = "acquire"
	if wait != forever {
		ms := int(wait.Milliseconds())
		c.Wait = &ms
	}
	a, err := p.peer.Do(ctx, c)
	return a.Granted, err
}

func (p peerContender) unlock(ctx context.Context) error {
	_, err := p.do(ctx, "release")
	return err
}

func (p peerContender) participants(ctx context.Context) ([]string, error) {
	a, err := p.do(ctx, "participants")
	return a.Participants, err
}

func (p peerContender) listedNames(line []node) []string { return paths(line) }

func (p peerContender) sessionID() session { return p.session }

// kazooContender lists the contents of the nodes, not their paths.
type kazooContender struct{ peerContender }

func (kazooContender) listedNames(line []node) (data []string) {
	for _, n := range line {
		data = append(data, n.data)
	}
	return data
}

// part returns the contender for another part of the same lock object: the read lock of a
// read-write lock.
func (p peerContender) part(name string) peerContender {
	p.lockIn.Part = name
	return p
}

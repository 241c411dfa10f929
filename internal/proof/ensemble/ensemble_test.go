package ensemble

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// eventually polls until holds returns true.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, time.Minute, 20*time.Millisecond, what)
}

// awaitRoles waits until a server leads and two follow, and returns them. On a slow machine a
// server may take too long to report its mode.
func awaitRoles(t *testing.T, e *Ensemble) (leader int, followers []int) {
	t.Helper()
	eventually(t, "a leader and two followers", func() bool {
		leader, followers = e.Leader(), e.Followers()
		return leader >= 0 && len(followers) == 2
	})
	return leader, followers
}

func TestStandalone(t *testing.T) {
	e := Private(t, Config{Servers: 1, NoFsync: true})
	eventually(t, "a standalone server", func() bool { return e.Leader() == 0 && e.Mode(0) == "standalone" })
	require.Empty(t, e.Followers())
	eventually(t, "its answers", func() bool {
		answer, err := e.FourLetter(0, "ruok")
		n, errOfCounter := e.Counter("zk_packets_received")
		return err == nil && errOfCounter == nil && answer == "imok" && n > 0
	})
}

func TestLeaderKilledAndRestarted(t *testing.T) {
	e := Private(t, Config{NoFsync: true})
	old, _ := awaitRoles(t, e)
	require.Len(t, e.Addrs(), 3)

	require.NoError(t, e.Kill(old))
	require.NoError(t, e.Kill(old), "a second time")
	require.ErrorIs(t, e.Freeze(old), os.ErrProcessDone)
	eventually(t, "a new leader", func() bool { l := e.Leader(); return l >= 0 && l != old })

	require.NoError(t, e.Restart(old))
	require.NoError(t, e.Await(t.Context()))
	eventually(t, "the former leader follows", func() bool { return e.Mode(old) == "follower" })
	require.ErrorContains(t, e.Restart(old), "runs already")
}

func TestFreezeAndThaw(t *testing.T) {
	e := Private(t, Config{Servers: 1, NoFsync: true})
	require.NoError(t, e.Freeze(0))
	eventually(t, "the server no longer answers", func() bool { // its threads do not all stop at once
		_, err := e.FourLetter(0, "ruok")
		return errors.Is(err, os.ErrDeadlineExceeded)
	})
	require.NoError(t, e.Thaw(0))
	require.NoError(t, e.Await(t.Context()))
	require.NoError(t, e.Freeze(0), "Close ends a frozen server too")
}

func TestCutOffFollowerStopsServing(t *testing.T) {
	e := Private(t, Config{NoFsync: true, Links: true, SyncLimit: 4})
	for _, cut := range []func(follower, leader int) error{
		e.CutOff,
		e.Hold,
		func(follower, leader int) error { return e.Hold(leader, follower) },
	} {
		leader, followers := awaitRoles(t, e) // a stalled machine may have changed who leads
		follower := followers[0]
		require.NoError(t, cut(follower, leader))
		eventually(t, "the follower no longer serves", func() bool { return e.Mode(follower) == "" })
		e.Heal()
		require.NoError(t, e.Await(t.Context()))
	}
}

func TestIsolatedLeaderIsReplaced(t *testing.T) {
	e := Private(t, Config{NoFsync: true, Links: true, SyncLimit: 4})
	old, _ := awaitRoles(t, e)
	require.NoError(t, e.Isolate(old))
	eventually(t, "another leader", func() bool {
		for i := range e.Size() {
			if i != old && e.Mode(i) == "leader" {
				return true
			}
		}
		return false
	})
	e.Heal()
	eventually(t, "the old leader follows", func() bool { return e.Mode(old) == "follower" }) // it has to notice first
	require.NoError(t, e.Await(t.Context()))
}

// TestElectionsUseTheLinks restarts each server. A server with a smaller id than its peers asks
// them to dial it back, and they must use the links for that.
func TestElectionsUseTheLinks(t *testing.T) {
	e := Private(t, Config{NoFsync: true, Links: true})
	for i := range e.Size() {
		require.NoError(t, e.Kill(i))
		require.NoError(t, e.Restart(i))
		require.NoError(t, e.Await(t.Context()))
		for k := range e.Size() {
			if k != i {
				eventually(t, fmt.Sprintf("a link between %d and %d", i, k),
					func() bool { return e.links.linked(i, k) })
			}
		}
	}
}

// linked reports whether two servers have a connection for elections through their links.
func (l *links) linked(i, k int) bool {
	return l.election[i][k].connections()+l.election[k][i].connections() > 0
}

func (p *Proxy) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pairs)
}

func TestLinkFaultsNeedLinks(t *testing.T) {
	e := &Ensemble{servers: make([]*server, 2)}
	require.ErrorIs(t, e.CutOff(0, 1), errNoLinks)
	require.ErrorIs(t, e.Isolate(1), errNoLinks)
	require.ErrorContains(t, e.Hold(1, 1), "to itself")
	require.ErrorContains(t, e.Hold(0, 2), "no server 2, they are numbered 0 to 1")
	require.ErrorIs(t, e.Kill(-1), os.ErrInvalid)
	e.Heal()
}

// TestPortsStayLocked: no other ensemble draws the ports of a server that is dead for a while.
func TestPortsStayLocked(t *testing.T) {
	l, err := newLayout(3)
	require.NoError(t, err)
	for _, port := range slices.Concat(l.client, l.quorum, l.election, l.secure, l.master) {
		_, err := net.ListenPacket("udp", loopback(port))
		require.Error(t, err)
	}
	port := l.client[0]
	require.NoError(t, l.remove())
	again, err := net.ListenPacket("udp", loopback(port))
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

func TestStartFailsOnATakenPort(t *testing.T) {
	inst, err := findInstall()
	if err != nil {
		skipOrFail(t, err)
	}
	e := &Ensemble{config: Config{Servers: 1}.withDefaults(), launcher: newLauncher()}
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, e.prepare(inst))
	taken, err := net.Listen("tcp", e.Addr(0))
	require.NoError(t, err)
	defer taken.Close()
	require.NoError(t, e.servers[0].start())
	require.ErrorIs(t, e.startFailureSoon(t.Context()), errPortTaken)
}

// startFailureSoon waits until startFailure returns an error.
func (e *Ensemble) startFailureSoon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if err := e.startFailure(); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return ctx.Err()
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	if err := Installed(); err != nil {
		skipOrFail(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Start(ctx, Config{Servers: 1})
	require.ErrorIs(t, err, ErrNotServing)
	require.ErrorIs(t, err, context.Canceled)
}

func TestCloseRemovesServersAndFiles(t *testing.T) {
	if err := Installed(); err != nil {
		skipOrFail(t, err)
	}
	e, err := Start(t.Context(), Config{Servers: 1, NoFsync: true})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.NoError(t, e.Close(), "a second time")
	require.NoDirExists(t, e.layout.dir)
	require.False(t, e.servers[0].running())
}

package interop

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// barrierMembers has a Lockstep client and a Curator client.
type barrierMembers struct {
	t      *testing.T
	ctx    context.Context
	path   string
	client *framework.Client
	peer   *Peer
}

func newBarrierMembers(t *testing.T) *barrierMembers {
	t.Helper()
	servers := ensemble.Shared(t)
	peer := startCurator(t, CuratorBarriers)
	ctx, cancel := context.WithTimeout(t.Context(), 2*deadline)
	t.Cleanup(cancel)
	c, _ := connect(t)
	p := &barrierMembers{t, ctx, "/interop/" + strconv.FormatInt(time.Now().UnixNano(), 36), c, peer}
	p.do(Command{Do: "open", Client: "c", Servers: strings.Join(servers, ","),
		Timeout: int(sessionTimeout.Milliseconds())})
	return p
}

// do sends Curator a command and returns its answer.
func (p *barrierMembers) do(c Command) bool {
	p.t.Helper()
	a, err := p.peer.Do(p.ctx, c)
	require.NoError(p.t, err)
	return a.Granted
}

// doAsync sends Curator a command, and returns a channel that receives the answer.
func (p *barrierMembers) doAsync(c Command) <-chan bool {
	done := make(chan bool, 1)
	go func() {
		a, err := p.peer.Do(p.ctx, c)
		done <- err == nil && a.Granted
	}()
	return done
}

func waitTimeout(d time.Duration) *int {
	ms := int(d.Milliseconds())
	return &ms
}

func waitAtGate(limit time.Duration) Command {
	return Command{Do: "wait", Lock: "g", Wait: waitTimeout(limit)}
}

// awaitRaised waits until Curator finds the gate raised. Curator's server may lag behind
// Lockstep's.
func (p *barrierMembers) awaitRaised() {
	p.t.Helper()
	poll(p.t, func() string { return "Curator finds the gate raised" },
		func() bool { return !p.do(waitAtGate(100 * time.Millisecond)) })
}

// TestGatesBesideCurator checks that each library waits at a gate that the other has raised.
func TestGatesBesideCurator(t *testing.T) {
	p := newBarrierMembers(t)
	gate := barrier.NewGate(p.client, p.path)
	p.do(Command{Do: "new", Client: "c", Lock: "g", Spec: Spec{Kind: "gate", Paths: []string{p.path}}})

	require.True(t, p.do(waitAtGate(deadline)), "no barrier, no wait")
	require.NoError(t, gate.Raise(p.ctx))
	p.awaitRaised()
	theirs := p.doAsync(waitAtGate(deadline))
	require.NoError(t, gate.Lower(p.ctx))
	require.True(t, <-theirs)

	lease, err := gate.Hold(p.ctx)
	require.NoError(t, err)
	p.awaitRaised()
	theirs = p.doAsync(waitAtGate(deadline))
	require.NoError(t, lease.Release(p.ctx))
	require.True(t, <-theirs)

	p.do(Command{Do: "raise", Lock: "g"})
	require.NoError(t, gate.Raise(p.ctx), "it is up and stays so")
	ours := make(chan error, 1)
	go func() { ours <- gate.Wait(p.ctx) }()
	up, err := gate.Raised(p.ctx)
	require.NoError(t, err)
	require.True(t, up)
	p.do(Command{Do: "lower", Lock: "g"})
	require.NoError(t, <-ours)

	p.do(Command{Do: "raise", Lock: "g"})
	require.NoError(t, gate.Lower(p.ctx))
	require.True(t, p.do(waitAtGate(deadline)))
}

// TestDoubleBarriersBesideCurator checks that two members of Lockstep and two of Curator enter and
// leave together, in several orders.
func TestDoubleBarriersBesideCurator(t *testing.T) {
	p := newBarrierMembers(t)
	for round := range 4 {
		path := p.path + "/" + strconv.Itoa(round)
		var enterings, leavings []func()
		ours, theirs := make(chan error, 4), make(chan bool, 4)
		for i := range 2 {
			name := strconv.Itoa(2*round + i)
			p.do(Command{Do: "new", Client: "c", Lock: name,
				Spec: Spec{Kind: "double", Paths: []string{path}, Permits: 4}})
			enterings = append(enterings, func() {
				go func() { theirs <- <-p.doAsync(Command{Do: "enter", Lock: name, Wait: waitTimeout(deadline)}) }()
			})
			leavings = append(leavings, func() {
				go func() { theirs <- <-p.doAsync(Command{Do: "leave", Lock: name, Wait: waitTimeout(deadline)}) }()
			})
			b := barrier.NewDoubleBarrier(p.client, path, 4, barrier.WithCuratorLayout())
			var r *barrier.Round
			enterings = append(enterings, func() {
				go func() {
					var err error
					r, err = b.Enter(p.ctx)
					ours <- err
				}()
			})
			leavings = append(leavings, func() { go func() { ours <- r.Leave(p.ctx) }() })
		}
		for n, step := range [][]func(){enterings, leavings} {
			for i := range 3 {
				step[(round+i)%4]()
			}
			if n == 0 {
				p.await(path, 3)
			}
			require.Empty(t, ours, "not before all are there")
			require.Empty(t, theirs)
			step[(round+3)%4]()
			for range 2 {
				require.NoError(t, <-ours)
				require.True(t, <-theirs)
			}
		}
		syncWithOthers(t, p.ctx, p.client)
		names, _, err := p.client.Children(p.ctx, path)
		if !errors.Is(err, framework.ErrNoNode) {
			require.NoError(t, err)
			require.Empty(t, names)
		}
	}
}

// await waits until this many members are inside.
func (p *barrierMembers) await(path string, n int) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		names, _, err := p.client.Children(p.ctx, path)
		return err == nil && len(names) == n
	}, deadline, 10*time.Millisecond)
}

package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// elections are the two kinds of Curator, and the options with which Lockstep shares each.
var elections = []struct {
	role
	ours []election.Option
}{
	{role{name: "leader latch", curator: Command{Spec: Spec{Kind: "latch"}}, lists: true}, nil},
	{role{name: "leader selector", curator: Command{Spec: Spec{Kind: "selector"}}, lists: true}, []election.Option{election.WithSelectorLayout()}},
}

// candidate is a Lockstep candidate.
type candidate struct {
	*election.Election
	client  *framework.Client
	session session
	term    *election.Term
}

// ourCandidates is the team of Lockstep candidates.
func ourCandidates(opts []election.Option) team {
	return team{"Lockstep", func(t *testing.T, _ role, path string) contender { return enterCandidate(t, path, opts) },
		func(role) bool { return true }}
}

func enterCandidate(t *testing.T, path string, opts []election.Option) *candidate {
	t.Helper()
	c, s := connect(t)
	id := election.WithID(fmt.Sprint("ours-", names.Add(1)))
	return &candidate{Election: election.New(c, path, append(opts, id)...), client: c, session: s}
}

func (c *candidate) lock(ctx context.Context, wait time.Duration) (granted bool, err error) {
	limited := ctx
	if wait != forever {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, max(wait, soon))
		defer cancel()
	}
	c.term, err = c.Campaign(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

func (c *candidate) unlock(ctx context.Context) error { return c.term.Resign(ctx) }

func (c *candidate) participants(ctx context.Context) (ids []string, err error) {
	all, err := c.Candidates(ctx)
	for _, one := range all {
		ids = append(ids, one.ID)
	}
	return ids, err
}

// listedNames returns ids, like kazoo's contents of nodes.
func (c *candidate) listedNames(line []node) []string { return kazooContender{}.listedNames(line) }

func (c *candidate) sessionID() session { return c.session }

func (c *candidate) work(ctx context.Context, w work) error {
	for range w.rounds {
		term, err := c.Campaign(ctx)
		if err != nil {
			return err
		}
		err = w.enter(ctx, c.client)
		if err := errors.Join(err, term.Resign(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// javaTeam is Curator's candidates. They list ids, too.
var javaTeam = team{"Curator", func(t *testing.T, r role, path string) contender {
	return javaCandidate{newPeerContender(t, curator.get(t), r.curator, r.paths(path))}
}, curatorTeam.plays}

type javaCandidate struct{ peerContender }

func (javaCandidate) listedNames(line []node) []string { return kazooContender{}.listedNames(line) }

// id is the candidate's id.
func (c javaCandidate) id() string { return c.lockIn.Lock }

// electionDuels are the scenes of locks that hold for elections too. A leader whose session ends stands again by
// itself in Curator's latch: that has a scene of its own.
var electionDuels = []string{
	"the second is refused while the first holds", "the second is granted when the first releases",
	"a waiter that gives up leaves nothing", "both list the line",
}

func TestElections(t *testing.T) {
	for _, e := range elections {
		us := ourCandidates(e.ours)
		for _, p := range []mix{{us, javaTeam}, {javaTeam, us}} {
			for _, duel := range duels {
				if slices.Contains(electionDuels, duel.name) {
					t.Run(e.name+"/"+p.String()+"/"+duel.name, func(t *testing.T) {
						t.Parallel()
						duel.run(newTwoContenders(t, e.role, p[0], p[1]))
					})
				}
			}
		}
		t.Run(e.name+"/in order", func(t *testing.T) {
			t.Parallel()
			testGrantOrder(newTestPath(t, e.role), e.role, mix{us, javaTeam})
		})
	}
}

// TestElectionSessionsEnd ends the sessions of leaders of either library.
func TestElectionSessionsEnd(t *testing.T) {
	for _, e := range elections {
		us := ourCandidates(e.ours)
		for _, p := range []mix{{us, javaTeam}, {javaTeam, us}} {
			t.Run(e.name+"/"+p.String(), func(t *testing.T) {
				t.Parallel()
				s := newTestPath(t, e.role)
				first, second := p[0].enter(t, e.role, s.path), p[1].enter(t, e.role, s.path)
				s.mustLock(first)
				told := s.startWaiter(second, forever)
				first.sessionID().kill(t)
				require.True(t, s.awaitGrant(told))
				s.release(second)
				if ours, ok := first.(*candidate); ok {
					// A lease cannot foresee that another client closes the session with its password. The term ends when the servers
					// say so, after a reconnect.
					select {
					case <-ours.term.Context().Done():
					case <-time.After(deadline):
						t.Fatal("the term did not end")
					}
					s.awaitNoNodes()
				}
			})
		}
	}
}

// TestElectionAdding lets leaders of both libraries add to numbers that only leadership protects.
func TestElectionAdding(t *testing.T) {
	for _, e := range elections {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			s := newTestPath(t, e.role)
			add := work{section: Add, nodes: s.numbers(2), rounds: rounds}
			var all concurrentWorkers
			all.enter(s, ourCandidates(e.ours), e.role, add)
			all.enter(s, javaTeam, e.role, add)
			require.NoError(t, all.work(s))
			s.sync()
			for _, n := range add.nodes {
				got, err := number(s.ctx, s.client, n)
				require.NoError(t, err)
				require.Equal(t, len(all)*rounds, got)
			}
			s.awaitNoNodes()
		})
	}
}

// TestElectionTransfers transfers the lead past a Curator candidate, which joins the line again, and to one.
func TestElectionTransfers(t *testing.T) {
	for _, e := range elections {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			s := newTestPath(t, e.role)
			a, b := enterCandidate(t, s.path, e.ours), enterCandidate(t, s.path, e.ours)
			java := javaTeam.enter(t, e.role, s.path).(javaCandidate)
			s.mustLock(a)
			ofJava := s.startWaiter(java, forever)
			ofB := s.startWaiter(b, forever)
			before := s.awaitContenders(3)
			require.NoError(t, a.term.TransferTo(s.ctx, b.ID()))
			require.True(t, s.awaitGrant(ofB))
			require.Greater(t, b.term.Token(), a.term.Token())
			after := s.awaitContenders(2)
			require.Equal(t, before[2], after[0])
			require.Equal(t, java.id(), after[1].data, "the skipped candidate joins the line again")
			require.NotEqual(t, before[1].path, after[1].path)
			s.requireStillWaiting(ofJava)

			back := s.startWaiter(a, forever)
			require.NoError(t, b.term.TransferTo(s.ctx, java.id()))
			require.True(t, s.awaitGrant(ofJava))
			s.requireStillWaiting(back)
			s.release(java)
			require.True(t, s.awaitGrant(back))
			s.release(a)
			s.awaitNoNodes()
		})
	}
}

// TestElectionObservers lets Lockstep observers follow leaders of both libraries.
func TestElectionObservers(t *testing.T) {
	for _, e := range elections {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			s := newTestPath(t, e.role)
			ours, java := enterCandidate(t, s.path, e.ours), javaTeam.enter(t, e.role, s.path).(javaCandidate)
			seen := make(chan string, 10)
			observing := enterCandidate(t, s.path, e.ours)
			s.asking.Go(func() {
				for leader, err := range observing.Observe(s.ctx) {
					switch {
					case err != nil:
						seen <- err.Error()
					case leader == nil:
						seen <- "none"
					default:
						seen <- fmt.Sprint(leader.ID, " ", leader.Number)
					}
				}
			})
			sees := func(want string) {
				t.Helper()
				select {
				case got := <-seen:
					require.Equal(t, want, got)
				case <-time.After(deadline):
					require.Fail(t, "not observed", want)
				}
			}
			sees("none")
			s.mustLock(java)
			sees(java.id() + " 0")
			told := s.startWaiter(ours, forever)
			s.release(java)
			require.True(t, s.awaitGrant(told))
			sees(ours.ID() + " 1")
			s.release(ours)
			sees("none")
		})
	}
}

// TestElectionLayoutsAreNotMixed meets each kind's Java candidates with the other kind's of ours.
func TestElectionLayoutsAreNotMixed(t *testing.T) {
	for i, e := range elections {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			s := newTestPath(t, e.role)
			java := javaTeam.enter(t, e.role, s.path)
			s.mustLock(java)
			other := enterCandidate(t, s.path, elections[1-i].ours)
			_, err := other.Campaign(s.ctx)
			require.ErrorIs(t, err, locks.ErrKindMixed)
			s.awaitContenders(1)
			s.release(java)
			s.awaitNoNodes()
		})
	}
}

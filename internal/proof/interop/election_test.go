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
)

// elections are the two kinds of Curator, and the options with which Lockstep shares each.
var elections = []struct {
	role
	ours []election.Option
}{
	{role{name: "leader latch", curator: Command{Spec: Spec{Kind: "latch"}}, lists: true}, nil},
	{role{name: "leader selector", curator: Command{Spec: Spec{Kind: "selector"}}, lists: true},
		[]election.Option{election.WithSelectorLayout()}},
}

// candidate is a Lockstep candidate.
type candidate struct {
	*election.Election
	client  *framework.Client
	session session
	term    *election.Term
}

// lockstepCandidates returns the library of Lockstep candidates.
func lockstepCandidates(opts []election.Option) library {
	return library{"Lockstep", func(t *testing.T, _ role, path string) contender { return newCandidate(t, path, opts) },
		func(role) bool { return true }}
}

func newCandidate(t *testing.T, path string, opts []election.Option) *candidate {
	t.Helper()
	c, s := connect(t)
	id := election.WithID(fmt.Sprint("ours-", names.Add(1)))
	return &candidate{Election: election.New(c, path, append(opts, id)...), client: c, session: s}
}

func (c *candidate) lock(ctx context.Context, wait time.Duration) (granted bool, err error) {
	limited := ctx
	if wait != forever {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, max(wait, shortWait))
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

// listedNames returns the candidates' ids, as for kazoo, which lists the nodes' contents.
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

// curatorCandidates is the library of Curator's candidates. They list ids, too.
var curatorCandidates = library{"Curator", func(t *testing.T, r role, path string) contender {
	return curatorCandidate{newPeerContender(t, curator.get(t), r.curator, r.paths(path))}
}, curatorLibrary.supports}

type curatorCandidate struct{ peerContender }

func (curatorCandidate) listedNames(line []node) []string { return kazooContender{}.listedNames(line) }

// id is the candidate's id.
func (c curatorCandidate) id() string { return c.lockIn.Lock }

// electionScenarios are the scenarios of locks that also apply to elections. In Curator's latch a
// leader whose session ends campaigns again by itself; TestElectionSessionsEnd tests that.
var electionScenarios = []string{
	"the second is refused while the first holds", "the second is granted when the first releases",
	"a waiter that gives up leaves nothing", "both list the line",
}

func TestElections(t *testing.T) {
	for _, e := range elections {
		us := lockstepCandidates(e.ours)
		for _, p := range []mix{{us, curatorCandidates}, {curatorCandidates, us}} {
			for _, scenario := range scenarios {
				if slices.Contains(electionScenarios, scenario.name) {
					t.Run(e.name+"/"+p.String()+"/"+scenario.name, func(t *testing.T) {
						t.Parallel()
						scenario.run(newTwoContenders(t, e.role, p[0], p[1]))
					})
				}
			}
		}
		t.Run(e.name+"/in order", func(t *testing.T) {
			t.Parallel()
			testGrantOrder(newTestPath(t, e.role), e.role, mix{us, curatorCandidates})
		})
	}
}

// TestElectionSessionsEnd ends the sessions of leaders of either library.
func TestElectionSessionsEnd(t *testing.T) {
	for _, e := range elections {
		us := lockstepCandidates(e.ours)
		for _, p := range []mix{{us, curatorCandidates}, {curatorCandidates, us}} {
			t.Run(e.name+"/"+p.String(), func(t *testing.T) {
				t.Parallel()
				s := newTestPath(t, e.role)
				first, second := p[0].newContender(t, e.role, s.path), p[1].newContender(t, e.role, s.path)
				s.mustLock(first)
				outcome := s.startWaiter(second, forever)
				first.sessionID().kill(t)
				require.True(t, s.awaitGrant(outcome))
				s.release(second)
				if ours, ok := first.(*candidate); ok {
					// A lease does not end when another client closes the session with its
					// password. The term ends when the client has reconnected and the servers have
					// reported that the session has ended.
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
			all.add(s, lockstepCandidates(e.ours), e.role, add)
			all.add(s, curatorCandidates, e.role, add)
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

// TestElectionTransfers transfers the lead past a Curator candidate, which joins the line again,
// and then to a Curator candidate.
func TestElectionTransfers(t *testing.T) {
	for _, e := range elections {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			s := newTestPath(t, e.role)
			a, b := newCandidate(t, s.path, e.ours), newCandidate(t, s.path, e.ours)
			java := curatorCandidates.newContender(t, e.role, s.path).(curatorCandidate)
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
			ours, java := newCandidate(t, s.path, e.ours),
				curatorCandidates.newContender(t, e.role, s.path).(curatorCandidate)
			seen := make(chan string, 10)
			observing := newCandidate(t, s.path, e.ours)
			s.asking.Go(func() {
				for leader, err := range observing.Follow(s.ctx) {
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
			outcome := s.startWaiter(ours, forever)
			s.release(java)
			require.True(t, s.awaitGrant(outcome))
			sees(ours.ID() + " 1")
			s.release(ours)
			sees("none")
		})
	}
}

// TestElectionLayoutsAreNotMixed lets Curator candidates of one kind meet Lockstep candidates with
// the option for the other kind.
func TestElectionLayoutsAreNotMixed(t *testing.T) {
	for i, e := range elections {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			s := newTestPath(t, e.role)
			java := curatorCandidates.newContender(t, e.role, s.path)
			s.mustLock(java)
			other := newCandidate(t, s.path, elections[1-i].ours)
			_, err := other.Campaign(s.ctx)
			require.ErrorIs(t, err, framework.ErrForeign)
			s.awaitContenders(1)
			s.release(java)
			s.awaitNoNodes()
		})
	}
}

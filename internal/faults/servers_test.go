package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serverFault is a fault of servers or between them.
type serverFault struct {
	name string
	// corners are where the duels take place.
	corners func(t *testing.T, a *arena, r roles) []corner
	// strike begins the fault. ds are the duels it is aimed at.
	strike func(t *testing.T, a *arena, r roles, ds []*duel) error
	// repair undoes what healing the links does not; may be nil.
	repair func(a *arena, r roles) error
	// naive holders, which trust their client library, must be seen to fail.
	naive bool
}

// perCorner is the number of duels in each corner: with eight over T/4, the proof of at least one has
// been answered, at the fault, so shortly before that the leader cannot have been told of it.
const perCorner = 8

var serverFaults = []serverFault{
	{name: "follower cut off from its leader", corners: onFollower, strike: cutOff, naive: true},
	{name: "follower to leader lost", corners: onFollower, strike: holdUp},
	{name: "leader to follower lost", corners: onFollower, strike: holdDown},
	{name: "follower frozen", corners: onFollower, strike: freeze, repair: thaw},
	{name: "holder's server restarted", corners: onRestarted, strike: restart},
	{name: "holder's server killed", corners: onFollower, strike: kill, repair: restartFollower},
	{name: "leader killed", corners: onLeader, strike: killLeader, repair: restartLeader},
	{name: "leader frozen for 3 s and its follower's word lost", corners: onFollower, strike: stallLeader, repair: thawLeader},
	{name: "leader frozen between two proofs, its follower's word lost before it goes on", corners: onFollower, strike: stallThenLoseBefore, repair: thawLeader},
	{name: "leader frozen between two proofs, its follower's word lost just after", corners: onFollower, strike: stallThenLoseAfter, repair: thawLeader},
}

func (f serverFault) run(t *testing.T, a *arena) {
	r := a.roles(t)
	corners := f.corners(t, a, r)
	ds := standing(t, duels(t, perCorner, corners...))
	var fools []*fool
	if f.naive {
		fools = naiveHolders(t, a, r)
	}
	t.Cleanup(func() { f.restore(t, a, r) })
	require.NoError(t, f.strike(t, a, r, ds))
	wantOverlap(t, fools)
	fightOut(t, ds, func() { f.restore(t, a, r) })
}

// restore may be called twice: after a failed test too, the next one finds healthy servers.
func (f serverFault) restore(t *testing.T, a *arena, r roles) {
	if f.repair != nil {
		_ = f.repair(a, r) // the second time there is nothing to repair
	}
	a.heal(t)
}

// onFollower has holders on the follower that the fault hits, some of which may go to another server.
func onFollower(_ *testing.T, a *arena, r roles) []corner {
	return []corner{
		{name: "bound to its server", holder: a.at(r.follower), waiter: a.at(r.other), doomed: true},
		{name: "free to move", holder: a.at(r.leader, r.follower, r.other), option: firstAt(a.Addr(r.follower)), waiter: a.at(r.other)},
	}
}

// onRestarted has the same holders, but the restarted server may be back in time for all of them.
func onRestarted(t *testing.T, a *arena, r roles) []corner {
	cs := onFollower(t, a, r)
	cs[0].doomed = false
	return cs
}

// onLeader has holders on the leader and on a follower, and others on a follower whose own link is lost
// together with the leader, so that nothing but the timers of the new leader ends their sessions.
func onLeader(t *testing.T, a *arena, r roles) []corner {
	p := a.proxy(t, r.follower)
	spared := a.at(r.follower, r.other)
	return []corner{
		{name: "bound to the leader", holder: a.at(r.leader), waiter: spared, doomed: true},
		{name: "on a follower, its link cut as well", holder: config(p.Addr()), link: p, waiter: spared, doomed: true},
		{name: "on a follower", holder: a.at(r.follower), waiter: spared},
		{name: "free to move", holder: a.at(r.leader, r.follower, r.other), option: firstAt(a.Addr(r.leader)), waiter: spared},
	}
}

func cutOff(_ *testing.T, a *arena, r roles, _ []*duel) error { return a.CutOff(r.follower, r.leader) }
func holdUp(_ *testing.T, a *arena, r roles, _ []*duel) error { return a.Hold(r.follower, r.leader) }
func holdDown(_ *testing.T, a *arena, r roles, _ []*duel) error {
	return a.Hold(r.leader, r.follower)
}
func freeze(_ *testing.T, a *arena, r roles, _ []*duel) error { return a.Freeze(r.follower) }
func thaw(a *arena, r roles) error                            { return a.Thaw(r.follower) }
func thawLeader(a *arena, r roles) error                      { return a.Thaw(r.leader) }
func restartLeader(a *arena, r roles) error                   { return a.Restart(r.leader) }

func kill(_ *testing.T, a *arena, r roles, _ []*duel) error { return a.Kill(r.follower) }
func restartFollower(a *arena, r roles) error               { return a.Restart(r.follower) }

func restart(_ *testing.T, a *arena, r roles, _ []*duel) error {
	if err := a.Kill(r.follower); err != nil {
		return err
	}
	return a.Restart(r.follower)
}

func killLeader(_ *testing.T, a *arena, r roles, ds []*duel) error {
	for _, d := range ds {
		if d.link != nil {
			d.link.Cut()
		}
	}
	return a.Kill(r.leader)
}

// stallLeader stops the leader for 3 s, and loses what the follower sends at some moment of that or
// just after: the touches that the stopped leader has not read yet decide.
func stallLeader(t *testing.T, a *arena, r roles, _ []*duel) error {
	const stall = 3 * time.Second
	return stallThenLose(t, a, r, stall, upTo(stall+200*time.Millisecond))
}

// betweenProofs is how long the leader stops after one proof of a holder has come in, so that the next
// one lies unread before it: it is committed when the leader goes on, and counts for nothing.
const betweenProofs = timeout/4 + 200*time.Millisecond

func stallThenLoseBefore(t *testing.T, a *arena, r roles, ds []*duel) error {
	awaitProof(t, ds[0])
	return stallThenLose(t, a, r, betweenProofs, betweenProofs-50*time.Millisecond)
}

// stallThenLoseAfter lets the sync that closes the newest proof pass, or not.
func stallThenLoseAfter(t *testing.T, a *arena, r roles, ds []*duel) error {
	awaitProof(t, ds[0])
	return stallThenLose(t, a, r, betweenProofs, betweenProofs+upTo(10*time.Millisecond))
}

// awaitProof returns just after the life of a duel's holder was proven.
func awaitProof(t *testing.T, d *duel) {
	lease := d.held.lease
	for last := lease.Remaining(); lease.Remaining() <= last && !d.held.over(); pass(t, time.Millisecond) {
		last = lease.Remaining()
	}
}

// stallThenLose stops the leader for stall, and loses what the follower sends from lose on, counted
// from the same moment.
func stallThenLose(t *testing.T, a *arena, r roles, stall, lose time.Duration) error {
	t.Logf("the leader stops for %v, the follower's word is lost after %v", stall, lose)
	began := time.Now()
	until := func(d time.Duration) { pass(t, time.Until(began.Add(d))) }
	if err := a.Freeze(r.leader); err != nil {
		return err
	}
	until(min(stall, lose))
	if lose < stall {
		if err := a.Hold(r.follower, r.leader); err != nil {
			return err
		}
		until(stall)
		return a.Thaw(r.leader)
	}
	if err := a.Thaw(r.leader); err != nil {
		return err
	}
	until(lose)
	return a.Hold(r.follower, r.leader)
}

package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serverFault is a fault of servers or of links between them.
type serverFault struct {
	name string
	// corners are where the duels take place.
	placements func(t *testing.T, env *testEnv, r serverRoles) []placement
	// inject begins the fault, which affects these contests.
	inject func(t *testing.T, env *testEnv, r serverRoles, contests []*contest) error
	// repair undoes what healing the links does not undo; may be nil.
	repair func(env *testEnv, r serverRoles) error
	// withNaive runs naive holders too, of which some are expected to overlap with the next holder.
	withNaive bool
}

// contestsPerPlacement is the number of contests in each placement. With eight over T/4, the newest answered heartbeat of at least one
// is so recent that the leader cannot have received the touch of its session before the fault.
const contestsPerPlacement = 8

var serverFaults = []serverFault{
	{name: "follower cut off from its leader", placements: holdersOnFollower, inject: cutFollowerOff, withNaive: true},
	{name: "follower to leader lost", placements: holdersOnFollower, inject: loseFollowerToLeader},
	{name: "leader to follower lost", placements: holdersOnFollower, inject: loseLeaderToFollower},
	{name: "follower frozen", placements: holdersOnFollower, inject: freezeFollower, repair: thawFollower},
	{name: "holder's server restarted", placements: holdersOnRestartedFollower, inject: killAndRestartFollower},
	{name: "holder's server killed", placements: holdersOnFollower, inject: killFollower, repair: restartFollower},
	{name: "leader killed", placements: holdersOnLeader, inject: killLeader, repair: restartLeader},
	{name: "leader frozen for 3 s, its follower's messages lost", placements: holdersOnFollower, inject: freezeLeaderAndLoseLink, repair: thawLeader},
	{name: "leader frozen between heartbeats, its follower's messages lost before it continues", placements: holdersOnFollower, inject: loseLinkBeforeThaw, repair: thawLeader},
	{name: "leader frozen between heartbeats, its follower's messages lost after it continues", placements: holdersOnFollower, inject: loseLinkAfterThaw, repair: thawLeader},
}

// run returns how many naive holders overlapped with the next holder.
func (f serverFault) run(t *testing.T, env *testEnv) (naiveOverlaps int) {
	r := env.chooseRoles(t)
	placements := f.placements(t, env, r)
	contests := contestsStillHeld(t, startContests(t, contestsPerPlacement, placements...))
	var naive []*naiveHolder
	if f.withNaive {
		naive = startNaiveHolders(t, env, r)
	}
	t.Cleanup(func() { f.restore(t, env, r) })
	require.NoError(t, f.inject(t, env, r, contests))
	naiveOverlaps = countOverlaps(t, naive)
	finishContests(t, contests, func() { f.restore(t, env, r) })
	return naiveOverlaps
}

// runAndCheck is run, and requires that naive holders, if there are any, are caught. On a slow machine it may take several tries.
func (f serverFault) runAndCheck(t *testing.T, env *testEnv) {
	for try, overlaps := 1, 0; ; try++ {
		t.Run(fmt.Sprint("try ", try), func(t *testing.T) { overlaps = f.run(t, env) })
		if t.Failed() || f.withNaive == (overlaps > 0) {
			return
		}
		require.Less(t, try, 4, "no naive holder overlapped with the next holder, so the fault proves nothing")
	}
}

// restore heals all faults. It may be called twice, so that the next test finds healthy servers after a failed one.
func (f serverFault) restore(t *testing.T, env *testEnv, r serverRoles) {
	if f.repair != nil {
		_ = f.repair(env, r) // fails the second time
	}
	env.healAndAwait(t)
}

// holdersOnFollower places holders on the follower that the fault affects. Some may move to another server.
func holdersOnFollower(_ *testing.T, env *testEnv, r serverRoles) []placement {
	return []placement{
		{name: "knows its server only", holder: env.clientConfig(r.follower), waiter: env.clientConfig(r.other), mustBeLost: true},
		{name: "knows all servers", holder: env.clientConfig(r.leader, r.follower, r.other), option: withFirstServer(env.Addr(r.follower)), waiter: env.clientConfig(r.other)},
	}
}

// holdersOnRestartedFollower places the same holders, but the restarted server may be back in time for all of them.
func holdersOnRestartedFollower(t *testing.T, env *testEnv, r serverRoles) []placement {
	cs := holdersOnFollower(t, env, r)
	cs[0].mustBeLost = false
	return cs
}

// holdersOnLeader places holders on the leader, on a follower, and on a follower whose own link is lost together with the leader, so
// that only the timers of the new leader end their sessions.
func holdersOnLeader(t *testing.T, env *testEnv, r serverRoles) []placement {
	p := env.newProxy(t, r.follower)
	spared := env.clientConfig(r.follower, r.other)
	return []placement{
		{name: "knows the leader only", holder: env.clientConfig(r.leader), waiter: spared, mustBeLost: true},
		{name: "on a follower, its link cut as well", holder: config(p.Addr()), link: p, waiter: spared, mustBeLost: true},
		{name: "on a follower", holder: env.clientConfig(r.follower), waiter: spared},
		{name: "knows all servers", holder: env.clientConfig(r.leader, r.follower, r.other), option: withFirstServer(env.Addr(r.leader)), waiter: spared},
	}
}

func cutFollowerOff(_ *testing.T, env *testEnv, r serverRoles, _ []*contest) error {
	return env.CutOff(r.follower, r.leader)
}
func loseFollowerToLeader(_ *testing.T, env *testEnv, r serverRoles, _ []*contest) error {
	return env.Hold(r.follower, r.leader)
}
func loseLeaderToFollower(_ *testing.T, env *testEnv, r serverRoles, _ []*contest) error {
	return env.Hold(r.leader, r.follower)
}
func freezeFollower(_ *testing.T, env *testEnv, r serverRoles, _ []*contest) error {
	return env.Freeze(r.follower)
}
func thawFollower(env *testEnv, r serverRoles) error  { return env.Thaw(r.follower) }
func thawLeader(env *testEnv, r serverRoles) error    { return env.Thaw(r.leader) }
func restartLeader(env *testEnv, r serverRoles) error { return env.Restart(r.leader) }

func killFollower(_ *testing.T, env *testEnv, r serverRoles, _ []*contest) error {
	return env.Kill(r.follower)
}
func restartFollower(env *testEnv, r serverRoles) error { return env.Restart(r.follower) }

func killAndRestartFollower(_ *testing.T, env *testEnv, r serverRoles, _ []*contest) error {
	if err := env.Kill(r.follower); err != nil {
		return err
	}
	return env.Restart(r.follower)
}

func killLeader(_ *testing.T, env *testEnv, r serverRoles, contests []*contest) error {
	for _, d := range contests {
		if d.link != nil {
			d.link.Cut()
		}
	}
	return env.Kill(r.leader)
}

// freezeLeaderAndLoseLink freezes the leader for 3 s, and loses the follower's messages from a random moment on: the outcome depends
// on the session touches that the frozen leader has not read yet.
func freezeLeaderAndLoseLink(t *testing.T, env *testEnv, r serverRoles, _ []*contest) error {
	const stall = 3 * time.Second
	return freezeLeaderThenLoseLink(t, env, r, stall, randomBelow(stall+200*time.Millisecond))
}

// freezeBetweenHeartbeats is how long the leader is frozen after one heartbeat, so that the next heartbeat lies unread in its queue. It is
// committed when the leader continues, but does not count.
const freezeBetweenHeartbeats = sessionTimeout/4 + 200*time.Millisecond

func loseLinkBeforeThaw(t *testing.T, env *testEnv, r serverRoles, contests []*contest) error {
	awaitHeartbeat(t, contests[0])
	return freezeLeaderThenLoseLink(t, env, r, freezeBetweenHeartbeats, freezeBetweenHeartbeats-50*time.Millisecond)
}

// loseLinkAfterThaw may let the sync that completes the newest heartbeat pass.
func loseLinkAfterThaw(t *testing.T, env *testEnv, r serverRoles, contests []*contest) error {
	awaitHeartbeat(t, contests[0])
	return freezeLeaderThenLoseLink(t, env, r, freezeBetweenHeartbeats, freezeBetweenHeartbeats+randomBelow(10*time.Millisecond))
}

// awaitHeartbeat returns just after a heartbeat of the contest's holder was answered.
func awaitHeartbeat(t *testing.T, d *contest) {
	lease := d.held.lease
	for last := lease.Remaining(); lease.Remaining() <= last && !d.held.hasEnded(); wait(t, time.Millisecond) {
		last = lease.Remaining()
	}
}

// freezeLeaderThenLoseLink freezes the leader for stall, and loses the follower's messages after lose. Both count from the same
// moment.
func freezeLeaderThenLoseLink(t *testing.T, env *testEnv, r serverRoles, stall, lose time.Duration) error {
	t.Logf("the leader is frozen for %v, the follower's messages are lost after %v", stall, lose)
	began := time.Now()
	until := func(d time.Duration) { wait(t, time.Until(began.Add(d))) }
	if err := env.Freeze(r.leader); err != nil {
		return err
	}
	until(min(stall, lose))
	if lose < stall {
		if err := env.Hold(r.follower, r.leader); err != nil {
			return err
		}
		until(stall)
		return env.Thaw(r.leader)
	}
	if err := env.Thaw(r.leader); err != nil {
		return err
	}
	until(lose)
	return env.Hold(r.follower, r.leader)
}

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
	// placements returns where the holders and waiters connect.
	placements func(t *testing.T, env *testEnv, r serverRoles) []placement
	// inject begins the fault. The contests' holders are under way.
	inject func(t *testing.T, env *testEnv, r serverRoles, contests []*contest) error
	// repair undoes the part of the fault that is not undone when the links are healed. It may be
	// nil.
	repair func(env *testEnv, r serverRoles) error
	// withNaive says whether naive holders run, too. At least one of them must overlap with the
	// next holder.
	withNaive bool
}

// contestsPerPlacement is the number of contests in each placement. With eight of them, staggered
// over T/4, the newest answered heartbeat of at least one is so recent that the leader cannot have
// received the touch of its session before the fault.
const contestsPerPlacement = 8

var serverFaults = []serverFault{
	{name: "follower cut off from its leader", placements: holdersOnFollower, inject: cutFollowerOff, withNaive: true},
	{name: "follower to leader lost", placements: holdersOnFollower, inject: loseFollowerToLeader},
	{name: "leader to follower lost", placements: holdersOnFollower, inject: loseLeaderToFollower},
	{name: "follower frozen", placements: holdersOnFollower, inject: freezeFollower, repair: thawFollower},
	{name: "holder's server restarted", placements: holdersOnRestartedFollower, inject: killAndRestartFollower},
	{name: "holder's server killed", placements: holdersOnFollower, inject: killFollower, repair: restartFollower},
	{name: "leader killed", placements: holdersOnLeader, inject: killLeader, repair: restartLeader},
	{name: "leader frozen for 3 s, its follower's messages lost", placements: holdersOnFollower,
		inject: freezeLeaderAndLoseLink, repair: thawLeader},
	{name: "leader frozen between heartbeats, its follower's messages lost before it continues",
		placements: holdersOnFollower, inject: loseLinkBeforeThaw, repair: thawLeader},
	{name: "leader frozen between heartbeats, its follower's messages lost after it continues",
		placements: holdersOnFollower, inject: loseLinkAfterThaw, repair: thawLeader},
}

// run injects the fault and checks the contests. It returns how many naive holders overlapped with
// the next holder.
func (f serverFault) run(t *testing.T, env *testEnv) (naiveOverlaps int) {
	r := env.chooseRoles(t)
	placements := f.placements(t, env, r)
	contests := startContests(t, contestsPerPlacement, placements...)
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

// runAndCheck calls run. If there are naive holders, it requires that one overlaps with the next
// holder; on a slow machine that may take several tries.
func (f serverFault) runAndCheck(t *testing.T, env *testEnv) {
	for try, overlaps := 1, 0; ; try++ {
		t.Run(fmt.Sprint("try ", try), func(t *testing.T) { overlaps = f.run(t, env) })
		if t.Failed() || f.withNaive == (overlaps > 0) {
			return
		}
		require.Less(t, try, 4, "no naive holder overlapped with the next holder, so the fault proves nothing")
	}
}

// restore heals all faults. It may be called twice: a cleanup calls it again, so that the next test
// has healthy servers even if this one fails.
func (f serverFault) restore(t *testing.T, env *testEnv, r serverRoles) {
	if f.repair != nil {
		_ = f.repair(env, r) // fails the second time
	}
	env.healAndAwait(t)
}

// holdersOnFollower places holders that connect to the follower that the fault affects. Some know
// the other servers, too.
func holdersOnFollower(_ *testing.T, env *testEnv, r serverRoles) []placement {
	return []placement{
		{name: "knows its server only", holder: env.clientConfig(r.follower), waiter: env.clientConfig(r.other),
			mustBeLost: true},
		{name: "knows all servers", holder: env.clientConfig(r.leader, r.follower, r.other),
			option: withFirstServer(env.Addr(r.follower)), waiter: env.clientConfig(r.other)},
	}
}

// holdersOnRestartedFollower places the same holders. None of them must be lost, because the
// restarted server may serve in time.
func holdersOnRestartedFollower(t *testing.T, env *testEnv, r serverRoles) []placement {
	placements := holdersOnFollower(t, env, r)
	placements[0].mustBeLost = false
	return placements
}

// holdersOnLeader places holders that connect to the leader, to a follower, and to a follower over
// a link that is cut when the leader is killed: only the timers of the new leader end their
// sessions.
func holdersOnLeader(t *testing.T, env *testEnv, r serverRoles) []placement {
	p := env.newProxy(t, r.follower)
	spared := env.clientConfig(r.follower, r.other)
	return []placement{
		{name: "knows the leader only", holder: env.clientConfig(r.leader), waiter: spared, mustBeLost: true},
		{name: "on a follower, its link cut as well", holder: config(p.Addr()), link: p, waiter: spared,
			mustBeLost: true},
		{name: "on a follower", holder: env.clientConfig(r.follower), waiter: spared},
		{name: "knows all servers", holder: env.clientConfig(r.leader, r.follower, r.other),
			option: withFirstServer(env.Addr(r.leader)), waiter: spared},
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
	for _, c := range contests {
		if c.link != nil {
			c.link.Cut()
		}
	}
	return env.Kill(r.leader)
}

// freezeLeaderAndLoseLink freezes the leader for 3 s, and loses the follower's messages from a
// random moment on. The outcome depends on the session touches that the frozen leader has not read
// yet.
func freezeLeaderAndLoseLink(t *testing.T, env *testEnv, r serverRoles, _ []*contest) error {
	const stall = 3 * time.Second
	return freezeLeaderThenLoseLink(t, env, r, stall, randomBelow(stall+200*time.Millisecond))
}

// freezeBetweenHeartbeats is how long the leader is frozen after a heartbeat, so that the next
// heartbeat waits unread in its queue. The leader commits that heartbeat when it continues, but it
// does not count as proof of life.
const freezeBetweenHeartbeats = sessionTimeout/4 + 200*time.Millisecond

func loseLinkBeforeThaw(t *testing.T, env *testEnv, r serverRoles, contests []*contest) error {
	awaitHeartbeat(t, contests[0])
	return freezeLeaderThenLoseLink(t, env, r, freezeBetweenHeartbeats, freezeBetweenHeartbeats-50*time.Millisecond)
}

// loseLinkAfterThaw loses the follower's messages after the leader continues. The sync that
// completes the newest heartbeat may pass before.
func loseLinkAfterThaw(t *testing.T, env *testEnv, r serverRoles, contests []*contest) error {
	awaitHeartbeat(t, contests[0])
	return freezeLeaderThenLoseLink(t, env, r, freezeBetweenHeartbeats,
		freezeBetweenHeartbeats+randomBelow(10*time.Millisecond))
}

// awaitHeartbeat waits until a heartbeat of the contest's holder is answered.
func awaitHeartbeat(t *testing.T, c *contest) {
	lease := c.held.lease
	for last := lease.Remaining(); lease.Remaining() <= last && !c.held.hasEnded(); wait(t, time.Millisecond) {
		last = lease.Remaining()
	}
}

// freezeLeaderThenLoseLink freezes the leader for stall, and loses the follower's messages after
// lose. Both count from the same moment.
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

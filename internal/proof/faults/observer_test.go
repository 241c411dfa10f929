package faults

import (
	"flag"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/link"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
)

// all says whether every fault of observers and of dormant sessions is tried, which takes ten
// minutes. Without it, some faults of each list are tried, different ones each day and fewer with
// -short, and aimed rounds are run until a naive holder has overlapped with the next holder.
var all = flag.Bool("all", false, "try every fault of observers and of dormant sessions, and all aimed rounds")

// observerFaultsPerDay returns how many faults of observers are tried without -all.
func observerFaultsPerDay() int {
	if testing.Short() {
		return 1
	}
	return 3
}

// chosenToday returns this many faults of a list, different ones each day. With -all it returns all
// of them.
func chosenToday(faults []serverFault, each int) []serverFault {
	if *all {
		return faults
	}
	first := time.Now().YearDay() * each
	var today []serverFault
	for i := range each {
		today = append(today, faults[(first+i)%len(faults)])
	}
	return today
}

// enoughRounds reports whether there were enough aimed rounds: naive holders have overlapped with
// the next holders.
func enoughRounds(rounds, overlaps int) bool {
	least := 3
	if testing.Short() {
		least = 1
	}
	return !*all && rounds >= least && overlaps > 0
}

// observerServer is the index of the observer in an ensemble that has one.
const observerServer = 3

// TestFaultsOfObservers connects holders to an observer that gets its packets from the leader. Each
// fault of a follower is injected at the observer.
func TestFaultsOfObservers(t *testing.T) {
	t.Parallel()
	env := &testEnv{Ensemble: ensemble.Private(t,
		ensemble.Config{Links: true, NoFsync: true, Patience: waitLimit, HeapMB: 512, Observers: 1}), onObserver: true}
	for _, f := range chosenToday(serverFaults, observerFaultsPerDay()) {
		t.Run(f.name, func(t *testing.T) { f.runAndCheck(t, env) })
	}
	t.Run("aimed", func(t *testing.T) { testAimedObserverFaults(t, env) })
}

// testAimedObserverFaults freezes the leader between two heartbeats, in up to twelve rounds with 8
// holders each. The naive holders count pings as proof of life.
func testAimedObserverFaults(t *testing.T, env *testEnv) {
	overlaps := 0
	for round := range 12 {
		if enoughRounds(round, overlaps) {
			break
		}
		aimed := serverFault{placements: holdersOnObserver, inject: loseLinkBeforeThaw, repair: thawLeader,
			withNaive: true}
		if round%2 == 1 {
			aimed.inject = loseLinkAfterThaw
		}
		t.Run(strconv.Itoa(round), func(t *testing.T) { overlaps += aimed.run(t, env) })
	}
	require.Positive(t, overlaps, "no naive holder overlapped with the next holder, so the fault proves nothing")
}

// holdersOnObserver places holders that know the observer only.
func holdersOnObserver(t *testing.T, env *testEnv, r serverRoles) []placement {
	return holdersOnFollower(t, env, r)[:1]
}

// masterFaults are faults between an observer, the follower that it gets its packets from, and the
// leader.
var masterFaults = []serverFault{
	{name: "observer cut off from its follower", placements: holdersBehindMaster,
		inject: holdMasterLink(ensemble.Both)},
	{name: "observer to follower lost", placements: holdersBehindMaster, inject: holdMasterLink(ensemble.Up)},
	{name: "follower to observer lost", placements: holdersBehindMaster, inject: holdMasterLink(ensemble.Down)},
	{name: "follower cut off from its leader", placements: holdersBehindMaster, inject: cutFollowerOff},
	{name: "follower to leader lost", placements: holdersBehindMaster, inject: loseFollowerToLeader},
	{name: "leader to follower lost", placements: holdersBehindMaster, inject: loseLeaderToFollower},
	{name: "follower frozen", placements: holdersBehindMaster, inject: freezeFollower, repair: thawFollower},
	{name: "follower killed", placements: holdersBehindMaster, inject: killFollower, repair: restartFollower},
	{name: "leader killed", placements: holdersBehindMaster, inject: killLeader, repair: restartLeader},
	{name: "leader frozen between heartbeats, its follower's messages lost before it continues",
		placements: holdersBehindMaster, inject: loseLinkBeforeThaw, repair: thawLeader},
	{name: "leader frozen between heartbeats, its follower's messages lost after it continues",
		placements: holdersBehindMaster, inject: loseLinkAfterThaw, repair: thawLeader},
}

// aimedMasterFaults begin at the moment at which the leader knows least: two heartbeats were
// answered, and the leader has not yet received the session touches that the observer has recorded
// for them. The first one stalls the follower's messages to the observer between two heartbeats.
// The other one, in every fourth round, freezes the follower. resume ends the stall.
var aimedMasterFaults = []func(t *testing.T, env *testEnv, r serverRoles) (resume func() error, err error){
	func(_ *testing.T, env *testEnv, _ serverRoles) (func() error, error) {
		link := env.MasterLink(observerServer)
		link.Hold(ensemble.Down)
		return func() error { link.Release(ensemble.Down); return nil }, nil
	},
	func(_ *testing.T, env *testEnv, r serverRoles) (func() error, error) {
		return func() error { return env.Thaw(r.follower) }, env.Freeze(r.follower)
	},
}

// TestFaultsBehindObserverMaster connects holders to an observer that gets its packets from a
// follower (observerMasterPort). The holders whose clients do not have Config.ObserverMasters are
// the naive ones: some of them must overlap with the next holder. The holders whose clients have it
// must not.
func TestFaultsBehindObserverMaster(t *testing.T) {
	t.Parallel()
	env := &testEnv{Ensemble: ensemble.Private(t, ensemble.Config{
		Links: true, NoFsync: true, Patience: waitLimit, HeapMB: 512, Observers: 1, ObserverMasters: true,
	}), behindMaster: true}
	for _, f := range chosenToday(masterFaults, observerFaultsPerDay()) {
		t.Run(f.name, func(t *testing.T) { f.runAndCheck(t, env) })
	}
	t.Run("aimed", func(t *testing.T) { testAimedMasterFaults(t, env) })
}

// aimedRounds is the largest number of aimed rounds. Each has aimedHolders holders with
// Config.ObserverMasters and as many without: up to 96 tries.
const aimedRounds, aimedHolders = 12, 8

func testAimedMasterFaults(t *testing.T, env *testEnv) {
	overlaps, tries := 0, 0
	for round := range aimedRounds {
		if enoughRounds(round, overlaps) {
			break
		}
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			r := env.chooseRoles(t)
			aware := placement{
				name: "with Config.ObserverMasters", holder: env.clientConfig(observerServer),
				waiting: mustConnect(t, env.clientConfig(r.other)), mustBeLost: true,
			}
			unaware := aware
			unaware.name, unaware.naive = "without Config.ObserverMasters", true
			aware.holder.ObserverMasters = true
			contests := startStaggeredContests(t, 0, aimedHolders, aware, unaware)
			t.Cleanup(func() { env.healAndAwait(t) })
			awaitHeartbeatWithoutPing(t, contests[0])
			stallBetweenHeartbeats(t, env, r, aimedMasterFaults[round%4/3])
			finishContests(t, contests, func() { env.healAndAwait(t) })
			for _, c := range contests {
				if c.history.overlapped {
					overlaps++
				}
				if !c.naive {
					tries++
				}
			}
		})
	}
	t.Logf("%d tries; of as many holders without Config.ObserverMasters, %d overlapped with the next holder",
		tries, overlaps)
	if *all {
		require.GreaterOrEqual(t, tries, 77)
	}
	require.Positive(t, overlaps, "no naive holder overlapped with the next holder, so the fault proves nothing")
}

// awaitHeartbeatWithoutPing waits for heartbeats, of holders that have connected at the same time,
// with no ping since the previous heartbeats. So the observer's latest record that can have reached
// the leader is that of the previous heartbeats. One in nine heartbeats is of this kind.
func awaitHeartbeatWithoutPing(t *testing.T, c *contest) {
	t.Helper()
	const between, slack = sessionTimeout / 4, sessionTimeout / 20
	pings := link.PingInterval(sessionTimeout)
	age := 5 * between
	for age%pings < between+slack || age%pings > pings-slack || time.Now().After(c.connectedAt.Add(age-2*slack)) {
		age += between
	}
	wait(t, time.Until(c.connectedAt.Add(age-2*slack)))
	awaitHeartbeat(t, c)
	wait(t, 30*time.Millisecond) // of the others
}

// stallBetweenHeartbeats calls stall just after a heartbeat of all holders, and ends the stall when
// the next heartbeat was sent. As soon as that is answered, it loses the follower's messages to the
// leader.
func stallBetweenHeartbeats(t *testing.T, env *testEnv, r serverRoles,
	stall func(*testing.T, *testEnv, serverRoles) (func() error, error)) {
	t.Helper()
	resume, err := stall(t, env, r)
	require.NoError(t, err)
	wait(t, sessionTimeout/4+60*time.Millisecond)
	require.NoError(t, resume())
	wait(t, 20*time.Millisecond+randomBelow(40*time.Millisecond))
	require.NoError(t, env.Hold(r.follower, r.leader))
}

// holdersBehindMaster places holders that connect to the observer. Some know other servers, too.
func holdersBehindMaster(_ *testing.T, env *testEnv, r serverRoles) []placement {
	only, all := env.clientConfig(observerServer), env.clientConfig(observerServer, r.leader, r.other)
	only.ObserverMasters, all.ObserverMasters = true, true
	return []placement{
		{name: "knows the observer only", holder: only, waiter: env.clientConfig(r.other)},
		{name: "knows other servers", holder: all, option: withFirstServer(env.Addr(observerServer)),
			waiter: env.clientConfig(r.other)},
	}
}

func holdMasterLink(d ensemble.Direction) func(*testing.T, *testEnv, serverRoles, []*contest) error {
	return func(_ *testing.T, env *testEnv, _ serverRoles, _ []*contest) error {
		env.MasterLink(observerServer).Hold(d)
		return nil
	}
}

package faults

import (
	"flag"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/ensemble"
)

// all is whether every fault of observers and of sessions that sleep is tried. Without it, some of each list are, with -short fewer, other ones each day, and
// aimed rounds until a naive holder has overlapped with the next holder: all of them take ten minutes.
var all = flag.Bool("all", false, "try every fault of observers and of sessions that sleep, and all aimed rounds")

// observerFaultsADay is how many faults of observers are tried without -all.
func observerFaultsADay() int {
	if testing.Short() {
		return 2
	}
	return 3
}

// ofToday returns so many faults of a list, other ones each day; with -all all of them.
func ofToday(faults []serverFault, each int) []serverFault {
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

// enoughRounds reports whether aimed rounds have shown enough: naive holders have overlapped with the next ones.
func enoughRounds(rounds, overlaps int) bool {
	least := 3
	if testing.Short() {
		least = 1
	}
	return !*all && rounds >= least && overlaps > 0
}

// observerServer is the index of the observer in an ensemble that has one.
const observerServer = 3

// TestFaultsOfObservers places holders on an observer that gets its packets from the leader: each fault of a follower is one of the observer.
func TestFaultsOfObservers(t *testing.T) {
	env := &testEnv{Ensemble: ensemble.Private(t, ensemble.Config{Links: true, NoFsync: true, Patience: waitLimit, HeapMB: 512, Observers: 1}), onObserver: true}
	for _, f := range ofToday(serverFaults, observerFaultsADay()) {
		t.Run(f.name, func(t *testing.T) { f.runAndCheck(t, env) })
	}
	t.Run("aimed", func(t *testing.T) { testAimedObserverFaults(t, env) })
}

// testAimedObserverFaults freezes the leader between two heartbeats, up to 96 times by twelve rounds. The naive holders count pings.
func testAimedObserverFaults(t *testing.T, env *testEnv) {
	overlaps := 0
	for round := range 12 {
		if enoughRounds(round, overlaps) {
			break
		}
		aimed := serverFault{placements: holdersOnObserver, inject: loseLinkBeforeThaw, repair: thawLeader, withNaive: true}
		if round%2 == 1 {
			aimed.inject = loseLinkAfterThaw
		}
		t.Run(strconv.Itoa(round), func(t *testing.T) { overlaps += aimed.run(t, env) })
	}
	require.Positive(t, overlaps, "no naive holder overlapped with the next holder, so the fault proves nothing")
}

// holdersOnObserver places holders on the observer that know no other server.
func holdersOnObserver(t *testing.T, env *testEnv, r serverRoles) []placement {
	return holdersOnFollower(t, env, r)[:1]
}

// masterFaults are faults between an observer, the follower that it gets its packets from, and the leader.
var masterFaults = []serverFault{
	{name: "observer cut off from its follower", placements: holdersBehindMaster, inject: holdMasterLink(ensemble.Both)},
	{name: "observer to follower lost", placements: holdersBehindMaster, inject: holdMasterLink(ensemble.Up)},
	{name: "follower to observer lost", placements: holdersBehindMaster, inject: holdMasterLink(ensemble.Down)},
	{name: "follower cut off from its leader", placements: holdersBehindMaster, inject: cutFollowerOff},
	{name: "follower to leader lost", placements: holdersBehindMaster, inject: loseFollowerToLeader},
	{name: "leader to follower lost", placements: holdersBehindMaster, inject: loseLeaderToFollower},
	{name: "follower frozen", placements: holdersBehindMaster, inject: freezeFollower, repair: thawFollower},
	{name: "follower killed", placements: holdersBehindMaster, inject: killFollower, repair: restartFollower},
	{name: "leader killed", placements: holdersBehindMaster, inject: killLeader, repair: restartLeader},
	{name: "leader frozen between heartbeats, its follower's messages lost before it continues", placements: holdersBehindMaster, inject: loseLinkBeforeThaw, repair: thawLeader},
	{name: "leader frozen between heartbeats, its follower's messages lost after it continues", placements: holdersBehindMaster, inject: loseLinkAfterThaw, repair: thawLeader},
}

// aimedMasterFaults meet the moment at which the leader knows least: two heartbeats were answered, and what the observer has recorded of them is still on
// its way. The first one stalls the follower's messages to the observer between two heartbeats, the other one, in every fourth round, the follower itself.
var aimedMasterFaults = []func(t *testing.T, env *testEnv, r serverRoles) (goOn func() error, err error){
	func(_ *testing.T, env *testEnv, _ serverRoles) (func() error, error) {
		link := env.MasterLink(observerServer)
		link.Hold(ensemble.Down)
		return func() error { link.Release(ensemble.Down); return nil }, nil
	},
	func(_ *testing.T, env *testEnv, r serverRoles) (func() error, error) {
		return func() error { return env.Thaw(r.follower) }, env.Freeze(r.follower)
	},
}

// TestFaultsBehindObserverMaster places holders on an observer that gets its packets from a follower (observerMasterPort). Those that do not know it,
// since their clients have no Config.ObserverMasters, are the naive ones: some must overlap with the next holder. Those that know it must not.
func TestFaultsBehindObserverMaster(t *testing.T) {
	env := &testEnv{Ensemble: ensemble.Private(t, ensemble.Config{
		Links: true, NoFsync: true, Patience: waitLimit, HeapMB: 512, Observers: 1, ObserverMasters: true,
	}), behindMaster: true}
	for _, f := range ofToday(masterFaults, observerFaultsADay()) {
		t.Run(f.name, func(t *testing.T) { f.runAndCheck(t, env) })
	}
	t.Run("aimed", func(t *testing.T) { testAimedMasterFaults(t, env) })
}

// aimedRounds with aimedHolders of each rule are up to 96 tries.
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
				name: "one heartbeat further back", holder: env.clientConfig(observerServer), waiting: mustConnect(t, env.clientConfig(r.other)), mustBeLost: true,
			}
			unaware := aware
			unaware.name, unaware.naive = "the heartbeat before", true
			aware.holder.ObserverMasters = true
			contests := contestsStillHeld(t, startContestsOver(t, 0, aimedHolders, aware, unaware))
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
	t.Logf("%d tries; of as many holders that count the heartbeat before, %d overlapped with the next holder", tries, overlaps)
	if *all {
		require.GreaterOrEqual(t, tries, 77)
	}
	require.Positive(t, overlaps, "no naive holder overlapped with the next holder, so the fault proves nothing")
}

// awaitHeartbeatWithoutPing returns just after heartbeats of holders that connected together, between which and the ones before the library sent no ping: of
// what the observer has recorded, only the former heartbeats can have reached the leader. Heartbeats are T/4 apart and pings T/3, so it is the same in each T.
func awaitHeartbeatWithoutPing(t *testing.T, c *contest) {
	t.Helper()
	next := c.connectedAt.Add(sessionTimeout + sessionTimeout/10)
	for time.Now().After(next) {
		next = next.Add(sessionTimeout)
	}
	wait(t, time.Until(next))
	awaitHeartbeat(t, c)
	wait(t, 30*time.Millisecond) // of the others
}

// stallBetweenHeartbeats stalls something just after a heartbeat of all holders, until their next one is on its way, and loses the follower's messages to the
// leader as soon as that was answered.
func stallBetweenHeartbeats(t *testing.T, env *testEnv, r serverRoles, stall func(*testing.T, *testEnv, serverRoles) (func() error, error)) {
	t.Helper()
	goOn, err := stall(t, env, r)
	require.NoError(t, err)
	wait(t, sessionTimeout/4+60*time.Millisecond)
	require.NoError(t, goOn())
	wait(t, 20*time.Millisecond+randomBelow(40*time.Millisecond))
	require.NoError(t, env.Hold(r.follower, r.leader))
}

// holdersBehindMaster places holders on the observer. Some may move to another server.
func holdersBehindMaster(_ *testing.T, env *testEnv, r serverRoles) []placement {
	only, all := env.clientConfig(observerServer), env.clientConfig(observerServer, r.leader, r.other)
	only.ObserverMasters, all.ObserverMasters = true, true
	return []placement{
		{name: "knows the observer only", holder: only, waiter: env.clientConfig(r.other)},
		{name: "knows other servers", holder: all, option: withFirstServer(env.Addr(observerServer)), waiter: env.clientConfig(r.other)},
	}
}

func holdMasterLink(d ensemble.Direction) func(*testing.T, *testEnv, serverRoles, []*contest) error {
	return func(_ *testing.T, env *testEnv, _ serverRoles, _ []*contest) error {
		env.MasterLink(observerServer).Hold(d)
		return nil
	}
}

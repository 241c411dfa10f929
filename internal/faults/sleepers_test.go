package faults

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// sleeper has been idle for so long that its session sleeps. It asks for a lock of its own in the middle of a fault, and so wakes its session there. Behind it,
// a waiter beyond the fault's reach asks too. A naive sleeper counts the pings that are answered, and holds as soon as its node is created.
type sleeper struct {
	history *lockHistory
	client  *framework.Client // nil for a naive one
	naive   *naiveHolder

	held   *grant        // nil if the ask failed; of a naive one always
	holds  bool          // the ask succeeded
	waiter chan *grant   // receives the waiter's grant
	asked  chan struct{} // closed after the ask
}

// Sleepers of each fault: some know the fault's follower only, some all servers, some are naive.
const sleepersOfEach = 8

// napTime is how long a session sleeps before the fault: it falls asleep after T.
const napTime = 2*sessionTimeout + sessionTimeout/2

// sleeperFault is a fault with asks spread over a time around it.
type sleeperFault struct {
	serverFault
	span time.Duration // of the asks
	at   time.Duration // of the fault, from the first ask
}

// testSleepers tries one fault each day, and aimed ones until a naive sleeper has overlapped with the next holder; -all tries all.
func testSleepers(t *testing.T, env *testEnv) {
	tries, overlaps := 0, 0
	for _, f := range ofToday(serverFaults[:len(serverFaults)-2], 1) { // the last two are aimed at heartbeats
		t.Run(f.name, func(t *testing.T) {
			sleeperFault{f, sessionTimeout, sessionTimeout / 2}.run(t, env)
		})
	}
	for round := range 12 { // on a slow machine some are aimed badly
		if !*all && overlaps > 0 {
			break
		}
		lose := freezeAsSessionsWake - 10*time.Millisecond + randomBelow(100*time.Millisecond)
		if round%2 == 0 { // what was sent meanwhile has surely been committed
			lose = freezeAsSessionsWake + 100*time.Millisecond + randomBelow(200*time.Millisecond)
		}
		f := serverFault{repair: thawLeader, inject: func(t *testing.T, env *testEnv, r serverRoles, _ []*contest) error {
			return freezeLeaderThenLoseLink(t, env, r, freezeAsSessionsWake, lose)
		}}
		t.Run("aimed "+strconv.Itoa(round), func(t *testing.T) {
			n, naive := sleeperFault{f, freezeAsSessionsWake + 100*time.Millisecond, 50 * time.Millisecond}.run(t, env)
			tries, overlaps = tries+n, overlaps+naive
		})
	}
	t.Logf("%d aimed tries; of half as many naive sleepers, %d overlapped with the next holder", tries, overlaps)
	if *all {
		require.GreaterOrEqual(t, tries, 77)
	}
	require.Positive(t, overlaps, "no naive sleeper overlapped with the next holder, so the fault proves nothing")
}

// freezeAsSessionsWake is how long the leader is frozen while sessions wake: what their follower has recorded of them is then older than T/4 and still
// on its way.
const freezeAsSessionsWake = sessionTimeout/4 + 200*time.Millisecond

// run returns how many sleepers that are not naive have asked, and how many naive ones overlapped with the next holder.
func (f sleeperFault) run(t *testing.T, env *testEnv) (tries, overlaps int) {
	r := env.chooseRoles(t)
	waiter := mustConnect(t, env.clientConfig(r.other))
	sleepers := startSleepers(t, env, r, waiter)
	t.Cleanup(func() { f.restore(t, env, r) })
	wait(t, napTime)
	asking, stop := context.WithCancel(t.Context())
	defer stop()
	for i, s := range sleepers {
		if s.client != nil {
			require.False(t, s.client.Status().Awake, "a session does not sleep")
			tries++
		}
		go s.ask(asking, waiter, f.span*time.Duration(i)/time.Duration(len(sleepers)))
	}
	wait(t, f.at)
	require.NoError(t, f.inject(t, env, r, nil))
	wait(t, 2*sessionTimeout)
	f.restore(t, env, r)
	held, granted := 0, 0
	for _, s := range sleepers {
		if s.client == nil { // its ask may wait for ever
			continue
		}
		<-s.asked
		if s.holds {
			held++
			s.held.release(t.Context())
		}
		if g := awaitGrant(t, s.waiter); s.holds && g.lease.Token() > s.held.lease.Token() {
			granted++
		}
		s.history.checkGaps()
	}
	overlaps = countNaiveSleepers(sleepers)
	t.Logf("%d of %d sleepers were granted, %d of them before their waiters; %d of %d naive ones overlapped with the next holder", held, tries, granted, overlaps, len(sleepers)-tries)
	return tries, overlaps
}

func startSleepers(t *testing.T, env *testEnv, r serverRoles, waiter *framework.Client) []*sleeper {
	t.Helper()
	sleepers := make([]*sleeper, 3*sleepersOfEach)
	require.NoError(t, runConcurrently(len(sleepers), func(i int) (err error) {
		s := &sleeper{history: &lockHistory{t: t, path: fmt.Sprintf("/%s/%d", t.Name(), i)}, waiter: make(chan *grant, 1), asked: make(chan struct{})}
		sleepers[i] = s
		if err := waiter.MakeDirs(t.Context(), s.history.path); err != nil {
			return err
		}
		switch i % 3 {
		case 0:
			s.client, err = connect(t, env.clientConfig(r.follower))
		case 1:
			s.client, err = connect(t, env.clientConfig(r.leader, r.follower, r.other), withFirstServer(env.Addr(r.follower)))
		default:
			s.history.naive = true
			s.naive = &naiveHolder{history: s.history}
			err = s.naive.connect(t, env.Addr(r.follower))
		}
		return err
	}))
	return sleepers
}

// ask asks after a time, and has the waiter ask a moment later. It ends with the test.
func (s *sleeper) ask(ctx context.Context, waiter *framework.Client, after time.Duration) {
	wait(s.history.t, after)
	go func() {
		wait(s.history.t, 100*time.Millisecond)
		defer close(s.waiter)
		if lease, err := locks.NewMutex(waiter, s.history.path).Lock(s.history.t.Context()); err == nil {
			s.waiter <- s.history.addGrant("the waiter", lease)
		}
	}()
	defer close(s.asked)
	if s.client == nil {
		s.holds = s.naive.hold() == nil
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*sessionTimeout)
	defer cancel()
	if lease, err := locks.NewMutex(s.client, s.history.path).Lock(ctx); err == nil {
		s.held, s.holds = s.history.addGrant("the sleeper", lease), true
	}
}

// countNaiveSleepers counts the naive sleepers that hold, or have held, beside their waiters.
func countNaiveSleepers(sleepers []*sleeper) (overlaps int) {
	for _, s := range sleepers {
		if s.client != nil {
			continue
		}
		select {
		case <-s.asked:
		default:
			continue
		}
		select {
		case next := <-s.waiter:
			if s.holds && next != nil && s.naive.isBefore(next.lease.Node()) && s.naive.overlap(next) > 0 {
				overlaps++
			}
		default:
		}
	}
	return overlaps
}

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

// dormantContender has been idle for so long that its session is dormant. It asks for a lock of its
// own in the middle of a fault, which wakes its session. A waiter that the fault does not affect
// asks for the lock after it. A naive contender counts the pings that are answered as proof of
// life, and holds as soon as its node is created.
type dormantContender struct {
	history *lockHistory
	client  *framework.Client // nil for a naive one
	naive   *naiveHolder

	held        *grant        // nil if the request failed; of a naive one always
	holds       bool          // the request succeeded
	waiterGrant chan *grant   // receives the waiter's grant
	asked       chan struct{} // closed after the request
}

// contendersOfEach is the number of contenders of each kind: those that know the fault's follower
// only, those that know all servers, and naive ones.
const contendersOfEach = 8

// dormantTime is how long a session is idle before the fault. It becomes dormant after T.
const dormantTime = 2*sessionTimeout + sessionTimeout/2

// dormancyFault is a fault, and when the contenders ask: their asks are spread over a time around
// it.
type dormancyFault struct {
	serverFault
	span time.Duration // in which all contenders ask
	at   time.Duration // of the fault, from the first ask
}

// testDormantSessions tries one fault, a different one each day, and aimed faults until a naive
// contender has overlapped with the next holder. With -all it tries all.
func testDormantSessions(t *testing.T, env *testEnv) {
	tries, granted, overlaps := 0, 0, 0
	for _, f := range chosenToday(serverFaults[:len(serverFaults)-2], 1) { // the last two are aimed at heartbeats
		t.Run(f.name, func(t *testing.T) {
			_, held, _ := dormancyFault{f, sessionTimeout, sessionTimeout / 2}.run(t, env)
			granted += held
		})
	}
	for round := range 12 { // on a slow machine some are aimed badly
		if !*all && overlaps > 0 {
			break
		}
		lose := freezeWhileSessionsWake - 10*time.Millisecond + randomBelow(100*time.Millisecond)
		if round%2 == 0 { // what was sent meanwhile has surely been committed
			lose = freezeWhileSessionsWake + 100*time.Millisecond + randomBelow(200*time.Millisecond)
		}
		f := serverFault{repair: thawLeader,
			inject: func(t *testing.T, env *testEnv, r serverRoles, _ []*contest) error {
				return freezeLeaderThenLoseLink(t, env, r, freezeWhileSessionsWake, lose)
			}}
		t.Run("aimed "+strconv.Itoa(round), func(t *testing.T) {
			n, held, naive := dormancyFault{f, freezeWhileSessionsWake + 100*time.Millisecond,
				50 * time.Millisecond}.run(t, env)
			tries, granted, overlaps = tries+n, granted+held, overlaps+naive
		})
	}
	t.Logf("%d aimed tries; of half as many naive contenders, %d overlapped with the next holder", tries, overlaps)
	if *all {
		require.GreaterOrEqual(t, tries, 77)
	}
	require.Positive(t, granted, "no dormant contender was granted, so no fault could break its hold")
	require.Positive(t, overlaps, "no naive contender overlapped with the next holder, so the fault proves nothing")
}

// freezeWhileSessionsWake is how long the leader is frozen while sessions wake: the session touches
// that their follower has recorded are then older than T/4 and have not reached the leader.
const freezeWhileSessionsWake = sessionTimeout/4 + 200*time.Millisecond

// run injects the fault and checks the locks. It returns how many contenders that are not naive
// have asked, how many of them were granted, and how many naive ones overlapped with the next
// holder.
func (f dormancyFault) run(t *testing.T, env *testEnv) (tries, held, overlaps int) {
	r := env.chooseRoles(t)
	waiter := mustConnect(t, env.clientConfig(r.other))
	dormant := startDormantContenders(t, env, r, waiter)
	t.Cleanup(func() { f.restore(t, env, r) })
	wait(t, dormantTime)
	asking, stop := context.WithCancel(t.Context())
	defer stop()
	for _, s := range dormant { // a session that was lost because the machine stalled has begun again
		if s.client != nil {
			eventually(t, func() error {
				return mismatch("a dormant session", !s.client.Status().Awake,
					s.client.Status())
			})
			tries++
		}
	}
	for i, s := range dormant {
		go s.ask(asking, waiter, f.span*time.Duration(i)/time.Duration(len(dormant)))
	}
	wait(t, f.at)
	require.NoError(t, f.inject(t, env, r, nil))
	wait(t, 2*sessionTimeout)
	f.restore(t, env, r)
	granted := 0
	for _, s := range dormant {
		if s.client == nil { // its ask may not return
			continue
		}
		<-s.asked
		if s.holds {
			held++
			s.held.release(t.Context())
		}
		if g := awaitGrant(t, s.waiterGrant); s.holds && g.lease.Token() > s.held.lease.Token() {
			granted++
		}
		s.history.checkGaps()
	}
	overlaps = countNaiveOverlaps(dormant)
	t.Logf("%d of %d contenders were granted, %d of them before their waiters; %d of %d naive ones overlapped with "+
		"the next holder", held, tries, granted, overlaps, len(dormant)-tries)
	return tries, held, overlaps
}

func startDormantContenders(t *testing.T, env *testEnv, r serverRoles, waiter *framework.Client) []*dormantContender {
	t.Helper()
	dormant := make([]*dormantContender, 3*contendersOfEach)
	require.NoError(t, runConcurrently(len(dormant), func(i int) (err error) {
		s := &dormantContender{history: &lockHistory{t: t, path: fmt.Sprintf("/%s/%d", t.Name(), i)},
			waiterGrant: make(chan *grant, 1), asked: make(chan struct{})}
		dormant[i] = s
		if err := waiter.MakeDirs(t.Context(), s.history.path); err != nil {
			return err
		}
		switch i % 3 {
		case 0:
			s.client, err = connect(t, env.clientConfig(r.follower))
		case 1:
			s.client, err = connect(t, env.clientConfig(r.leader, r.follower, r.other),
				withFirstServer(env.Addr(r.follower)))
		default:
			s.history.naive = true
			s.naive = &naiveHolder{history: s.history}
			err = s.naive.connect(t, env.Addr(r.follower))
		}
		return err
	}))
	return dormant
}

// ask asks for the lock after a time, and lets the waiter ask a moment later. It ends when the test
// ends.
func (s *dormantContender) ask(ctx context.Context, waiter *framework.Client, after time.Duration) {
	wait(s.history.t, after)
	go func() {
		wait(s.history.t, 100*time.Millisecond)
		defer close(s.waiterGrant)
		if lease, err := locks.NewMutex(waiter, s.history.path).Lock(s.history.t.Context()); err == nil {
			s.waiterGrant <- s.history.addGrant("the waiter", lease)
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
		s.held, s.holds = s.history.addGrant("the dormant contender", lease), true
	}
}

// countNaiveOverlaps counts the naive contenders that hold, or have held, while their waiters hold.
func countNaiveOverlaps(dormant []*dormantContender) (overlaps int) {
	for _, s := range dormant {
		if s.client != nil {
			continue
		}
		select {
		case <-s.asked:
		default:
			continue
		}
		select {
		case next := <-s.waiterGrant:
			if s.holds && next != nil && s.naive.isBefore(next.lease.Node()) && s.naive.overlap(next) > 0 {
				overlaps++
			}
		default:
		}
	}
	return overlaps
}

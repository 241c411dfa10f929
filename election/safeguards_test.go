package election_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/clock"
	"github.com/lockstep-go/lockstep/internal/testkit/testclock"
	"github.com/lockstep-go/lockstep/zktest"
)

// whenElected calls a function after a campaign was won and before its caller is told: at the end
// of the campaign's span.
type whenElected struct {
	sdktrace.SpanProcessor
	do func()
}

func (e *whenElected) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

func (e *whenElected) OnEnd(s sdktrace.ReadOnlySpan) {
	if s.Name() == "lockstep.election.campaign" && e.do != nil {
		e.do()
	}
}

func (*whenElected) Shutdown(context.Context) error { return nil }

// TestLeadRunsNothingInATermThatIsOver ends the term, or Lead's context, between the election and
// the call.
func TestLeadRunsNothingInATermThatIsOver(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		elected := &whenElected{}
		m := w.Member(t, "a", config,
			framework.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(elected))))
		e := election.New(m.Client, path)
		for name, end := range map[string]func(stop context.CancelFunc){
			"the term":    func(context.CancelFunc) { require.NoError(t, e.Term().Resign(t.Context())) },
			"the context": func(stop context.CancelFunc) { stop() },
		} {
			for range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				elected.do = func() { elected.do = nil; end(cancel) }
				calls := 0
				err := e.Lead(ctx, func(ctx context.Context, _ *election.Term) error {
					calls++
					require.NoError(t, ctx.Err(), name)
					return election.ErrStop
				})
				cancel()
				require.NoError(t, err)
				if name == "the context" {
					require.Zero(t, calls)
				} else {
					require.Equal(t, 1, calls, "in the next term")
				}
			}
		}
	})
}

// whenTermBegins is a meter whose counter of terms calls a function when a term is counted, before
// the term is watched.
type whenTermBegins struct {
	noop.MeterProvider
	do func()
}

type beginningMeter struct {
	noop.Meter
	when *whenTermBegins
}

type beginningCounter struct {
	noop.Int64UpDownCounter
	when *whenTermBegins
}

func (p *whenTermBegins) Meter(string, ...metric.MeterOption) metric.Meter {
	return beginningMeter{when: p}
}

func (m beginningMeter) Int64UpDownCounter(name string,
	_ ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	if name != "lockstep.election.leading" {
		return noop.Int64UpDownCounter{}, nil
	}
	return beginningCounter{when: m.when}, nil
}

func (c beginningCounter) Add(_ context.Context, n int64, _ ...metric.AddOption) {
	if n > 0 {
		c.when.do()
	}
}

// TestALeaderThatIsDisconnectedWhenItsTermBeginsStepsDown loses the connection before anything
// listens to the session's states.
func TestALeaderThatIsDisconnectedWhenItsTermBeginsStepsDown(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		begins := &whenTermBegins{}
		m := w.Member(t, "a", config, framework.WithMeterProvider(begins))
		begins.do = func() {
			m.Link.Cut()
			time.Sleep(100 * time.Millisecond)
		}
		term, err := election.New(m.Client, path, election.WithStepDown(election.AtSuspended)).Campaign(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, term.Err(), election.ErrDisconnected)
	})
}

// TestTermIsVisibleOnceItsWatchesHaveBegun: whoever sees it may give it up, which waits for the
// watches.
func TestTermIsVisibleOnceItsWatchesHaveBegun(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		begins := &whenTermBegins{}
		e := election.New(w.Member(t, "a", config, framework.WithMeterProvider(begins)).Client, path)
		var early *election.Term
		begins.do = func() { early = e.Term() }
		term, err := e.Campaign(t.Context())
		require.NoError(t, err)
		require.Nil(t, early)
		require.Same(t, term, e.Term())
		require.NoError(t, term.Resign(t.Context()))
		require.Nil(t, e.Term())
	})
}

// pausedClock is the clock of a process that was stopped and goes on: time has passed, and no timer
// has fired yet.
type pausedClock struct {
	clock.Clock
	ahead atomic.Int64
}

func (c *pausedClock) Now() time.Duration { return c.Clock.Now() + time.Duration(c.ahead.Load()) }

func TestALeaderWhoseProcessWasStoppedIsToldAtOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		clock := &pausedClock{Clock: clock.Time()}
		e := election.New(w.Member(t, "a", config, testclock.WithClock(clock)).Client, path)
		for name, err := range map[string]func(ctx context.Context, term *election.Term) error{
			"Term.Err":       func(_ context.Context, term *election.Term) error { return term.Err() },
			"Term.Context":   func(_ context.Context, term *election.Term) error { return term.Context().Err() },
			"Lead's context": func(ctx context.Context, _ *election.Term) error { return ctx.Err() },
		} {
			require.NoError(t, e.Lead(t.Context(), func(ctx context.Context, term *election.Term) error {
				require.NoError(t, err(ctx, term))
				clock.ahead.Store(int64(timeout))
				require.Error(t, err(ctx, term), name)
				clock.ahead.Store(0)
				return election.ErrStop
			}))
		}
	})
}

// operations records what one client asks below the path of an election.
func (w *world) operations(c *framework.Client) (recorded func() []zktest.Op, stop func()) {
	s, err := c.Session(w.t.Context())
	require.NoError(w.t, err)
	ops := make(chan zktest.Op, 1000)
	stop = w.Observe(func(r zktest.Request) {
		if r.Session == s.ID() && (r.Path != "" || len(r.Parts) > 0 && strings.HasPrefix(r.Parts[0].Path,
			path)) {
			ops <- r.Op
		}
	})
	return func() (all []zktest.Op) {
		synctest.Wait()
		for len(ops) > 0 {
			all = append(all, <-ops)
		}
		return all
	}, stop
}

// TestObserversSyncBeforeTheyRead on each session: its server may lag behind what was shown on the
// session before.
func TestObserversSyncBeforeTheyRead(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.member("a").lead(t)
		o := w.member("o")
		for name, observe := range map[string]func(ctx context.Context){
			"an election": func(ctx context.Context) {
				for range o.Follow(ctx) {
				}
			},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			recorded, stop := w.operations(o.client)
			ended := make(chan struct{})
			go func() { defer close(ended); observe(ctx) }()
			ops := recorded()
			cancel()
			<-ended
			// the server hears that the watches are given up: the next observer's record does not
			// hold that
			synctest.Wait()
			stop()
			require.Greater(t, len(ops), 1, name)
			require.Equal(t, zktest.OpMulti, ops[0], name)
		}
	})
}

// TestAnObserverSyncsOnce for a leader that has recorded its term: thousands of observers may see a
// new leader at once.
func TestAnObserverSyncsOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.member("a").lead(t)
		o := w.member("o")
		recorded, stop := w.operations(o.client)
		defer stop()
		s := watch(t.Context(), o.Election)
		time.Sleep(time.Minute)
		require.Len(t, s.seen(), 1)
		require.Equal(t, 1, len(slices.DeleteFunc(recorded(), func(op zktest.Op) bool { return op != zktest.OpMulti })))
	})
}

// TestAnUncountedLeaderIsLookedAtAgainBeforeItIsTold, behind a sync: what it has counted may not
// have been visible yet.
func TestAnUncountedLeaderIsLookedAtAgainBeforeItIsTold(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		java, o := w.member("java"), w.member("o")
		require.NoError(t, java.client.MakeDirs(t.Context(), path))
		require.NoError(t, java.client.Create(t.Context(), path+"/_c_0-latch-0000000000", []byte("java"),
			framework.Ephemeral))
		s := watch(t.Context(), o.Election)
		synctest.Wait()
		require.Empty(t, s.seen())
		recorded, stop := w.operations(o.client)
		defer stop()
		time.Sleep(time.Second)
		ops := recorded()
		require.Equal(t, []string{"java"}, s.seen())
		synced := slices.Index(ops, zktest.OpMulti)
		require.NotEqual(t, -1, synced)
		require.Contains(t, ops[synced:], zktest.OpGetData)
	})
}

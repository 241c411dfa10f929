package election_test

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/recipe"
)

// TestTermsOnRealServers lets members with own sessions lead in turn while another observes.
func TestTermsOnRealServers(t *testing.T) {
	servers := ensemble.Shared(t)
	const members, terms = 5, 40
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cfg := framework.Config{Servers: servers, Root: "/election-test-" + strconv.FormatInt(time.Now().UnixNano(), 36)}
	connect := func() *framework.Client {
		c, err := framework.Connect(ctx, cfg, framework.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}
	observing, stop := context.WithCancel(ctx)
	seen := watch(observing, election.New(connect(), path))
	var running, led, last atomic.Int64
	leading, enough := context.WithCancel(ctx)
	defer enough()
	var all sync.WaitGroup
	for range members {
		e := election.New(connect(), path)
		all.Go(func() {
			err := e.Lead(leading, func(ctx context.Context, term *election.Term) error {
				if running.Add(1) != 1 || last.Swap(term.Token()) >= term.Token() {
					t.Error("two members lead")
				}
				defer running.Add(-1)
				if led.Add(1) == terms {
					enough()
				}
				return nil
			})
			if err != nil {
				t.Errorf("Lead ended: %v", err)
			}
		})
	}
	all.Wait()
	require.Eventually(t, func() bool {
		s := seen.tokens()
		return len(s) > 1 && s[len(s)-1] == 0
	}, time.Minute, 10*time.Millisecond, "the observer ends at the latest")
	stop()
	<-seen.done
	require.NoError(t, seen.err)
	before := int64(-1)
	for _, token := range seen.tokens() {
		if token != 0 {
			require.Greater(t, token, before)
			before = token
		}
	}
}

// TestTransfersOnRealServers lets members hand leadership to one another, past others, with a
// preferred one among them, and counts.
func TestTransfersOnRealServers(t *testing.T) {
	servers := ensemble.Shared(t)
	const members, terms = 5, 60
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cfg := framework.Config{Servers: servers, Root: "/election-test-" + strconv.FormatInt(time.Now().UnixNano(), 36)}
	var running, led, last, number, handed atomic.Int64
	leading, enough := context.WithCancel(ctx)
	defer enough()
	var all sync.WaitGroup
	for i := range members {
		cfg := cfg
		cfg.Identity = "m" + strconv.Itoa(i)
		c, err := framework.Connect(ctx, cfg, framework.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		options := []election.Option{election.WithMetadata(map[string]string{"i": cfg.Identity})}
		if i == 0 {
			options = append(options, election.WithPriority(1, 50*time.Millisecond))
		}
		e := election.New(c, path, options...)
		all.Go(func() {
			err := e.Lead(leading, func(ctx context.Context, term *election.Term) error {
				if running.Add(1) != 1 || last.Swap(term.Token()) >= term.Token() ||
					number.Swap(term.Number()) >= term.Number() {
					t.Error("two members lead")
				}
				defer running.Add(-1)
				if err := term.SetMetadata(ctx,
					map[string]string{"i": term.ID(), "since": term.Since().String()}); err != nil && ctx.Err() == nil {
					t.Errorf("set the metadata: %v", err)
				}
				n := led.Add(1)
				if n >= terms && handed.Load() > terms/4 {
					enough()
				}
				if n%4 == 0 { // this term ends without a successor
					return nil
				}
				for ctx.Err() == nil {
					line, err := e.Candidates(ctx)
					if err == nil && len(line) > 2 {
						if term.TransferTo(ctx, line[len(line)-1].ID) == nil {
							handed.Add(1)
						}
						return nil
					}
					// after brief terms, the others pause for seconds before they stand again
					_ = recipe.Pause(ctx, 10*time.Millisecond)
				}
				return nil
			})
			if err != nil {
				t.Errorf("Lead ended: %v", err)
			}
		})
	}
	all.Wait()
	require.Greater(t, handed.Load(), int64(terms/4))
	require.GreaterOrEqual(t, number.Load(), int64(terms))
}

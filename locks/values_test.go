package locks_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

type tenantKey struct{}

func tenant(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, tenantKey{}, name)
}

// TestATurnCarriesTheValuesOfItsAsker, not of the one that asked for the node.
func TestATurnCarriesTheValuesOfItsAsker(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := locks.NewMutex(w.member("a").Client, path, locks.WithLocalHandoff(time.Minute))
		a := newAsker(t)
		for _, name := range []string{"1", "2", "3"} {
			a.ask(name, func(ctx context.Context) (*locks.Lease, error) {
				if name != "3" {
					ctx = tenant(ctx, name)
				}
				return m.Lock(ctx)
			})
		}
		for _, value := range []any{"1", "2", nil} {
			granted := a.now()
			require.Len(t, granted, 1)
			require.Equal(t, value, a.lease(granted[0]).Context().Value(tenantKey{}))
			a.release(granted[0])
		}
	})
}

// TestANestedLeaseCarriesTheValuesOfItsAsker before those of the outer one's.
func TestANestedLeaseCarriesTheValuesOfItsAsker(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		c := w.member("a").Client
		m := locks.NewMutex(c, path, locks.WithReentry())
		outer := held(t, tenant(t.Context(), "outer"), m)
		nested := held(t, tenant(outer.Context(), "nested"), m)
		require.Equal(t, "nested", nested.Context().Value(tenantKey{}))
		require.Equal(t, "outer", held(t, outer.Context(), m).Context().Value(tenantKey{}))
		several := held(t, tenant(nested.Context(), "several"),
			locks.NewMultiLock(locks.NewMutex(c, "/x"), locks.NewMutex(c, "/y")))
		require.Equal(t, "several", several.Context().Value(tenantKey{}))
		require.ErrorIs(t, nested.Err(), nil)
		_, err := locks.NewMutex(c, "/y").Lock(several.Context())
		require.ErrorIs(t, err, locks.ErrHeld, "the context knows each part")
		require.NotNil(t, held(t, several.Context(), m), "and the lease around it")
	})
}

// TestWorkUnderALeaseBelongsToTheCallersSpan: that of the request has ended.
func TestWorkUnderALeaseBelongsToTheCallersSpan(t *testing.T) {
	eachExclusive(t, func(t *testing.T, w *world, kind exclusive) {
		spans := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		c := w.zk.Member(t, "a", config, framework.WithTracerProvider(provider)).Client
		ctx, caller := provider.Tracer("test").Start(t.Context(), "caller")
		require.NoError(t, locks.Do(ctx, kind.make(c), func(ctx context.Context, lease *locks.Lease) error {
			for _, ctx := range []context.Context{ctx, lease.Context()} {
				_, work := provider.Tracer("test").Start(ctx, "work")
				work.End()
			}
			return nil
		}))
		seen := map[string]int{}
		for _, s := range spans.Ended() {
			require.Equal(t, caller.SpanContext().SpanID(), s.Parent().SpanID(), s.Name())
			seen[s.Name()]++
		}
		require.Equal(t, 2, seen["work"])
		require.Positive(t, seen["lockstep.lock.acquire"])
	})
}

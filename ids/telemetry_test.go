package ids_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/internal/testkit/metricstest"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestReservationsAndChangesAreMeasured(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		reader := sdkmetric.NewManualReader()
		m := w.Member(t, "a", config,
			framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		s, k, c := ids.NewSequence(m.Client, path), ids.NewWorker(m.Client, "/ids/worker", 4),
			ids.NewCounter(m.Client, "/ids/counter")
		for range 128 {
			_, err := s.Next(t.Context())
			require.NoError(t, err)
		}
		_, err := k.Next(t.Context())
		require.NoError(t, err)
		_, err = c.Add(t.Context(), 5)
		require.NoError(t, err)
		require.ErrorIs(t, c.CompareAndSet(t.Context(), 1, 2), framework.ErrConflict)
		w.put(m, "/ids/foreign", "x")
		foreign := ids.NewSequence(m.Client, "/ids/foreign")
		_, err = foreign.Next(t.Context())
		require.ErrorIs(t, err, framework.ErrForeign)
		synctest.Wait()
		got := metricstest.Read(t, reader)
		for name, n := range map[string]int64{
			"reservations sequence reserved": 2, "reservations worker reserved": 1, "reservations sequence error": 1,
			"wait.duration sequence reserved": 1, "wait.duration sequence error": 1, "wait.duration worker reserved": 1,
			"counter.changes made": 1, "counter.changes refused": 1, "counter.transactions": 1,
		} {
			require.EqualValues(t, n, got["lockstep.ids."+name], name)
		}
		for _, close := range []func(context.Context) error{s.Close, k.Close, c.Close, foreign.Close} {
			require.NoError(t, close(t.Context()))
		}
	})
}

// TestAnInstrumentMayAskForAnID. It is not in virtual time, which stops while a goroutine waits for
// a mutex.
func TestAnInstrumentMayAskForAnID(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var s *ids.Sequence
	asked := make(chan error, 1)
	m := zktest.Start(t).Member(t, "a", config,
		framework.WithMeterProvider(metricstest.NewCalling("lockstep.ids.reservations", func() {
			_, err := s.Next(ended)
			asked <- err
		})))
	s = ids.NewSequence(m.Client, path)
	go s.Next(t.Context())
	select {
	case err := <-asked:
		require.NoError(t, err, "a reserved number needs no request")
	case <-time.After(time.Minute):
		require.Fail(t, "the instrument waits for a mutex of its caller")
	}
	require.NoError(t, s.Close(t.Context()))
}

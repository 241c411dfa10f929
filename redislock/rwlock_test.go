package redislock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
)

func TestReadersAndAWriter(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		a, _ := s.newClient(t)
		b, _ := s.newClient(t)
		la, lb := NewRWLock(a, "orders").virtual(), NewRWLock(b, "orders").virtual()
		first, err := la.RLock(t.Context())
		require.NoError(t, err)
		second, err := lb.RLocker().Lock(t.Context())
		require.NoError(t, err)
		_, err = lb.TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired)
		_, err = NewMutex(b, "orders").virtual().TryLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired, "a mutex is the writing half")
		third, err := lb.RLocker().TryLock(t.Context())
		require.NoError(t, err, "a try of a writer keeps no reader away")

		_, err = la.Lock(first.Context())
		require.ErrorIs(t, err, locks.ErrHeld)
		_, err = la.RLock(first.Context())
		require.ErrorIs(t, err, locks.ErrHeld)

		granted := make(chan *locks.Lease)
		go func() {
			lease, err := lb.Lock(t.Context())
			require.NoError(t, err)
			granted <- lease
		}()
		time.Sleep(5 * time.Minute)
		_, err = la.TryRLock(t.Context())
		require.ErrorIs(t, err, locks.ErrNotAcquired, "a writer waits")
		reading := make(chan *locks.Lease)
		for range 3 {
			go func() {
				lease, err := lb.RLock(t.Context())
				require.NoError(t, err)
				reading <- lease
			}()
		}
		synctest.Wait()
		began := time.Now()
		for _, lease := range []*locks.Lease{first, second, third} {
			require.NoError(t, lease.Err())
			require.NoError(t, lease.Release(t.Context()))
		}
		writer := <-granted
		require.Zero(t, time.Since(began))
		require.EqualValues(t, 1, writer.Token())
		_, err = lb.RLock(writer.Context())
		require.ErrorIs(t, err, locks.ErrHeld)
		require.NoError(t, writer.Release(t.Context()))
		readers := []*locks.Lease{<-reading, <-reading, <-reading}
		require.Zero(t, time.Since(began), "each reader wakes the next")
		for _, lease := range readers {
			require.EqualValues(t, 1, lease.Token())
			require.NoError(t, lease.Release(t.Context()))
		}
		require.Equal(t, []string{"{orders}:token"}, s.Keys())
	})
}

func TestAReaderThatIsCutOffEndsBeforeTheWriterHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, s *memoryServer) {
		a, toA := s.newClient(t)
		b, _ := s.newClient(t)
		reader, err := NewRWLock(a, "orders").virtual().RLock(t.Context())
		require.NoError(t, err)
		other, err := NewRWLock(b, "orders").virtual().RLock(t.Context())
		require.NoError(t, err)
		toA.set(func(l *link) { l.cut = true })
		began := time.Now()
		time.AfterFunc(time.Minute, func() { _ = other.Release(t.Context()) })
		writer, err := NewRWLock(b, "orders").virtual().Lock(t.Context())
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(began), "the dead reader counts no longer")
		require.ErrorIs(t, reader.Err(), ErrExpired)
		require.NoError(t, writer.Release(t.Context()))
	})
}

package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// TestOldDedupBucketsAreRemoved: who opens a bucket removes those that are over. When it died over
// that, they once stayed for ever.
func TestOldDedupBucketsAreRemoved(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a", WithDedup(time.Minute))
		buckets := func() []string { return w.Children(testPath + "/ids") }
		for i := range 4 {
			require.NoError(t, a.Put(t.Context(), "x", WithID(fmt.Sprint(i))))
			time.Sleep(2 * time.Minute)
		}
		require.Len(t, buckets(), 2)
		s, err := a.client.Session(t.Context())
		require.NoError(t, err)
		for _, left := range []string{"/ids/0000000000", "/ids/0000000000/0000000063", "/ids/0000000000/0000000063/x",
			"/ids/0000000001"} {
			require.NoError(t, s.Create(t.Context(), testPath+left, nil, framework.Persistent))
		}
		require.NoError(t, a.Put(t.Context(), "x", WithID("last")))
		time.Sleep(time.Second)
		require.Equal(t, []string{"0000000003", "0000000004"}, buckets())
	})
}

// TestWithIDIsRefusedWithoutDedup, by producers that have made the queue and by others; items
// without ids are put.
func TestWithIDIsRefusedWithoutDedup(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.member("a"), w.member("b")
		for _, m := range []*member{a, b} {
			err := m.Put(t.Context(), "x", WithID("1"))
			require.ErrorIs(t, err, errOption)
			require.ErrorContains(t, err, "WithDedup")
		}
		named := a.PutAsync(t.Context(), "x", WithID("2"))
		plain := a.PutAsync(t.Context(), "plain")
		require.ErrorIs(t, named.Wait(t.Context()), errOption)
		require.NoError(t, plain.Wait(t.Context()))
		require.Equal(t, "plain", b.take().Value)
	})
}

package queue

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

// TestBucketChangedByHandIsReplaced: an operator has deleted or closed the present bucket of ids.
// Puts with ids go on, and so does Close.
func TestBucketChangedByHandIsReplaced(t *testing.T) {
	const bucket = testPath + "/ids/0000000000"
	for name, change := range map[string]func(ctx context.Context, s *framework.Session) error{
		"deleted": func(ctx context.Context, s *framework.Session) error { return removeTree(ctx, s, bucket) },
		"closed": func(ctx context.Context, s *framework.Session) error {
			_, err := s.Set(ctx, bucket, []byte("closed"), framework.AnyVersion)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				a, b := w.member("a", WithDedup(time.Minute)), w.member("b")
				require.NoError(t, a.Put(t.Context(), "x", WithID("1")))
				s, err := b.client.Session(t.Context())
				require.NoError(t, err)
				require.NoError(t, change(t.Context(), s))
				a.link.Delay(time.Millisecond)
				b.link.Delay(time.Millisecond)
				require.NoError(t, a.Put(within(t, time.Minute), "x", WithID("2")))
				for _, m := range []*member{a, b} {
					require.ErrorIs(t, m.Put(within(t, time.Minute), "x", WithID("2")), ErrDuplicate)
				}
				require.NoError(t, a.Close(within(t, time.Minute)))
				require.NoError(t, b.Close(within(t, time.Minute)))
			})
		})
	}
}

// TestEmptyNodeThatWasWrittenBecomesQueue: an operator has emptied a node by hand, so its version
// is above 0.
func TestEmptyNodeThatWasWrittenBecomesQueue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		require.NoError(t, a.client.MakeDirs(t.Context(), testPath))
		_, err := a.client.Set(t.Context(), testPath, nil, framework.AnyVersion)
		require.NoError(t, err)
		a.link.Delay(time.Millisecond)
		a.put("x")
		require.Equal(t, []string{"x"}, a.drain(1))
		require.NoError(t, a.SetDedup(t.Context(), time.Hour))
		require.NoError(t, a.Put(t.Context(), "y", WithID("1")))
	})
}

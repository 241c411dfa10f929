package queue

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/internal/queuelayout"
)

// failingCodec is a codec that decodes no large item.
type failingCodec struct{ tried *atomic.Int64 }

func (failingCodec) Encode(s string) ([]byte, error) { return []byte(s), nil }

func (c failingCodec) Decode(b []byte) (string, error) {
	if len(b) > 1000 {
		c.tried.Add(1)
		return "", errors.New("bad")
	}
	return string(b), nil
}

// TestLargeItemThatCannotBeDecodedIsBuried: the reason makes it larger than what may be put.
func TestLargeItemThatCannotBeDecodedIsBuried(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		m, tried := w.Member(t, "a", config), new(atomic.Int64)
		q := New(m.Client, testPath, codec.Codec[string](failingCodec{tried}), order)
		defer q.Close(context.Background())
		require.NoError(t, q.Put(t.Context(), strings.Repeat("x", queuelayout.MaxItem-2)))
		require.NoError(t, q.Put(t.Context(), "good"))
		d, err := q.Take(within(t, time.Minute))
		require.NoError(t, err)
		require.Equal(t, "good", d.Value)
		require.EqualValues(t, 1, tried.Load())
		require.NoError(t, d.Ack(t.Context()))
		c, err := q.Counts(t.Context())
		require.NoError(t, err)
		require.Equal(t, Counts{Dead: 1}, c)
	})
}

func TestLargeItemMayFail(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, WithMaxAttempts(1))
		a.put(strings.Repeat("x", queuelayout.MaxItem-2))
		require.NoError(t, a.take().Nack(t.Context(), 0, errors.New("why")))
		a.requireNone()
		c, err := a.Counts(t.Context())
		require.NoError(t, err)
		require.Equal(t, Counts{Dead: 1}, c)
	})
}

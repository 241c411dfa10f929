package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
)

var someHeaders = map[string]string{"tenant": "a\x1b[31m", "traceparent": "mine"}

// requirePut checks what a delivery tells about its put.
func requirePut(t *testing.T, d *Delivery[string], at time.Time) {
	t.Helper()
	require.Equal(t, at.UnixMilli(), d.Enqueued.UnixMilli())
	require.Equal(t, someHeaders, d.Headers)
}

// TestHeadersAndPutTimeAreKept whatever becomes of the item.
func TestHeadersAndPutTimeAreKept(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order Option) {
		a := w.member("a", order, WithMaxAttempts(4), segmentSize(2))
		a.put("first") // makes the queue
		a.ack(a.take())
		time.Sleep(time.Minute)
		began := time.Now()
		require.NoError(t, a.Put(t.Context(), "x", WithHeaders(someHeaders), WithDelay(time.Minute)))
		d := a.take()
		requirePut(t, d, began)
		require.NoError(t, d.Nack(t.Context(), time.Minute, errors.New("later")))
		d = a.take()
		requirePut(t, d, began)
		d.Headers["tenant"] = "changed by its consumer"
		require.NoError(t, d.Nack(t.Context(), 0, errors.New("now")))
		requirePut(t, a.take(), began)
		a.kill()

		b := w.member("b", order, WithMaxAttempts(4))
		d = b.take()
		requirePut(t, d, began)
		require.Equal(t, 4, d.Attempt)
		require.NoError(t, d.Nack(t.Context(), 0, errors.New("in vain")))
		b.requireNone()
		letters := b.dead()
		require.Len(t, letters, 1)
		require.Equal(t, someHeaders, letters[0].Headers)
		require.Equal(t, began.UnixMilli(), letters[0].Enqueued.UnixMilli())
		_, err := b.Requeue(t.Context())
		require.NoError(t, err)
		item, err := b.Peek(t.Context())
		require.NoError(t, err)
		require.Equal(t, "x", item.Value)
		require.Equal(t, someHeaders, item.Headers)
		require.Equal(t, began.UnixMilli(), item.Enqueued.UnixMilli())
		d = b.take()
		requirePut(t, d, began)
		b.ack(d)
	})
}

func TestHeadersAreBounded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a := w.member("a")
		many := map[string]string{}
		for i := range maxHeaders + 1 {
			many[fmt.Sprint(i)] = ""
		}
		for want, headers := range map[string]map[string]string{
			`"": "v"`:                  {"": "v"},
			`"k": "\xff"`:              {"k": "\xff"},
			`"\xff": "v"`:              {"\xff": "v"},
			"65 headers of 120 bytes":  many,
			"1 headers of 16385 bytes": {"k": strings.Repeat("v", maxHeaderBytes)},
			"at most 64 of 16384":      {"k": strings.Repeat("v", maxHeaderBytes)},
		} {
			err := a.Put(t.Context(), "x", WithHeaders(headers))
			require.ErrorIs(t, err, errOption)
			require.ErrorContains(t, err, want)
		}
		// All that is allowed, and each byte takes six as it is stored.
		require.NoError(t, a.Put(t.Context(), "x",
			WithHeaders(map[string]string{"k": strings.Repeat("<", maxHeaderBytes-1)})))
		err := a.PutBatch(t.Context(), names(0, 100),
			WithHeaders(map[string]string{"k": strings.Repeat("<", maxHeaderBytes-1)}))
		require.ErrorIs(t, err, framework.ErrTooLarge)
		require.ErrorContains(t, err, "a batch of 100 items")
		require.NoError(t, a.PutBatch(t.Context(), names(0, 100),
			WithHeaders(map[string]string{"k": strings.Repeat("v", 4000)})))
		n, err := a.Len(t.Context())
		require.NoError(t, err)
		require.Equal(t, 101, n)
	})
}

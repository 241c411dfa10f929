package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestItemOfTwoDeadConsumersComesAgain: an item that came back from the dead is in a lane. Whoever
// claims it there may die too, while nobody is idle: then nobody looks at the lanes again unless it
// is rung.
func TestItemOfTwoDeadConsumersComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		zk := zktest.Start(t)
		consume := func(name string) (*zktest.Member, *queue.Queue[string]) {
			m := zk.Member(t, name, framework.Config{})
			return m, queue.New(m.Client, "/q", codec.JSON[string](), queue.WithMaxInFlight(1))
		}
		take := func(q *queue.Queue[string], want string) *queue.Delivery[string] {
			d, err := q.Take(ctx)
			require.NoError(t, err)
			require.Equal(t, want, d.Value)
			return d
		}
		_, lasting := consume("lasting")
		defer lasting.Close(ctx)
		for _, item := range []string{"a", "b", "c", "d"} {
			require.NoError(t, lasting.Put(ctx, item))
		}
		a := take(lasting, "a")
		first, q := consume("first")
		take(q, "b")
		first.Link.Cut()
		time.Sleep(time.Minute) // its session has expired, and the recoverer has moved b
		second, q := consume("second")
		take(q, "b")
		require.NoError(t, a.Ack(ctx))
		c := take(lasting, "c")
		second.Link.Cut()
		time.Sleep(time.Minute)
		require.NoError(t, c.Ack(ctx))
		for _, want := range []string{"b", "d"} {
			d, err := lasting.Take(ctx)
			require.NoError(t, err, "%s is there, and nobody has it", want)
			require.Contains(t, []string{"b", "d"}, d.Value)
			require.NoError(t, d.Ack(ctx))
		}
	})
}

package monitor_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/monitor"
	"github.com/lockstep-go/lockstep/queue"
)

func TestGrowingQueue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		q := queue.New(m.Client, "/app/mails", codec.Bytes())
		defer q.Close(t.Context())
		put := func() { require.NoError(t, q.PutBatch(t.Context(), [][]byte{{1}, {2}, {3}})) }
		put()
		x := w.watch("x", monitor.WithGrowth(4, 10), monitor.WithHysteresis(1, 2))
		for range 3 {
			put()
			w.scans(1)
		}
		w.scans(1)
		for range 3 {
			put()
			w.scans(1)
		}
		require.Empty(t, w.news(), "not at four scans in a row")
		put()
		w.scans(1)
		require.Equal(t, []string{"x begins growing queue /app/mails"}, w.news())
		require.Contains(t, w.last().Text, "at 4 scans in a row, from 12 to 24 items")
		y := w.watch("y", monitor.WithGrowth(4, 10), monitor.WithHysteresis(1, 2))
		x.end(t)
		time.Sleep(time.Second)
		for range 8 {
			put()
			w.scans(1)
		}
		require.Empty(t, w.news(), "it still grows, though the next leader does not know for how long")
		w.scans(2)
		require.Equal(t, []string{"y ends growing queue /app/mails"}, w.news())
		y.end(t)
	})
}

func TestOldItemsAndDeadLetters(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		q := queue.New(m.Client, "/app/mails", codec.Bytes(), queue.WithMaxAttempts(1))
		defer q.Close(t.Context())
		require.NoError(t, q.Put(t.Context(), []byte("low")))
		w.watch("x", monitor.WithOldItem(10*time.Minute))
		time.Sleep(9 * time.Minute)
		require.NoError(t, q.Put(t.Context(), []byte("high"), queue.WithPriority(1)))
		require.Empty(t, w.news())
		w.scans(4)
		require.Equal(t, []string{"x begins old item /app/mails"}, w.news(), "the one of a low priority")
		for range 2 {
			d, err := q.Take(t.Context())
			require.NoError(t, err)
			require.NoError(t, d.Nack(t.Context(), 0, fmt.Errorf("bad")))
		}
		w.scans(3)
		require.ElementsMatch(t, []string{"x ends old item /app/mails", "x begins dead letters /app/mails"}, w.news())
		require.Equal(t, "2 dead letters", findDead(w).Text)
		_, err := q.Requeue(t.Context())
		require.NoError(t, err)
		w.scans(2)
		require.Equal(t, []string{"x ends dead letters /app/mails", "x begins old item /app/mails"}, w.news(),
			"they were put long ago")
	})
}

func findDead(w *world) (found monitor.Finding) {
	for _, e := range w.all {
		if e.Problem == monitor.ProblemDeadLetters {
			found = e.Finding
		}
	}
	return found
}

// TestConsumersOfStrictQueueAreNoWaiters: a consumer of a strict queue stands in the line of its
// lock for as long as it consumes.
func TestConsumersOfStrictQueueAreNoWaiters(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.timeout = time.Hour // heartbeats are rare
		for n := range 13 {
			q := queue.New(w.member(fmt.Sprint("m", n)).Client, "/app/strict", codec.Bytes(),
				queue.WithOrder(queue.Strict))
			go func() { _, _ = q.Take(t.Context()) }()
			defer q.Close(t.Context())
		}
		w.watch("x")
		time.Sleep(10 * time.Minute)
		require.Empty(t, w.news())
		report, err := monitor.Check(t.Context(), w.member("y").Client, "/")
		require.NoError(t, err)
		require.Len(t, report.Queues, 1)
		require.Empty(t, report.Findings)
	})
}

// TestAQueueBelowAnUnreadableDirectory: its findings neither begin nor end.
func TestAQueueBelowAnUnreadableDirectory(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		q := queue.New(m.Client, "/app/a/q", codec.Bytes(), queue.WithMaxAttempts(1))
		require.NoError(t, q.Put(t.Context(), []byte("x")))
		d, err := q.Take(t.Context())
		require.NoError(t, err)
		require.NoError(t, d.Nack(t.Context(), 0, errors.New("it cannot be read")))
		require.NoError(t, q.Close(t.Context()))
		w.watch("x", monitor.WithDeadLetters(0))
		w.scans(2)
		require.Equal(t, []string{"x begins dead letters /app/a/q"}, w.news())
		for _, node := range slices.Backward(w.Tree("/app/a")) {
			w.remove(m, node.Path)
		}
		secret := w.Member(t, "secret",
			framework.Config{Auth: []framework.Credential{{Scheme: "digest", Auth: []byte("u:p")}}})
		require.NoError(t, secret.MakeDirs(t.Context(), "/app/a/b"))
		w.scans(4)
		require.Equal(t, []string{"x begins unread /app/a"}, w.news(), "the other finding neither begins nor ends")
	})
}

// TestItemsThatFailAgainAndAgain are a finding from WithFailingItem on, until they have gone.
func TestItemsThatFailAgainAndAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		q := queue.New(m.Client, "/app/mails", codec.Bytes(), queue.WithDedup(time.Hour))
		defer q.Close(t.Context())
		require.NoError(t, q.Put(t.Context(), []byte("poison"), queue.WithID("order-17")))
		fail := func(after time.Duration) {
			d, err := q.Take(t.Context())
			require.NoError(t, err)
			require.NoError(t, d.Nack(t.Context(), after, errors.New("no disk")))
		}
		x := w.watch("x", monitor.WithFailingItem(3))
		fail(0)
		fail(10 * time.Minute)
		w.scans(3)
		require.Empty(t, w.news(), "two attempts have failed")
		time.Sleep(10 * time.Minute)
		fail(10 * time.Minute)
		w.scans(3)
		require.Equal(t, []string{"x begins failing item /app/mails"}, w.news())
		found := w.last()
		require.Equal(t, `item "order-17" has come back after 3 attempts; its last error: "no disk"; `+
			"such items in the queue: 1", found.Text)
		require.Contains(t, found.Node, "/app/mails/later/")
		x.end(t)
		report, err := monitor.Check(t.Context(), m.Client, "/app")
		require.NoError(t, err)
		require.Empty(t, report.Findings, "five attempts by default")
		w.watch("y", monitor.WithFailingItem(3))
		time.Sleep(10 * time.Minute)
		d, err := q.Take(t.Context())
		require.NoError(t, err)
		require.NoError(t, d.Ack(t.Context()))
		w.scans(2)
		require.Equal(t, []string{"y ends failing item /app/mails"}, w.news())
	})
}

// TestItemThatAConsumerHasForLong counts from when the consumer has got it.
func TestItemThatAConsumerHasForLong(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("app")
		q := queue.New(m.Client, "/app/mails", codec.Bytes())
		defer q.Close(t.Context())
		w.watch("x", monitor.WithHeldItem(10*time.Minute), monitor.WithoutProblems(monitor.ProblemOldItem))
		require.NoError(t, q.Put(t.Context(), []byte("x")))
		time.Sleep(20 * time.Minute)
		d, err := q.Take(t.Context())
		require.NoError(t, err)
		time.Sleep(9 * time.Minute)
		require.Empty(t, w.news())
		w.scans(5)
		require.Equal(t, []string{"x begins held item /app/mails"}, w.news())
		require.Equal(t, d.Node(), w.last().Node)
		require.Regexp(t, fmt.Sprintf(
			"^app \\(session %v\\) has had item items/0000000000/i-0000000000 for 10m[0-9]+s, at attempt 1$",
			m.Status().SessionID), w.last().Text)
		require.NoError(t, d.Ack(t.Context()))
		w.scans(2)
		require.Equal(t, []string{"x ends held item /app/mails"}, w.news())
	})
}

package queuelayout

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func FuzzNumbers(f *testing.F) {
	f.Add("i-0000000012")
	f.Add("t-1a2b.3-0000000012")
	f.Fuzz(func(t *testing.T, name string) {
		if n, ok := ItemNumber(name); ok {
			require.Equal(t, name, itemPrefix+FormatNumber(n))
		}
		if n, ok := TicketNumber(name); ok {
			require.True(t, strings.HasSuffix(name, FormatNumber(n)))
		}
	})
}
func TestTicketsAreRecognizedByTheirPaths(t *testing.T) {
	q := New("/a/orders")
	name := TicketName("1a2b3c4d", 255) + FormatNumber(7)
	for _, chain := range []Chain{q.Base, q.Redo, q.Lane("9"), q.Lane("12")} {
		path := chain.Segment(3).TicketDir() + "/" + name
		queue, ok := QueueOfTicket(path)
		require.True(t, ok, path)
		require.Equal(t, "/a/orders", queue)
		require.True(t, q.HasTicket(path), path)
		require.False(t, New("/a/other").HasTicket(path), path)
		_, ok = QueueOfTicket(chain.Segment(3).TicketDir())
		require.False(t, ok, chain.Tickets)
	}
	for _, path := range []string{q.Dead.Segment(0).ItemNode(1), q.Base.Segment(0).ItemNode(1),
		"/a/orders/tickets/nine/0000000000/" + name, "/a/orders/tickets/items/0/" + name,
		"/a/orders/tickets/items/0000000000/" + name[1:], "/" + name, "/"} {
		_, ok := QueueOfTicket(path)
		require.False(t, ok, path)
	}
}

func TestQueuesAreRecognizedByTheirChildren(t *testing.T) {
	require.True(t, IsQueue([]string{"items", "tickets"}))
	require.False(t, IsQueue([]string{"items"}))
	require.True(t, IsDropped([]string{"dropped", "items"}))
	require.False(t, IsDropped([]string{"dropped"}))
	require.True(t, IsVacant([]string{"lock", "room"}))
	require.False(t, IsVacant([]string{"lock", "items"}))
	require.True(t, SaysDropped([]byte(`{"recipe":"queue","dropped":true,"v":9}`)))
	require.False(t, SaysDropped([]byte(`{"recipe":"queue"}`)))
}

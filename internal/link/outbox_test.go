package link

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/wire"
)

// big is a request of about a megabyte.
func (a answers) big(name string) *Call {
	call := a.call(name)
	call.Op, call.Body = wire.OpSetData, &wire.SetDataRequest{Path: name, Data: make([]byte, 1<<20)}
	return call
}

func (a answers) urgent(path string) *Call {
	call := a.call(path)
	call.Urgent = true
	return call
}

// order sorts the paths by their places in what was written.
func order(written []byte, paths ...string) []string {
	slices.SortFunc(paths, func(a, b string) int { return place(written, a) - place(written, b) })
	return paths
}

func place(written []byte, path string) int { return bytes.Index(written, frame(path)[sizeLen:]) }

// TestCallersDoNotWaitForNetwork asks for things on a connection that takes no more bytes.
func TestCallersDoNotWaitForNetwork(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, p := f.admitted(0, 77)
		_, _ = p.taken()
		p.stall(true)
		began, got := time.Now(), answers{}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for _, path := range []string{"/a", "/b", "/c"} {
				require.True(t, f.m.Offer(got.big(path)))
				synctest.Wait() // the first one is being written
			}
			_, _ = c.Write(create(3, "/library"))
			require.True(t, f.m.Send(got.urgent("/urgent")))
		}()
		time.Sleep(time.Second)
		select {
		case <-ended:
		default:
			require.Fail(t, "a caller waits for the network")
		}
		require.Equal(t, time.Second, time.Since(began))
		p.stall(false)
		written, _ := p.taken()
		require.Equal(t, []string{"/a", "/library", "/urgent", "/b", "/c"},
			order(written, "/a", "/b", "/c", "/library", "/urgent"))
	})
}

// TestOnlyWrittenFramesCountAsSent cuts a connection that has taken nothing of what waits behind a
// write.
func TestOnlyWrittenFramesCountAsSent(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		_, p := f.admitted(0, 77)
		_, _ = p.taken()
		got := answers{}
		f.m.Send(got.call("/written"))
		_, _ = p.taken()
		p.stall(true)
		f.m.Send(got.big("/in the writer's hand"))
		synctest.Wait()
		f.m.Send(got.call("/waits"), got.urgent("/waits too"))
		f.m.Status().Connection.Cut()
		// the writer may hear of the end before the call does, and knows how much has left
		inHand := got["/in the writer's hand"].Err
		require.True(t, errors.Is(inHand, ErrDown) || errors.Is(inHand, ErrNotSent), "%v", inHand)
		delete(got, "/in the writer's hand")
		require.Equal(t, answers{
			"/written": {SessionID: 77, Err: ErrDown}, "/waits": {SessionID: 77, Err: ErrNotSent},
			"/waits too": {SessionID: 77, Err: ErrNotSent},
		}, got)
		require.False(t, f.m.Send(got.call("/late")))
		require.ErrorIs(t, got["/late"].Err, ErrNotSent)
	})
}

// TestTheQueueIsBounded offers more than a stalled connection may keep.
func TestTheQueueIsBounded(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		_, p := f.admitted(0, 77)
		_, _ = p.taken()
		p.stall(true)
		got := answers{}
		require.True(t, f.m.Offer(got.big("/in the writer's hand")))
		synctest.Wait()
		for i := range MaxQueued >> 20 {
			require.True(t, f.m.Offer(got.big(string(rune('a'+i)))))
		}
		require.False(t, f.m.Offer(got.big("/refused")))
		require.ErrorIs(t, got["/refused"].Err, ErrFull)
		require.True(t, f.m.Send(got.call("/small")), "what must be told is not refused")
		require.True(t, f.m.Offer(got.urgent("/urgent")))
		room := f.m.Room()
		select {
		case <-room:
			require.Fail(t, "there is no room")
		default:
		}
		p.stall(false)
		<-room
		require.True(t, f.m.Offer(got.big("/again")))
		<-f.m.Room()
	})
}

// TestWaiterForQueueSpaceEndsWithConnection cuts a connection whose queue is full.
func TestWaiterForQueueSpaceEndsWithConnection(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		_, p := f.admitted(0, 77)
		_, _ = p.taken()
		p.stall(true)
		got := answers{}
		for i := 0; f.m.Offer(got.big(string(rune('a' + i)))); i++ {
			synctest.Wait()
		}
		room := f.m.Room()
		f.m.Status().Connection.Cut()
		<-room
		<-f.m.Room()
	})
}

// TestFirstRequestsOfConnectionAreSentFirst admits a connection with requests that were unsettled
// on the one before. An urgent request follows before any of them is written.
func TestFirstRequestsOfConnectionAreSentFirst(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, p := f.up(0, 77, 4000)
		got := answers{}
		(&Connection{transport: f.m, conn: &conn{}}).Admit(got.call("/other"))
		require.Equal(t, answers{"/other": {Err: ErrNotSent}}, got)
		p.stall(true)
		_, err := c.Write(create(3, "/being written"))
		require.NoError(t, err)
		synctest.Wait()
		f.m.Status().Connection.Admit(got.call("/first"), got.call("/second"))
		f.m.Send(got.call("/third"))
		f.m.Send(got.urgent("/urgent"))
		p.stall(false)
		p.expect(bytes.Join([][]byte{
			create(3, "/being written"), syncing(firstXid, "/first"), syncing(firstXid+1, "/second"),
			syncing(firstXid+3, "/urgent"), syncing(firstXid+2, "/third"),
		}, nil))
	})
}

// TestSentAtIsBeforeTheConnectRequest lets the answer take its time.
func TestSentAtIsBeforeTheConnectRequest(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		c, p := f.dial()
		time.Sleep(time.Second / 2)
		p.stall(true)
		_, err := c.Write(hello(0))
		require.NoError(t, err)
		time.Sleep(time.Second / 2)
		p.stall(false)
		time.Sleep(time.Second / 2)
		p.answer(welcome(77, 4000))
		read(t, c, len(welcome(77, 4000)))
		require.Equal(t, time.Second/2, f.m.Status().Handshake.SentAt)
	})
}

// TestPartialFrameWasNotSent lets a write fail in the middle of the second of three requests.
func TestPartialFrameWasNotSent(t *testing.T) {
	in(t, func(t *testing.T, f *fixture) {
		_, p := f.admitted(0, 77)
		got := answers{}
		p.breakAfter(len(syncing(0, "/a")) + 5)
		f.m.Send(got.call("/a"), got.call("/b"), got.call("/c"))
		synctest.Wait()
		require.Equal(t, answers{
			"/a": {SessionID: 77, Err: ErrDown}, "/b": {SessionID: 77, Err: ErrNotSent},
			"/c": {SessionID: 77, Err: ErrNotSent},
		}, got)
	})
}

// TestAnUrgentRequestWaitsForOneChunkAtMost queues two large requests and then an urgent one, which
// leaves between them once the first is being written.
func TestAnUrgentRequestWaitsForOneChunkAtMost(t *testing.T) {
	o, got := outbox{}, answers{}
	first, second, urgent := got.big("/first"), got.big("/second"), got.urgent("/urgent")
	o.putCall(first, 1)
	o.putCall(second, 2)
	require.Equal(t, []*Call{first}, o.takeChunk().calls)
	o.putCall(urgent, 3)
	require.Equal(t, []*Call{urgent}, o.takeChunk().calls)
	require.Equal(t, []*Call{second}, o.takeChunk().calls)
	require.Nil(t, o.takeChunk())
}

package fourletter

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve has a server answer one connection.
func serve(t *testing.T, answer func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err == nil {
			defer conn.Close()
			answer(conn)
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	return listener.Addr().String()
}

// word reads the word, and requires that nothing else comes.
func word(t *testing.T, conn net.Conn) {
	sent := make([]byte, 4)
	_, err := io.ReadFull(conn, sent)
	if err != nil || string(sent) != "srvr" {
		t.Errorf("%q, %v", sent, err)
	}
}

func TestAsk(t *testing.T) {
	for answer, want := range map[string]Server{
		"Zookeeper version: 3.8.0-5a02, built on 2022\nLatency min/avg/max: 0/0.5/12\nMode: follower\n": {
			Mode: "follower", Version: "3.8.0", Latency: "0/0.5/12"},
		"srvr is not executed because it is not in the whitelist.\n": {},
	} {
		address := serve(t, func(conn net.Conn) {
			word(t, conn)
			_, _ = io.WriteString(conn, answer)
			_ = conn.(*net.TCPConn).CloseWrite()
			rest, _ := io.ReadAll(conn)
			if len(rest) > 0 {
				t.Errorf("the server gets more than the word: %q", rest)
			}
		})
		got, err := Asker{}.Ask(t.Context(), "a.name:2181/"+address)
		require.NoError(t, err)
		require.Positive(t, got.RoundTrip)
		got.RoundTrip = 0
		require.Equal(t, want, got)
	}
}

func TestAskTellsFailuresApart(t *testing.T) {
	address := serve(t, func(conn net.Conn) {
		word(t, conn)
		_, _ = io.WriteString(conn, "This ZooKeeper instance is not currently serving requests\n")
	})
	_, err := Asker{}.Ask(t.Context(), address)
	require.ErrorIs(t, err, ErrNotServing)

	address = serve(t, func(conn net.Conn) { word(t, conn) })
	_, err = Asker{}.Ask(t.Context(), address)
	require.ErrorIs(t, err, ErrHungUp)

	address = serve(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 64<<10)) }) // the handshake's begin
	_, err = Asker{TLS: &tls.Config{InsecureSkipVerify: true}}.Ask(t.Context(), address)
	require.ErrorIs(t, err, ErrHungUp)

	ctx, end := context.WithCancelCause(t.Context())
	over := errors.New("over")
	address = serve(t, func(conn net.Conn) {
		word(t, conn)
		end(over)
		_, _ = io.ReadAll(conn) // no answer
	})
	_, err = Asker{}.Ask(ctx, address)
	require.ErrorIs(t, err, over)
}

// TestAskWaitsForSomeSeconds, in virtual time.
func TestAskWaitsForSomeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := Asker{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}.Ask(t.Context(), "silent")
		require.EqualError(t, err, "no answer within 3s")
	})
}

// FuzzAnswers reads what a server may say of itself.
func FuzzAnswers(f *testing.F) {
	f.Add("Zookeeper version: 3.8.0-5a02, built on 2022\nLatency min/avg/max: 0/0.5/12\nMode: follower\n")
	f.Add("not currently serving")
	f.Fuzz(func(t *testing.T, text string) {
		s, _ := parse(text)
		require.LessOrEqual(t, max(len(s.Mode), len(s.Version), len(s.Latency)), maxField)
	})
}

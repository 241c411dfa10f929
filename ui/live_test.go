package ui_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/ui"
	"github.com/lockstep-go/lockstep/zktest"
)

// open follows a page as a browser does, until close is called.
func (s *stage) open(t *testing.T, page string) (stream *received, closePage func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/events?page="+page, nil)
	stream = &received{head: http.Header{}}
	var done sync.WaitGroup
	done.Go(func() { s.page.ServeHTTP(stream, r) })
	return stream, func() { cancel(); done.Wait() }
}

// received is what a page's stream has sent.
type received struct {
	head http.Header
	mu   sync.Mutex
	text strings.Builder
}

func (r *received) Header() http.Header { return r.head }
func (r *received) WriteHeader(int)     {}
func (r *received) Flush()              {}

func (r *received) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *received) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// TestRequestsOfOpenPages: a hundred pages send what one sends, and no page sends nothing.
func TestRequestsOfOpenPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		sent := func(pages int) int64 {
			var all []func()
			for range pages {
				_, closePage := s.open(t, "locks")
				all = append(all, closePage)
			}
			before := s.client.Status().Requests
			time.Sleep(time.Minute)
			n := s.client.Status().Requests - before
			for _, closePage := range all {
				closePage()
			}
			time.Sleep(time.Minute) // the scan that was under way
			return n
		}
		one, hundred := sent(1), sent(100)
		require.Greater(t, one, int64(60))
		require.LessOrEqual(t, 2*hundred, 3*one)
		require.Zero(t, sent(0))
	})
}

// TestAWatchedChangeIsShownAtOnce: a page has it long before the next scan is due. The time is
// virtual.
func TestAWatchedChangeIsShownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, ui.WithInterval(time.Minute))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		client := s.zk.Member(t, "holder", framework.Config{Identity: "first"}).Client
		lease, err := locks.NewMutex(client, "/locks/one").Lock(ctx)
		require.NoError(t, err)
		next := s.zk.Member(t, "next", framework.Config{Identity: "second"}).Client
		var waiting sync.WaitGroup
		waiting.Go(func() { _ = locks.Do(ctx, locks.NewMutex(next, "/locks/one"), untilDone) })
		require.NoError(t, members.New(client, "/groups/one").Cordon(ctx, "absent", members.WithAbsentMember()))
		list, closeList := s.open(t, "locks")
		group, closeGroup := s.open(t, "group?path=/groups/one")
		defer closeList()
		defer closeGroup()
		time.Sleep(150 * time.Second) // some scans, and half a minute
		changes := []func(){
			func() { require.NoError(t, lease.Release(ctx)) }, // at the lock's path: the next in line holds it
			func() { // beside it
				lease, err := locks.NewMutex(client, "/locks/another").Lock(ctx)
				require.NoError(t, err)
				t.Cleanup(func() { _ = lease.Release(context.Background()) })
			},
			func() { // in what a page is about
				m, err := members.New(client, "/groups/one").Join(ctx, "newcomer", members.Info{})
				require.NoError(t, err)
				t.Cleanup(func() { _ = m.Leave(context.Background()) })
			},
		}
		for i, want := range []string{"second", "/locks/another", "newcomer"} {
			require.NotContains(t, list.String()+group.String(), want)
			changes[i]()
			if time.Sleep(7 * time.Second); want == "newcomer" { // locks are read after a twentieth, perhaps twice
				time.Sleep(9 * time.Second) // all after a quarter
			}
			require.Contains(t, list.String()+group.String(), want)
			time.Sleep(45 * time.Second) // more than a quarter of the interval, in which it does not scan
		}
		cancel()
		waiting.Wait()
	})
}

// TestAChangedLockIsReadAlone: the page has a change within a tenth of the interval, a scan of
// everything would come after a quarter. Locks that are new and deleted ones are found, too.
func TestAChangedLockIsReadAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, ui.WithInterval(10*time.Minute))
		holder := s.zk.Member(t, "holder", framework.Config{Identity: "first"}).Client
		for i := range 300 {
			lease, err := locks.NewMutex(holder, fmt.Sprintf("/locks/%03d", i)).Lock(t.Context())
			require.NoError(t, err)
			t.Cleanup(func() { _ = lease.Release(context.Background()) })
		}
		list, closeList := s.open(t, "locks")
		defer closeList()
		time.Sleep(time.Hour) // all are watched
		other := s.zk.Member(t, "other", framework.Config{Identity: "second"}).Client
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		time.Sleep(2 * time.Minute)
		var lease *locks.Lease
		for _, change := range []struct {
			by   func()
			want string
		}{
			{func() { go func() { _, _ = locks.NewMutex(other, "/locks/250").Lock(ctx) }() },
				"300 locks, 300 held; 1 waiter."},
			{func() {
				var err error
				lease, err = locks.NewMutex(other, "/locks/new").Lock(ctx)
				require.NoError(t, err)
			}, "301 locks, 301 held; 1 waiter."},
			{func() { require.NoError(t, lease.Release(t.Context())) }, "300 locks, 300 held; 1 waiter."},
			{leave, "300 locks, 300 held; 0 waiters."},
		} {
			before := len(list.String())
			change.by()
			time.Sleep(time.Minute)
			require.Contains(t, list.String()[before:], change.want)
		}
	})
}

// TestWatchesOutliveASession: after the page's session has expired, the next one watches.
func TestWatchesOutliveASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, ui.WithInterval(time.Minute))
		holder := s.zk.Member(t, "holder", framework.Config{}).Client
		lease, err := locks.NewMutex(holder, "/locks/one").Lock(t.Context())
		require.NoError(t, err)
		defer lease.Release(context.Background())
		list, closeList := s.open(t, "locks")
		defer closeList()
		time.Sleep(150 * time.Second)
		session, err := s.client.Session(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.zk.Expire(session.ID()))
		<-session.Done()
		time.Sleep(120 * time.Second) // some scans, and half a minute
		second, err := locks.NewMutex(holder, "/locks/another").Lock(t.Context())
		require.NoError(t, err)
		defer second.Release(context.Background())
		time.Sleep(16 * time.Second)
		require.Contains(t, list.String(), "/locks/another")
	})
}

// TestWatchesAreBounded: of more locks than it watches, a page watches some, and asks nothing of
// the servers for that while nothing changes.
func TestWatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		holder := s.zk.Member(t, "holder", framework.Config{}).Client
		for i := range 1300 {
			lease, err := locks.NewMutex(holder, fmt.Sprintf("/locks/%04d", i)).Lock(t.Context())
			require.NoError(t, err)
			t.Cleanup(func() { _ = lease.Release(context.Background()) })
		}
		session, err := s.client.Session(t.Context())
		require.NoError(t, err)
		_, closePage := s.open(t, "locks")
		defer closePage()
		time.Sleep(20 * time.Second)
		watches := func() (all []zktest.Watch) {
			for _, w := range s.zk.Watches() {
				if w.Session == session.ID() {
					all = append(all, w)
				}
			}
			return all
		}
		set := watches()
		require.Len(t, set, 1200)
		before := s.client.Status().Requests
		time.Sleep(time.Minute)
		require.Equal(t, set, watches())
		require.Less(t, s.client.Status().Requests-before, int64(60*100), "a scan of this tree takes fewer than 100")
	})
}

func untilDone(ctx context.Context, _ *locks.Lease) error { <-ctx.Done(); return nil }

// TestAnOutage: the page says so within seconds, keeps what it has seen, and goes on by itself.
func TestAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		holder := s.zk.Member(t, "holder", framework.Config{}).Client
		lease, err := locks.NewMutex(holder, "/locks/one").Lock(t.Context())
		require.NoError(t, err)
		defer lease.Release(t.Context())
		stream, closePage := s.open(t, "locks")
		time.Sleep(5 * time.Second)
		require.Contains(t, text(t, s.get(t, "locks")), "Seen")

		s.link.Cut()
		time.Sleep(10 * time.Second)
		page := text(t, s.get(t, "locks"))
		require.Contains(t, page, "No answer from ZooKeeper")
		require.Contains(t, page, `class="page stale"`)
		require.Contains(t, page, "/locks/one")
		require.NotContains(t, text(t, s.get(t, "")), "Nothing is wrong")
		s.link.Heal()
		time.Sleep(20 * time.Second)
		require.NotContains(t, text(t, s.get(t, "locks")), "No answer from ZooKeeper")
		require.Contains(t, text(t, s.get(t, "")), "Nothing is wrong")
		closePage()
		require.Contains(t, stream.String(), "No answer from ZooKeeper")
	})
}

// TestAStreamSendsWhatHasChanged and nothing when nothing has.
func TestAStreamSendsWhatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, ui.WithInterval(time.Second))
		text(t, s.get(t, "locks"))
		stream, closePage := s.open(t, "locks")
		time.Sleep(10 * time.Second)
		before := len(stream.String())
		time.Sleep(30 * time.Second)
		require.Less(t, len(stream.String())-before, 30*600, "only when it was seen")
		holder := s.zk.Member(t, "holder", framework.Config{}).Client
		lease, err := locks.NewMutex(holder, "/locks/one").Lock(t.Context())
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.NoError(t, lease.Release(t.Context()))
		closePage()
		require.Contains(t, stream.String()[before:], "/locks/one")
	})
}

// pipes is a listener for connections in memory, which virtual time permits.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, open := <-p; open {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestADeadPeerFreesItsStream: one whose peer reads nothing any more ends, and one that only has
// nothing to send for a time does not.
func TestADeadPeerFreesItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, ui.WithInterval(time.Hour))
		ended := make(chan struct{}, 1)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.page.ServeHTTP(w, r)
			ended <- struct{}{}
		})}
		listener := make(pipes)
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		defer func() { close(listener); <-served }()
		conn, peer := net.Pipe()
		listener <- peer
		_, err := fmt.Fprint(conn, "GET /events?page=locks HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		lines := bufio.NewScanner(conn)
		alive := 0
		for alive < 5 && lines.Scan() { // for over a minute
			if lines.Text() == ": alive" {
				alive++
			}
		}
		require.Equal(t, 5, alive)
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Error("the stream goes on")
		}
		require.NoError(t, conn.Close())
	})
}

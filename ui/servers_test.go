package ui_test

import (
	"context"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ui"
	"github.com/lockstep-go/lockstep/zktest"
)

// serversOn is what an overview says about servers.
func serversOn(t *testing.T, s *stage) string {
	t.Helper()
	section := regexp.MustCompile(`(?s)<section class="panel" id="f-servers".*?</section>`).FindString(
		text(t, s.get(t, "")))
	require.NotEmpty(t, section)
	return regexp.MustCompile(`(?s)<[^>]*>`).ReplaceAllString(section, " ")
}

// TestServersAndTheirRoles: a server tells its role, is away, with the time since when, and is
// back.
func TestServersAndTheirRoles(t *testing.T) { synctest.Test(t, testServersAndTheirRoles) }

func testServersAndTheirRoles(t *testing.T) {
	s := newStage(t)
	require.Regexp(t, `standalone\s+answers in\s+0\.0 ms\s+its requests take\s+0\.0 ms, at most 0`, serversOn(t, s))
	s.link.Cut()
	time.Sleep(10 * time.Second)
	away := time.Now().Format(time.TimeOnly)
	serversOn(t, s) // the page was not open: it asks now
	for range 3 {
		time.Sleep(10 * time.Second)
		require.Regexp(t, `away.*since\s+`+away+`\s+:.*refused`, strings.Join(strings.Fields(serversOn(t, s)), " "))
		require.Contains(t, text(t, s.get(t, "")), "1 of 1 server away")
	}
	s.link.Heal()
	time.Sleep(10 * time.Second)
	require.Contains(t, serversOn(t, s), "standalone")
	require.NotContains(t, text(t, s.get(t, "")), "server away")
}

// TestServersThatDoNotTellTheirRole: a server that forbids four-letter words, and one that closes
// the connection, are not away. Neither gets more than the word.
func TestServersThatDoNotTellTheirRole(t *testing.T) {
	for answer, want := range map[string]string{
		"srvr is not executed because it is not in the whitelist.\n": "answers",
		"": "not told",
		"READ-ONLY mode; serving only read-only clients\nMode: read-only\n": "read-only",
		"This ZooKeeper instance is not currently serving requests\n":       "not serving",
		"Zookeeper version: 3.9\nLatency min/avg/max: 0/<b>/3\nMode: <script>\n": "&lt;script&gt; answers in 0.0 ms " +
			"its requests take &lt;b&gt; ms, at most 3",
	} {
		synctest.Test(t, func(t *testing.T) {
			zk := zktest.Start(t)
			link, words := zk.Link("page"), &wordsSent{answer: answer}
			client, err := framework.Connect(t.Context(), framework.Config{Servers: zk.Servers()},
				framework.WithTimeClock(), framework.WithDialer(words.around(link.DialContext)))
			require.NoError(t, err)
			defer client.Close(context.Background())
			page, err := ui.New(client)
			require.NoError(t, err)
			defer page.Close()
			s := &stage{zk: zk, client: client, page: page}
			require.Contains(t, strings.Join(strings.Fields(serversOn(t, s)), " "), want)
			away := strings.Contains(text(t, s.get(t, "")), "1 of 1 server away")
			require.Equal(t, want == "not serving" || want == "read-only", away)
			require.Equal(t, []string{"srvr"}, words.sent)
		})
	}
}

// wordsSent answers the word srvr in the place of a server.
type wordsSent struct {
	answer string
	mu     sync.Mutex
	sent   []string // on connections that began with srvr
}

func (w *wordsSent) around(dial framework.DialFunc) framework.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &wordConn{Conn: conn, words: w}, err
	}
}

type wordConn struct {
	net.Conn
	words  *wordsSent
	answer io.Reader // once srvr was sent
}

func (c *wordConn) Write(p []byte) (int, error) {
	if c.answer == nil && string(p) != "srvr" {
		return c.Conn.Write(p)
	}
	c.words.mu.Lock()
	defer c.words.mu.Unlock()
	c.words.sent = append(c.words.sent, string(p))
	c.answer = strings.NewReader(c.words.answer)
	return len(p), nil
}

func (c *wordConn) Read(p []byte) (int, error) {
	if c.answer != nil {
		return c.answer.Read(p)
	}
	return c.Conn.Read(p)
}

// TestServersAreAskedWhileAPageIsOpen, a hundred pages as often as one, and not at all without one.
func TestServersAreAskedWhileAPageIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		words := &wordsSent{answer: "Mode: standalone\n"}
		client, err := framework.Connect(t.Context(), framework.Config{Servers: zk.Servers()},
			framework.WithTimeClock(), framework.WithDialer(words.around(zk.Link("page").DialContext)))
		require.NoError(t, err)
		defer client.Close(context.Background())
		page, err := ui.New(client)
		require.NoError(t, err)
		defer page.Close()
		s := &stage{zk: zk, client: client, page: page}
		asked := func(pages int) int {
			var all []func()
			for range pages {
				_, closePage := s.open(t, "")
				all = append(all, closePage)
			}
			time.Sleep(time.Minute)
			for _, closePage := range all {
				closePage()
			}
			time.Sleep(time.Minute)
			words.mu.Lock()
			defer words.mu.Unlock()
			n := len(words.sent)
			words.sent = nil
			return n
		}
		one := asked(1)
		require.Greater(t, one, 6)
		require.LessOrEqual(t, one, 13)
		require.InDelta(t, one, asked(100), 1)
		require.Zero(t, asked(0))
	})
}

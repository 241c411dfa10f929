package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/ensemble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pages is a buffer that several write to.
type pages struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *pages) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *pages) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// client makes requests that share no connection.
func client(t *testing.T) *http.Client {
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// order orders from a replica, until somebody takes orders.
func order(t *testing.T, c *http.Client, address string) (number string) {
	t.Helper()
	require.Eventually(t, func() bool {
		answer, err := c.Post("http://"+address+"/orders", "", nil)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		number = strings.TrimSpace(string(body))
		return err == nil && answer.StatusCode == http.StatusOK
	}, time.Minute, 20*time.Millisecond)
	return number
}

func status(t *testing.T, c *http.Client, address string) (v struct {
	Session   string
	Elections []struct {
		ID      string
		Leading bool
		Leader  *struct {
			ID       string
			Term     int64
			Metadata map[string]string
		}
	}
}) {
	t.Helper()
	answer, err := c.Get("http://" + address + "/status")
	require.NoError(t, err)
	defer answer.Body.Close()
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&v))
	return v
}

func TestTheNextReplicaGoesOnCounting(t *testing.T) {
	server, address, err := inMemory()
	require.NoError(t, err)
	defer server.Close()
	handOver(t, []string{address})
	number, ok := server.Node(numberPath)
	require.True(t, ok)
	require.Equal(t, "4", string(number.Data))
}

func TestTheNextReplicaGoesOnCountingOnRealServers(t *testing.T) {
	servers := ensemble.Shared(t)
	c, err := framework.Connect(t.Context(), framework.Config{Servers: servers}, framework.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer c.Close(context.Background())
	for _, path := range []string{numberPath, electionPath + "~term"} { // of an earlier run
		_ = c.Delete(t.Context(), path, framework.AnyVersion)
	}
	handOver(t, servers)
}

// handOver orders from two replicas, stops the one that leads, and orders again.
func handOver(t *testing.T, servers []string) {
	t.Helper()
	var out pages
	log := slog.New(slog.DiscardHandler)
	o := options{servers: servers, host: "127.0.0.1", report: "0 0 1 1 *", look: time.Minute}
	first, err := startReplica(t.Context(), o, 0, &out, log)
	require.NoError(t, err)
	c := client(t)
	require.Equal(t, "1", order(t, c, first.address))
	second, err := startReplica(t.Context(), o, 1, &out, log)
	require.NoError(t, err)
	defer second.stop(log)
	require.Equal(t, "2", order(t, c, second.address), "it sends us to the first")

	require.Eventually(t, func() bool {
		v := status(t, c, second.address)
		return v.Session == "connected" && len(v.Elections) == 1 && !v.Elections[0].Leading && v.Elections[0].Leader != nil &&
			v.Elections[0].Leader.Metadata["address"] == first.address
	}, time.Minute, 20*time.Millisecond)
	require.Eventually(t, func() bool { return status(t, c, first.address).Elections[0].Leading }, time.Minute, 20*time.Millisecond)

	first.stop(log)
	require.Equal(t, "3", order(t, c, second.address))
	require.Equal(t, "4", order(t, c, second.address))
	require.EqualValues(t, 2, status(t, c, second.address).Elections[0].Leader.Term)
	require.Contains(t, out.String(), `"lockstep.election.campaign"`)
}

func TestTheProgram(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs pages
	code := make(chan int)
	go func() { code <- run(ctx, []string{"--listen", "127.0.0.1:0"}, &out, &errs) }()
	var addresses []string
	require.Eventually(t, func() bool {
		addresses = nil
		for _, m := range regexp.MustCompile(`msg=listening .*address=(\S+)`).FindAllStringSubmatch(errs.String(), -1) {
			addresses = append(addresses, m[1])
		}
		return len(addresses) == 2
	}, time.Minute, 10*time.Millisecond)
	c := client(t)
	require.Equal(t, "1", order(t, c, addresses[0]))
	require.Equal(t, "2", order(t, c, addresses[1]))
	cancel()
	require.Equal(t, 0, <-code, errs.String())
	require.Contains(t, errs.String(), "msg=leading")
	require.Contains(t, out.String(), `"lockstep.election.campaign"`)
}

func TestANumberThatCannotBeReadEndsTheService(t *testing.T) {
	server, address, err := inMemory()
	require.NoError(t, err)
	defer server.Close()
	c, err := framework.Connect(t.Context(), framework.Config{Servers: []string{address}}, framework.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer c.Close(context.Background())
	require.NoError(t, c.MakeDirs(t.Context(), "/shop"))
	require.NoError(t, c.Create(t.Context(), numberPath, []byte("many"), framework.Persistent))
	var errs pages
	require.Equal(t, 1, run(t.Context(), []string{"--listen", "127.0.0.1:0", "--replicas", "1", "--zk", address}, io.Discard, &errs))
	require.Contains(t, errs.String(), `parsing \"many\"`)
}

func TestUsage(t *testing.T) {
	for says, args := range map[string]string{
		"nothing to do":    "word",
		"want host:port":   "--listen 8080",
		"room for 2 ports": "--listen :65535",
		"want 1 or more":   "--replicas 0",
		"names no server":  "--zk ,",
		"not defined":      "--bogus",
	} {
		var out, errs bytes.Buffer
		require.Equal(t, 64, run(t.Context(), strings.Fields(args), &out, &errs), args)
		require.Contains(t, errs.String(), says)
		require.Contains(t, errs.String(), "see --help")
		require.Empty(t, out.String())
	}
	var out bytes.Buffer
	require.Equal(t, 0, run(t.Context(), []string{"--help"}, &out, io.Discard))
	require.Contains(t, out.String(), "-replicas")
}

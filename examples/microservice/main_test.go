package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/testkit/exampletest"
	"github.com/lockstep-go/lockstep/internal/testkit/logtest"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// client returns an HTTP client that opens a new connection for each request.
func client(t *testing.T) *http.Client {
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// orderFrom posts orders to a replica until one is accepted, and returns its number.
func orderFrom(t *testing.T, c *http.Client, address string) (number string) {
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

func statusOf(t *testing.T, c *http.Client, address string) (v struct {
	Session string
	Leading bool
	Term    int64
	Address string
}) {
	t.Helper()
	answer, err := c.Get("http://" + address + "/status")
	require.NoError(t, err)
	defer answer.Body.Close()
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&v))
	return v
}

func TestTheNextReplicaContinuesTheNumbers(t *testing.T) {
	server := zktest.Start(t)
	address, err := server.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	testHandOver(t, []string{address})
	number, ok := server.Node(numberPath)
	require.True(t, ok)
	require.Equal(t, "4", string(number.Data))
}

func TestTheNextReplicaContinuesTheNumbersOnRealServers(t *testing.T) {
	servers := ensemble.Shared(t)
	c, err := framework.Connect(t.Context(), framework.Config{Servers: servers},
		framework.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer c.Close(context.Background())
	for _, path := range []string{numberPath, electionPath + "~term"} { // of an earlier run
		_ = c.Delete(t.Context(), path, framework.AnyVersion)
	}
	testHandOver(t, servers)
}

// testHandOver orders from two replicas, stops the leader, and orders again.
func testHandOver(t *testing.T, servers []string) {
	t.Helper()
	var out logtest.Buffer
	log := slog.New(slog.DiscardHandler)
	o := options{servers: servers, host: "127.0.0.1", report: "0 0 1 1 *", lookInterval: time.Minute}
	first, err := startReplica(o, 0, &out, log)
	require.NoError(t, err)
	c := client(t)
	require.Equal(t, "1", orderFrom(t, c, first.address))
	second, err := startReplica(o, 1, &out, log)
	require.NoError(t, err)
	defer second.stop()
	require.Equal(t, "2", orderFrom(t, c, second.address), "it sends us to the first")

	require.Eventually(t, func() bool {
		v := statusOf(t, c, second.address)
		return v.Session == "connected" && !v.Leading && v.Address == first.address
	}, time.Minute, 20*time.Millisecond)
	require.True(t, statusOf(t, c, first.address).Leading)

	first.stop()
	require.Equal(t, "3", orderFrom(t, c, second.address))
	require.Equal(t, "4", orderFrom(t, c, second.address))
	require.Equal(t, second.address, statusOf(t, c, second.address).Address)
	require.EqualValues(t, 2, statusOf(t, c, second.address).Term)
	require.Contains(t, out.String(), `"lockstep.election.campaign"`)
}

func TestTheProgram(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs logtest.Buffer
	code := make(chan int)
	spans := filepath.Join(t.TempDir(), "spans.json")
	go func() { code <- run(ctx, []string{"--listen", "127.0.0.1:0", "--spans", spans}, &out, &errs) }()
	var addresses []string
	require.Eventually(t, func() bool {
		addresses = nil
		for _, m := range regexp.MustCompile(`replica-\d  http://(\S+)/`).FindAllStringSubmatch(out.String(), -1) {
			addresses = append(addresses, m[1])
		}
		return len(addresses) == 2
	}, time.Minute, 10*time.Millisecond)
	c := client(t)
	require.Equal(t, "1", orderFrom(t, c, addresses[0]))
	require.Equal(t, "2", orderFrom(t, c, addresses[1]))
	help, err := c.Get("http://" + addresses[1] + "/")
	require.NoError(t, err)
	text, err := io.ReadAll(help.Body)
	require.NoError(t, errors.Join(err, help.Body.Close()))
	require.Contains(t, string(text), "curl -L -X POST http://"+addresses[1]+"/orders")
	require.Contains(t, out.String(), "http://"+addresses[1]+"/lockstep/")
	require.Eventually(t, func() bool { // the hub scans once a second
		page, err := c.Get("http://" + addresses[1] + "/lockstep/elections")
		require.NoError(t, err)
		text, err := io.ReadAll(page.Body)
		require.NoError(t, errors.Join(err, page.Body.Close()))
		return strings.Contains(string(text), `election?path=%2Fshop%2Fleader`)
	}, time.Minute, 20*time.Millisecond)
	open, err := c.Get("http://" + addresses[1] + "/lockstep/events?page=elections") // must not keep the end waiting
	require.NoError(t, err)
	defer open.Body.Close()
	cancel()
	require.Equal(t, 0, <-code, errs.String())
	require.Contains(t, errs.String(), "msg=leading")
	require.NotContains(t, errs.String(), "level=ERROR")
	written, err := os.ReadFile(spans)
	require.NoError(t, err)
	require.Contains(t, string(written), `"lockstep.election.campaign"`)
}

// TestTheSignalComesWhileReplicasStart: it ends the service as it ends one that has started.
func TestTheSignalComesWhileReplicasStart(t *testing.T) {
	server := zktest.Start(t)
	address, err := server.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs logtest.Buffer
	require.Zero(t, run(ctx, []string{"--listen", "127.0.0.1:0", "--zk", address}, io.Discard, &errs), errs.String())
	require.NotContains(t, errs.String(), "level=ERROR")
	for _, n := range server.Tree("/") {
		require.Zero(t, n.Stat.EphemeralOwner, "a session has left %s", n.Path)
	}
}

func TestUnreadableNumberEndsTheService(t *testing.T) {
	address, err := zktest.Start(t).ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	c, err := framework.Connect(t.Context(), framework.Config{Servers: []string{address}},
		framework.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer c.Close(context.Background())
	require.NoError(t, c.MakeDirs(t.Context(), "/shop"))
	require.NoError(t, c.Create(t.Context(), numberPath, []byte("many"), framework.Persistent))
	var errs logtest.Buffer
	require.Equal(t, 1, run(t.Context(), []string{"--listen", "127.0.0.1:0", "--replicas", "1", "--zk", address},
		io.Discard, &errs))
	require.Contains(t, errs.String(), `parsing \"many\"`)
}

func TestUsage(t *testing.T) {
	var refused []string
	for says, args := range map[string]string{
		"unexpected":       "word",
		"want host:port":   "--listen 8080",
		"room for 2 ports": "--listen :65535",
		"want 1 or more":   "--replicas 0",
		"names no server":  "--zk ,",
		"not defined":      "--bogus",
	} {
		_, err := parse(strings.Fields(args))
		require.ErrorContains(t, err, says)
		refused = append(refused, args)
	}
	testproc.RequireUsage(t, "microservice", "-replicas", refused...)
}

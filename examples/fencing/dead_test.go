package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// senderVariable is an environment variable. With it, the test binary runs as a sender: a holder
// that is killed after it has sent its write, before the database has executed it. The value is a
// senderTask as JSON.
const senderVariable = "FENCING_TEST_SENDER"

// senderTask says where a sender reads the balance, and where it sends the new one.
type senderTask struct{ Database, Address string }

// sentWrite is a write that was sent to the database.
type sentWrite struct{ Balance, Token int64 }

// runSender takes the lock, sends a write, and waits until this process is killed.
func runSender(text string) error {
	var r senderTask
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	ctx := context.Background()
	cfg, err := framework.ConfigFromEnv()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug}))
	client, err := framework.Connect(ctx, cfg, framework.WithWatchdog(), framework.WithLogger(log))
	if err != nil {
		return err
	}
	lease, err := locks.NewMutex(client, lockPath).Lock(ctx)
	if err != nil {
		return err
	}
	l, err := openAccountStore(r.Database, true)
	if err != nil {
		return err
	}
	balance, _, err := l.read(ctx, accountID)
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", r.Address)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(conn).Encode(sentWrite{balance + annsDeposit, lease.Token()}); err != nil {
		return err
	}
	log.Info("write sent")
	select {}
}

// serveWrites starts a database server. It executes the writes that arrive, and sends the result of
// each to outcomes.
func serveWrites(t *testing.T, l *accountStore) (address string, outcomes <-chan error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			var p sentWrite
			if err := json.NewDecoder(conn).Decode(&p); err == nil {
				ended <- l.write(context.Background(), accountID, p.Balance, p.Token)
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return ln.Addr().String(), ended
}

// startSender starts a sender and waits until its write is sent and its watchdog is armed.
func startSender(t *testing.T, env []string, r senderTask) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(env, senderVariable+"="+string(text), "GORACE=atexit_sleep_ms=0")
	demo.DieWithParent(cmd)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(stdout)
	for wanted := []string{"watchdog armed", "write sent"}; len(wanted) > 0; {
		require.True(t, lines.Scan(), "the sender has ended")
		for i, word := range wanted {
			if strings.Contains(lines.Text(), word) {
				wanted = append(wanted[:i], wanted[i+1:]...)
				break
			}
		}
	}
	return cmd
}

// writeAfterDeath kills ann after she has sent her write, lets bob deposit, and then delivers ann's
// write. It returns the result of ann's write as late.
func writeAfterDeath(t *testing.T, servers []string, fenced bool) (l *accountStore, bobsToken int64, late error) {
	t.Helper()
	l, file := newAccountStore(t, fenced)
	address, outcomes := serveWrites(t, l)
	network, err := ensemble.NewProxy(address)
	require.NoError(t, err)
	t.Cleanup(network.Close)
	network.Hold(ensemble.Up)

	config := framework.Config{Servers: servers, Root: demo.NewRoot(), SessionTimeout: 10 * time.Second}
	ann := startSender(t, demo.Environment(config, false), senderTask{file, network.Addr()})
	require.NoError(t, ann.Process.Kill())

	client, err := framework.Connect(t.Context(), config)
	require.NoError(t, err)
	defer client.Close(context.Background())
	bob := &holder{
		lock: locks.NewMutex(client, lockPath), accounts: l,
		pause: func(context.Context) error { return nil },
		emit: func(e event) {
			if e.Kind == written {
				bobsToken = e.Token
			}
		},
	}
	require.NoError(t, bob.run(t.Context(), bobsDeposit))
	requireRow(t, l, opening+bobsDeposit, bobsToken)

	require.Empty(t, outcomes, "the network has kept the write")
	network.Release(ensemble.Up)
	select {
	case late = <-outcomes:
	case <-time.After(time.Minute):
		require.Fail(t, "the write was lost on its way")
	}
	return l, bobsToken, late
}

func testDeadHolder(t *testing.T, servers []string) {
	t.Run("fenced", func(t *testing.T) {
		l, bobs, late := writeAfterDeath(t, servers, true)
		require.ErrorIs(t, late, errRefused)
		requireRow(t, l, opening+bobsDeposit, bobs)
	})
	t.Run("unfenced", func(t *testing.T) {
		l, bobs, late := writeAfterDeath(t, servers, false)
		require.NoError(t, late)
		balance, token, err := l.read(t.Context(), accountID)
		require.NoError(t, err)
		require.EqualValues(t, opening+annsDeposit, balance, "bob's deposit is lost")
		require.Less(t, token, bobs)
	})
}

func TestTheLateWriteOfADeadHolder(t *testing.T) {
	t.Parallel()
	zk := zktest.Start(t)
	address, err := zk.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	testDeadHolder(t, []string{address})
}

func TestTheLateWriteOfADeadHolderOnRealServers(t *testing.T) {
	t.Parallel()
	testDeadHolder(t, ensemble.Shared(t))
}

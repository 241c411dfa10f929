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
	"github.com/lockstep-go/lockstep/internal/ensemble"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

// senderVariable makes the test binary a holder that dies with a write on its way: a route as JSON.
const senderVariable = "FENCING_TEST_SENDER"

// route is where a sender reads the balance, and where it sends the new one.
type route struct{ Database, Address string }

// parcel is a write on its way to the database.
type parcel struct{ Balance, Token int64 }

// send takes the lock, sends a write, and waits for its own death.
func send(text string) error {
	var r route
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
	l, err := openLedger(r.Database, true)
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
	if err := json.NewEncoder(conn).Encode(parcel{balance + annsDeposit, lease.Token()}); err != nil {
		return err
	}
	log.Info("write sent")
	select {}
}

// serve is a database server: it executes the writes that arrive, and returns how each has ended.
func serve(t *testing.T, l *ledger) (address string, outcomes <-chan error) {
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
			var p parcel
			if err := json.NewDecoder(conn).Decode(&p); err == nil {
				ended <- l.write(context.Background(), accountID, p.Balance, p.Token)
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return ln.Addr().String(), ended
}

// dispatch starts a sender and waits until its write is on its way and its watchdog armed.
func dispatch(t *testing.T, env []string, r route) *exec.Cmd {
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

// dies has ann die with her write on its way, bob deposit, and her write arrive then. It returns how that ended.
func dies(t *testing.T, servers []string, fenced bool) (l *ledger, bobsToken int64, late error) {
	t.Helper()
	l, file := newLedger(t, fenced)
	address, outcomes := serve(t, l)
	network, err := ensemble.NewProxy(address)
	require.NoError(t, err)
	t.Cleanup(network.Close)
	network.Hold(ensemble.Up)

	env := demo.Environment(framework.Config{Servers: servers, Root: demo.NewRoot(), SessionTimeout: 10 * time.Second})
	ann := dispatch(t, env, route{file, network.Addr()})
	require.NoError(t, ann.Process.Kill())

	client, err := framework.Connect(t.Context(), framework.Config{Servers: servers, Root: rootOf(t, env)})
	require.NoError(t, err)
	defer client.Close(context.Background())
	bob := &holder{
		lock: locks.NewMutex(client, lockPath), ledger: l,
		pause: func(context.Context) error { return nil },
		tell: func(e event) {
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
		l, bobs, late := dies(t, servers, true)
		require.ErrorIs(t, late, errRefused)
		requireRow(t, l, opening+bobsDeposit, bobs)
	})
	t.Run("unfenced", func(t *testing.T) {
		l, bobs, late := dies(t, servers, false)
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

package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/locks"
)

// Environment variables of a child process.
const (
	roleVariable    = "LOCKSTEP_FAULTS_ROLE"
	serversVariable = "LOCKSTEP_FAULTS_SERVERS"
	pathVariable    = "LOCKSTEP_FAULTS_PATH"
	targetVariable  = "LOCKSTEP_FAULTS_TARGET" // a node that only the lock's holder may write
)

// childMains are the main functions of child processes by role. A child prints what happens as lines of a word and a value.
var childMains = map[string]func(context.Context, *framework.Client) error{
	"writer":   runWriter,
	"sleeper":  runStoppedSender,
	"acquirer": runAcquirer,
}

// runChild runs a child's main function.
func runChild(role string) {
	cfg := config(strings.Split(os.Getenv(serversVariable), ",")...)
	ctx := context.Background()
	c, err := framework.Connect(ctx, cfg, framework.WithLogger(slog.New(slog.DiscardHandler)))
	if err == nil {
		err = errors.Join(childMains[role](ctx, c), c.Close(ctx))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func printLine(word string, value any) { fmt.Println(word, value) }

// runWriter holds the lock, writes under its guard, and writes again on an order. By then it has been stopped for longer than T.
func runWriter(ctx context.Context, c *framework.Client) error {
	lease, err := holdAndWrite(ctx, c)
	if err != nil {
		return err
	}
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	printLine("lease", lease.Err())
	printLine("late", write(ctx, c, lease.Guard(), "late"))
	// The servers must refuse a write that no check in this process stops.
	printLine("forced", write(ctx, c, framework.CheckOp(lease.Node(), framework.AnyVersion), "forced"))
	return nil
}

// runStoppedSender is stopped between the check of its guard and the sending of the transaction. Only the servers can refuse the
// write.
func runStoppedSender(ctx context.Context, c *framework.Client) error {
	lease, err := holdAndWrite(ctx, c)
	if err != nil {
		return err
	}
	session, err := c.Session(ctx)
	if err != nil {
		return err
	}
	stopOnce := sync.OnceFunc(printStopAndAwaitGap)
	guard := primitives.When(lease.Guard(), func() error {
		defer stopOnce()
		return lease.Err()
	})
	_, err = session.Multi(ctx, guard, writeOp("late")) // the session checks its own guard last, and again if it could not send
	printLine("late", err)
	printLine("lease", lease.Err())
	return nil
}

// printStopAndAwaitGap returns once the process was stopped and continued, which shows as a gap in time.
func printStopAndAwaitGap() {
	last := time.Now() // read before the request to be stopped: the stop may be immediate
	printLine("stop", "now")
	for { // each reading is compared with the previous one
		<-time.After(time.Millisecond)
		now := time.Now()
		if now.Sub(last) >= sessionTimeout/2 {
			return
		}
		last = now
	}
}

func holdAndWrite(ctx context.Context, c *framework.Client) (*locks.Lease, error) {
	lease, err := locks.NewMutex(c, os.Getenv(pathVariable)).Lock(ctx)
	if err != nil {
		return nil, err
	}
	if err := write(ctx, c, lease.Guard(), "in time"); err != nil {
		return nil, err
	}
	printLine("held", lease.Token())
	return lease, nil
}

// write writes to the protected node in one transaction with a guard.
func write(ctx context.Context, c *framework.Client, guard framework.Op, text string) error {
	_, err := c.Multi(ctx, guard, writeOp(text))
	return err
}

func writeOp(text string) framework.Op {
	return framework.SetOp(os.Getenv(targetVariable), []byte(text), framework.AnyVersion)
}

// acquirerGoroutines is the number of goroutines of an acquirer.
const acquirerGoroutines = 4

// runAcquirer locks and releases, with waits that time out, until it is killed.
func runAcquirer(ctx context.Context, c *framework.Client) error {
	paths := strings.Split(os.Getenv(pathVariable), ",")
	printLine("ready", os.Getpid())
	return runConcurrently(acquirerGoroutines, func(int) error {
		for {
			m := locks.NewMutex(c, paths[rand.N(len(paths))])
			if err := lockWithin(ctx, m, randomBelow(20*time.Millisecond)); err != nil {
				return err
			}
		}
	})
}

// lockWithin waits for a lock for at most d, and releases it.
func lockWithin(ctx context.Context, m *locks.Mutex, d time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	lease, err := m.Lock(waiting)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	if err != nil {
		return err
	}
	return lease.Release(ctx)
}

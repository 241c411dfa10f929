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
	"github.com/lockstep-go/lockstep/internal/failure"
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

// childMains are the main functions of child processes, by role. A child prints lines of a word and
// a value.
var childMains = map[string]func(context.Context, *framework.Client) error{
	"writer":         runWriter,
	"stopped sender": runStoppedSender,
	"acquirer":       runAcquirer,
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

// runWriter holds the lock, writes under its guard, and writes again when it gets an order. Before
// the order it is stopped for longer than T.
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
	// No check in this process stops this write, so the servers must refuse it.
	printLine("forced", write(ctx, c, framework.CheckOp(lease.Node(), framework.AnyVersion), "forced"))
	return nil
}

// runStoppedSender is stopped after it has checked its guard and before it sends the transaction.
// Only the servers can refuse the write.
func runStoppedSender(ctx context.Context, c *framework.Client) error {
	lease, err := holdAndWrite(ctx, c)
	if err != nil {
		return err
	}
	session, err := c.Session(ctx)
	if err != nil {
		return err
	}
	stopOnce := sync.OnceFunc(printStopAndAwaitOrder)
	guard := primitives.When(lease.Guard(), func() error {
		defer stopOnce()
		return lease.Err()
	})
	// the session checks its own guard last, and again if it could not send
	_, err = session.Multi(ctx, guard, writeOp("late"))
	printLine("late", err)
	printLine("lease", lease.Err())
	return nil
}

// printStopAndAwaitOrder asks the parent to stop this process, and returns at the parent's order,
// which this process can read only when it was continued.
func printStopAndAwaitOrder() {
	printLine("stop", "now")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // without an order the parent has ended
}

func holdAndWrite(ctx context.Context, c *framework.Client) (*locks.Lease, error) {
	lease, err := locks.NewMutex(c, os.Getenv(pathVariable)).Lock(ctx)
	if err != nil {
		return nil, err
	}
	err = write(ctx, c, lease.Guard(), "in time")
	for failure.IsTransient(err) && lease.Err() == nil { // a busy server has lost the answer
		err = write(ctx, c, lease.Guard(), "in time")
	}
	if err != nil {
		return nil, err
	}
	printLine("held", lease.Token())
	return lease, nil
}

// write writes to the protected node and checks the guard, in one transaction.
func write(ctx context.Context, c *framework.Client, guard framework.Op, text string) error {
	_, err := c.Multi(ctx, guard, writeOp(text))
	return err
}

func writeOp(text string) framework.Op {
	return framework.SetOp(os.Getenv(targetVariable), []byte(text), framework.AnyVersion)
}

// acquirerGoroutines is the number of goroutines of an acquirer.
const acquirerGoroutines = 4

// runAcquirer acquires and releases locks until it is killed. Some of its acquires time out.
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

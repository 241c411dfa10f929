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
	"github.com/lockstep-go/lockstep/locks"
)

// What a child process is told by its environment.
const (
	roleVariable    = "LOCKSTEP_FAULTS_ROLE"
	serversVariable = "LOCKSTEP_FAULTS_SERVERS"
	pathVariable    = "LOCKSTEP_FAULTS_PATH"
	targetVariable  = "LOCKSTEP_FAULTS_TARGET" // the node that the lock protects
)

// roles of a child process. It says what happens as lines of a word and a value on its standard output.
var childRoles = map[string]func(context.Context, *framework.Client) error{
	"writer":   playWriter,
	"sleeper":  playSleeper,
	"acquirer": playAcquirer,
}

// play is the main function of a child process.
func play(role string) {
	cfg := config(framework.SplitServers(os.Getenv(serversVariable))...)
	ctx := context.Background()
	c, err := framework.Connect(ctx, cfg, framework.WithLogger(slog.New(slog.DiscardHandler)))
	if err == nil {
		err = errors.Join(childRoles[role](ctx, c), c.Close(ctx))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func say(word string, value any) { fmt.Println(word, value) }

// playWriter holds the lock, writes under its guard, and once more when it is told to: by then it
// has been stopped for longer than its session lives.
func playWriter(ctx context.Context, c *framework.Client) error {
	lease, err := holdAndWrite(ctx, c)
	if err != nil {
		return err
	}
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	say("lease", lease.Err())
	say("late", write(ctx, c, lease.Guard(), "late"))
	// What the servers say when nothing here is asked first.
	say("forced", write(ctx, c, framework.CheckOp(lease.Node(), framework.AnyVersion), "forced"))
	return nil
}

// playSleeper is stopped after its guard was asked and before the transaction is sent: the moment in
// which nothing in this process can help.
func playSleeper(ctx context.Context, c *framework.Client) error {
	lease, err := holdAndWrite(ctx, c)
	if err != nil {
		return err
	}
	session, err := c.Session(ctx)
	if err != nil {
		return err
	}
	stopOnce := sync.OnceFunc(awaitStop)
	guard := lease.Guard().When(func() error {
		defer stopOnce()
		return lease.Err()
	})
	_, err = session.Multi(ctx, guard, writeOp("late")) // the session asks last, and again if it could not send
	say("late", err)
	say("lease", lease.Err())
	return nil
}

// awaitStop returns once the process was stopped and goes on: it has missed a lot of time then.
func awaitStop() {
	last := time.Now() // before the process asks to be stopped: it may be stopped at once
	say("stop", "now")
	for { // each moment is compared with the one before: none is left out
		<-time.After(time.Millisecond)
		now := time.Now()
		if now.Sub(last) >= timeout/2 {
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
	say("held", lease.Token())
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

// acquirers is the number of goroutines that a child acquires with.
const acquirers = 4

// playAcquirer takes and releases locks, with waits that time out, until it is killed.
func playAcquirer(ctx context.Context, c *framework.Client) error {
	paths := strings.Split(os.Getenv(pathVariable), ",")
	say("ready", os.Getpid())
	return together(acquirers, func(int) error {
		for {
			m := locks.NewMutex(c, paths[rand.N(len(paths))])
			if err := tryFor(ctx, m, upTo(20*time.Millisecond)); err != nil {
				return err
			}
		}
	})
}

// tryFor waits for a lock for d at most, and releases what it was granted.
func tryFor(ctx context.Context, m *locks.Mutex, d time.Duration) error {
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

package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

type lockstepConnection struct{ client *framework.Client }

func connectLockstep(ctx context.Context, servers []string) (connection, error) {
	c, err := framework.Connect(ctx, framework.Config{Servers: servers, SessionTimeout: sessionTimeout},
		framework.WithLogger(slog.New(slog.DiscardHandler)))
	return lockstepConnection{c}, err
}

func (c lockstepConnection) locker(name string) (locker, error) {
	m := locks.NewMutex(c.client, "/"+name)
	return func(ctx context.Context) (func(context.Context) error, error) {
		lease, err := m.Lock(ctx)
		if err != nil {
			return nil, err
		}
		return lease.Release, nil
	}, nil
}

func (c lockstepConnection) close() { _ = c.client.Close(context.Background()) }

// zkConnection is a session of go-zookeeper: for its own lock, or for bare requests.
type zkConnection struct {
	*zk.Conn
	bare bool
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func connectZooKeeper(ctx context.Context, servers []string, bare bool) (connection, error) {
	conn, events, err := zk.Connect(servers, sessionTimeout, zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				go func() {
					for range events {
					}
				}()
				return zkConnection{conn, bare}, nil
			}
		case <-ctx.Done():
			conn.Close()
			return nil, ctx.Err()
		}
	}
}

var open = zk.WorldACL(zk.PermAll)

func (c zkConnection) locker(name string) (locker, error) {
	if !c.bare {
		l := zk.NewLock(c.Conn, "/"+name, open)
		return func(context.Context) (func(context.Context) error, error) {
			return func(context.Context) error { return l.Unlock() }, l.Lock()
		}, nil
	}
	dir := "/bare-" + name
	if _, err := c.Create(dir, nil, 0, open); err != nil && err != zk.ErrNodeExists {
		return nil, err
	}
	if name == "compare-uncontended" {
		return c.createAndDelete(dir), nil
	}
	return c.lookAhead(dir), nil
}

func (c zkConnection) close() { c.Conn.Close() }

// createAndDelete is what any lock needs at least: no lock at all.
func (c zkConnection) createAndDelete(dir string) locker {
	return func(context.Context) (func(context.Context) error, error) {
		node, err := c.Create(dir+"/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, open)
		return func(context.Context) error { return c.Delete(node, -1) }, err
	}
}

// lookAhead is the request pattern of Lockstep's lock, without its care: a waiter watches the two
// nodes before its own. It lists when the first of them is gone, while the other still holds, so
// that no list lies between a release and the next grant.
func (c zkConnection) lookAhead(dir string) locker {
	return func(context.Context) (func(context.Context) error, error) {
		node, err := c.Create(dir+"/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, open)
		if err != nil {
			return nil, err
		}
		if err := c.awaitTurn(dir, numberOf(node)); err != nil {
			return nil, err
		}
		return func(context.Context) error { return c.Delete(node, -1) }, nil
	}
}

func (c zkConnection) awaitTurn(dir string, own int) error {
	ahead, err := c.ahead(dir, own)
	for err == nil && len(ahead) > 0 {
		last := ahead[len(ahead)-1]
		there, _, lastGone, err := c.watch(dir, last)
		if err != nil {
			return err
		}
		if there && len(ahead) > 1 {
			thereToo, _, firstGone, err := c.watch(dir, ahead[len(ahead)-2])
			if err != nil {
				return err
			}
			if thereToo {
				select {
				case <-firstGone:
				case <-lastGone:
				}
			}
			if ahead, err = c.ahead(dir, own); err != nil {
				return err
			}
			if len(ahead) != 1 || ahead[0] != last {
				continue
			}
		}
		if there {
			<-lastGone
			return nil
		}
		if ahead, err = c.ahead(dir, own); err != nil {
			return err
		}
	}
	return err
}

func (c zkConnection) watch(dir string, number int) (bool, *zk.Stat, <-chan zk.Event, error) {
	return c.ExistsW(fmt.Sprintf("%s/lock-%010d", dir, number))
}

// ahead lists the numbers before one's own.
func (c zkConnection) ahead(dir string, own int) (numbers []int, err error) {
	names, _, err := c.Children(dir)
	for _, name := range names {
		if n := numberOf(name); n < own {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, err
}

func numberOf(node string) int {
	n, _ := strconv.Atoi(node[strings.LastIndex(node, "-")+1:])
	return n
}

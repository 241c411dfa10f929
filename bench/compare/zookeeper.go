//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/ids"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
)

type lockstepConnection struct{ client *framework.Client }

func connectLockstep(ctx context.Context, servers []string, session time.Duration, watchdog bool) (connection, error) {
	opts := []framework.Option{framework.WithLogger(slog.New(slog.DiscardHandler))}
	if watchdog {
		opts = append(opts, framework.WithWatchdog())
	}
	c, err := framework.Connect(ctx, framework.Config{Servers: servers, SessionTimeout: session}, opts...)
	return lockstepConnection{c}, err
}

func (c lockstepConnection) locker(name string) (locker, error) {
	return leases(locks.NewMutex(c.client, "/"+name)), nil
}

func leases(m locks.Locker) locker {
	return func(ctx context.Context) (grant, error) {
		lease, err := m.Lock(ctx)
		if err != nil {
			return grant{}, err
		}
		return grant{lease.Release, lease.Context().Done()}, nil
	}
}

func (c lockstepConnection) candidate(name string) (locker, error) {
	e := election.New(c.client, "/"+name)
	return func(ctx context.Context) (grant, error) {
		term, err := e.Campaign(ctx)
		if err != nil {
			return grant{}, err
		}
		return grant{term.Resign, term.Context().Done()}, nil
	}, nil
}

func (c lockstepConnection) counter(name string) (func(context.Context) error, error) {
	counter := ids.NewCounter(c.client, "/"+name)
	return func(ctx context.Context) error {
		_, err := counter.Add(ctx, 1)
		return err
	}, nil
}

func (c lockstepConnection) queue(name string) (put putter, take taker, err error) {
	q := queue.New(c.client, "/"+name, codec.Bytes())
	put = func(ctx context.Context, item []byte) error { return q.Put(ctx, item) }
	return put, func(ctx context.Context) error {
		d, err := q.Take(ctx)
		if err != nil {
			return err
		}
		return d.Ack(ctx)
	}, nil
}

func (c lockstepConnection) watch(ctx context.Context, name string, n int, seen func(value string)) error {
	for range n {
		v := config.New(c.client, "/"+name, codec.Text())
		go func() { _ = v.Run(ctx) }() // until the process ends
		go func() {
			for s, err := range v.Follow(ctx) {
				if err != nil {
					return
				}
				seen(s.Value)
			}
		}()
	}
	return nil
}

func (c lockstepConnection) set(ctx context.Context, name, value string) error {
	return config.New(c.client, "/"+name, codec.Text()).Set(ctx, value)
}

// zkConnection is a session of go-zookeeper: for its own lock, or for bare requests.
type zkConnection struct {
	*zk.Conn
	bare bool
	lost <-chan struct{} // closed when the session is known to have ended
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func connectZooKeeper(ctx context.Context, servers []string, session time.Duration, bare bool) (connection, error) {
	conn, events, err := zk.Connect(servers, session, zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				lost := make(chan struct{})
				go func() {
					for e := range events {
						if e.State == zk.StateExpired {
							close(lost)
							return
						}
					}
				}()
				return zkConnection{conn, bare, lost}, nil
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
		return func(context.Context) (grant, error) {
			return grant{func(context.Context) error { return l.Unlock() }, c.lost}, l.Lock()
		}, nil
	}
	dir := "/bare-" + name
	if _, err := c.Create(dir, nil, 0, open); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return nil, err
	}
	if name != "compare-contended" {
		return c.createAndDelete(dir), nil
	}
	return c.lookAhead(dir), nil
}

// createAndDelete is what any lock needs at least: no lock at all.
func (c zkConnection) createAndDelete(dir string) locker {
	return func(context.Context) (grant, error) {
		node, err := c.Create(dir+"/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, open)
		return grant{release: func(context.Context) error { return c.Delete(node, -1) }}, err
	}
}

// lookAhead is the request pattern of Lockstep's lock, without its care: a waiter watches the two
// nodes before its own. It lists when the first of them is gone, while the other still holds, so
// that no list lies between a release and the next grant.
func (c zkConnection) lookAhead(dir string) locker {
	return func(context.Context) (grant, error) {
		node, err := c.Create(dir+"/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, open)
		if err != nil {
			return grant{}, err
		}
		release := func(context.Context) error { return c.Delete(node, -1) }
		return grant{release: release}, c.awaitTurn(dir, numberOf(node))
	}
}

func (c zkConnection) awaitTurn(dir string, own int) error {
	ahead, err := c.ahead(dir, own)
	for err == nil && len(ahead) > 0 {
		last := ahead[len(ahead)-1]
		there, _, lastGone, err := c.watchNumber(dir, last)
		if err != nil {
			return err
		}
		if there && len(ahead) > 1 {
			thereToo, _, firstGone, err := c.watchNumber(dir, ahead[len(ahead)-2])
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

func (c zkConnection) watchNumber(dir string, number int) (bool, *zk.Stat, <-chan zk.Event, error) {
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

// watch sets a watch for each watcher, as a program without a recipe does.
func (c zkConnection) watch(ctx context.Context, name string, n int, seen func(value string)) error {
	for range n {
		value, _, changed, err := c.GetW("/" + name)
		if err != nil {
			return err
		}
		go func() {
			for err == nil {
				seen(string(value))
				<-changed
				value, _, changed, err = c.GetW("/" + name)
			}
		}()
	}
	return nil
}

func (c zkConnection) set(_ context.Context, name, value string) error {
	_, err := c.Set("/"+name, []byte(value), -1)
	if errors.Is(err, zk.ErrNoNode) {
		_, err = c.Create("/"+name, []byte(value), 0, open)
	}
	return err
}

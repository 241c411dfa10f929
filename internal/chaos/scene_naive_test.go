//go:build linux

package chaos

import (
	"context"
	"errors"
	"io"
	"log"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	naivePath = "/mutex-0"
	// naiveHold is longer than a session lives without its server.
	naiveHold = 3 * timeout
)

// trustLibrary plays a holder as the client library alone would have it: an ephemeral sequential node, and a
// hold that ends when the library reports that the connection or the session is lost.
func (p *player) trustLibrary(ctx context.Context, servers []string) error {
	conn, events, err := zk.Connect(servers, timeout, zk.WithLogInfo(false), zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		return err
	}
	defer conn.Close()
	f := &fool{player: p, conn: conn}
	go f.listen(events)
	p.write(event{At: now(), Step: ready})
	for {
		t, ok := p.tempo.begin(ctx, work)
		if !ok {
			return nil
		}
		f.turn(ctx, t.enough)
		p.tempo.finish(work)
	}
}

type fool struct {
	*player
	conn *zk.Conn

	mu   sync.Mutex
	lose context.CancelFunc // of the present hold; may be nil
}

func (f *fool) listen(events <-chan zk.Event) {
	for e := range events {
		if e.State == zk.StateDisconnected || e.State == zk.StateExpired {
			f.mu.Lock()
			if f.lose != nil {
				f.lose()
			}
			f.mu.Unlock()
		}
	}
}

// turn takes the lock once, if all goes well.
func (f *fool) turn(ctx context.Context, enough <-chan struct{}) {
	op := f.last.Add(1)
	f.write(event{At: now(), Op: op, Step: asked, Kind: exclusive, Path: naivePath})
	node, token, err := f.lock(ctx, enough)
	if err != nil {
		f.write(event{At: now(), Op: op, Step: missed})
		pass(ctx, 100*time.Millisecond, enough)
		return
	}
	held, cancel := context.WithCancel(context.Background())
	defer cancel()
	f.mu.Lock()
	f.lose = cancel
	f.mu.Unlock()
	f.write(event{At: now(), Op: op, Step: granted, Token: token})
	f.hold(ctx, op, grip{ctx: held, release: func(context.Context) error { return f.conn.Delete(node, -1) }}, naiveHold, enough)
}

var errGaveUp = errors.New("gave up")

// lock waits in line, by looking again and again.
func (f *fool) lock(ctx context.Context, enough <-chan struct{}) (node string, token int64, err error) {
	if _, err := f.conn.Create(naivePath, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return "", 0, err
	}
	if node, err = f.conn.CreateProtectedEphemeralSequential(naivePath+"/lock-", nil, zk.WorldACL(zk.PermAll)); err != nil {
		return "", 0, err
	}
	_, stat, err := f.conn.Exists(node)
	for err == nil {
		var first bool
		if first, err = f.first(node); first || err != nil {
			return node, stat.Czxid, err
		}
		select {
		case <-enough:
			return "", 0, errors.Join(errGaveUp, f.conn.Delete(node, -1))
		case <-ctx.Done():
			return "", 0, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return "", 0, err
}

// first tells whether a node has the lowest number in the line.
func (f *fool) first(node string) (bool, error) {
	names, _, err := f.conn.Children(naivePath)
	number := func(name string) string { return name[max(0, len(name)-10):] }
	for _, name := range names {
		if number(name) < number(node) {
			return false, err
		}
	}
	return true, err
}

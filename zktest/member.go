package zktest

import (
	"context"
	"log/slog"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Member is a framework client on a link of its own. It stands for one process of a cluster.
type Member struct {
	*framework.Client
	// Link is the member's network; its levers affect this member only.
	Link *Link
}

// Member connects a client through a new link with that name, and closes it at the end of the test.
// It sets the configuration's Servers, and an empty Identity to the name. The client counts leases
// with time.Now, so that it works in a testing/synctest bubble, and has no log unless an option
// sets one: framework.WithLogger(slog.New(slog.NewTextHandler(t.Output(), nil))) shows why a job or
// a handler of a queue has failed. Member fails the test if there is no session within 30 s.
func (s *Server) Member(tb TB, name string, cfg framework.Config, opts ...framework.Option) *Member {
	tb.Helper()
	link := s.Link(name)
	cfg.Servers = s.Servers()
	if cfg.Identity == "" {
		cfg.Identity = name
	}
	opts = append([]framework.Option{
		framework.WithDialer(link.DialContext), framework.WithTimeClock(),
		framework.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := framework.Connect(ctx, cfg, opts...)
	if err != nil {
		tb.Fatalf("zktest: member %s: %v", name, err)
		return nil
	}
	tb.Cleanup(func() { _ = c.Close(context.Background()) })
	return &Member{c, link}
}

// MustConnect connects a client to a new server in memory: for examples, and to try a program out.
// stop closes both. A service calls framework.Connect with the addresses of its ensemble, and a
// test Start and Server.Member. MustConnect panics if ctx ends before there is a session.
func MustConnect(ctx context.Context) (client *framework.Client, stop func()) {
	if ctx.Err() != nil { // else it may connect nevertheless: the server is that fast
		panic(context.Cause(ctx))
	}
	s, err := New()
	if err != nil {
		panic(err)
	}
	client, err = framework.Connect(ctx, framework.Config{Servers: s.Servers()},
		framework.WithDialer(s.Link("client").DialContext))
	if err != nil {
		s.Close()
		panic(err)
	}
	return client, func() {
		_ = client.Close(context.WithoutCancel(ctx)) // the server goes as well
		s.Close()
	}
}

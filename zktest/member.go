package zktest

import (
	"context"
	"log/slog"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// Member is a framework client on a link of its own: what one process of a cluster is to the server.
type Member struct {
	*framework.Client
	// Link is the member's way to the server; its levers cut off this member alone.
	Link *Link
}

// Member connects a client through a link of the name given, and closes it with the test, cut off or
// not. The configuration's Servers are filled in; so is Identity, with the name. Its leases are
// counted by time.Now, so that it works in a testing/synctest bubble; its log is discarded unless an
// option says otherwise. It fails the test when there is no session within 30 s.
func (s *Server) Member(tb TB, name string, cfg framework.Config, opts ...framework.Option) *Member {
	tb.Helper()
	link := s.Link(name)
	cfg.Servers = s.Servers()
	if cfg.Identity == "" {
		cfg.Identity = name
	}
	opts = append([]framework.Option{
		framework.WithDialer(link.DialContext), framework.WithClock(framework.TimeClock()),
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

package framework

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestServersThatAreReplacedDuringALookUpAreNotTried: SetServers comes while the names of the
// former servers are looked up.
func TestServersThatAreReplacedDuringALookUpAreNotTried(t *testing.T) {
	var s *serverList
	var lookUps atomic.Int64 // the resolver asks for both kinds of address at the same time
	former := resolver.Swap(&net.Resolver{PreferGo: true,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			if lookUps.Add(1) == 1 {
				s.replaceServers([]string{"192.0.2.2:2181"})
			}
			return nil, net.ErrClosed
		}})
	defer resolver.Store(former)
	s = newServerList(Config{Servers: []string{"zk.invalid:2181"}}, true, slog.New(slog.DiscardHandler))
	require.Equal(t, "192.0.2.2:2181", s.nextAddress(t.Context()))
}

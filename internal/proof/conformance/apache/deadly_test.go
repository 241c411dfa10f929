package apache

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/internal/proof/conformance"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// TestTooLargeCloseEndsEnsemble shows, to the byte, when the close of a session ends a real
// ensemble. The in-memory server fails in the same case.
func TestTooLargeCloseEndsEnsemble(t *testing.T) {
	e := ensemble.Private(t, ensemble.Config{Tick: tick, NoFsync: true})
	target := conformance.Target{Servers: e.Addrs()}
	conformance.CloseBySize(t, target, conformance.LargestClose(wire.MaxFrame))
	conformance.RequireService(t, target)
	conformance.CloseBySize(t, target, conformance.LargestClose(wire.MaxFrame)+1)
	conformance.RequireNoService(t, target)
}

// TestUnparsableUsageEndsEnsemble shows a failure that the in-memory server does not copy: servers
// that have counted for such a quota do not start again, because they count again when they read
// their logs.
func TestUnparsableUsageEndsEnsemble(t *testing.T) {
	e := ensemble.Private(t, ensemble.Config{Tick: tick, NoFsync: true})
	target := conformance.Target{Servers: e.Addrs()}
	conformance.SpoilUsage(t, target)
	for i := range e.Size() {
		require.NoError(t, e.Kill(i))
	}
	for i := range e.Size() {
		require.NoError(t, e.Restart(i))
	}
	conformance.RequireNoService(t, target)
}

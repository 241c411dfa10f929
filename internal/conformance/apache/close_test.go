package apache

import (
	"testing"

	"github.com/lockstep-go/lockstep/internal/conformance"
	"github.com/lockstep-go/lockstep/internal/ensemble"
	"github.com/lockstep-go/lockstep/internal/wire"
)

// TestACloseThatIsTooLargeEndsAnEnsemble shows what the in-memory server stands for when it fails, and where, to the byte.
func TestACloseThatIsTooLargeEndsAnEnsemble(t *testing.T) {
	e := ensemble.Private(t, ensemble.Config{Tick: tick, NoFsync: true})
	target := conformance.Target{Servers: e.Addrs()}
	conformance.CloseBySize(t, target, conformance.LargestClose(wire.MaxFrame))
	conformance.RequireService(t, target)
	conformance.CloseBySize(t, target, conformance.LargestClose(wire.MaxFrame)+1)
	conformance.RequireNoService(t, target)
}

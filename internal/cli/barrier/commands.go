// Package barrier has the subcommands of barriers, gates and latches.
package barrier

import (
	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/cli"
)

// Commands are the subcommands of this package.
func Commands(streams *cli.Streams) []*cobra.Command {
	return []*cobra.Command{newBarrier(streams), newBarriers(streams), newGate(streams), newGates(streams),
		newLatch(streams)}
}

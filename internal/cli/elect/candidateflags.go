package elect

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
)

// candidateFlags are a candidate's identity, metadata and priority.
type candidateFlags struct {
	meta     []string
	priority int
	stable   cli.DurationFlag
}

// defaultStable keeps a service that crashes repeatedly from taking over each time.
const defaultStable = cli.DurationFlag(30 * time.Second)

func (s *candidateFlags) addCandidateFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.meta, "meta", nil,
		"metadata `KEY=VALUE` that others can see while this candidate waits and leads (repeatable)")
	cmd.Flags().IntVar(&s.priority, "priority", 0, "take over from leaders of a lower priority (0 to 1000)")
	s.stable = defaultStable
	cmd.Flags().Var(&s.stable, "stable", "how long this candidate waits before it takes over")
	cmd.MarkFlagsMutuallyExclusive("observe", "priority")
}

// candidateOptions returns the flags as options of the library, or a usage error.
func (s *candidateFlags) candidateOptions(cmd *cobra.Command) ([]election.Option, error) {
	meta := map[string]string{}
	for _, pair := range s.meta {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, cli.UsageError("--meta %q is not KEY=VALUE", pair)
		}
		if _, twice := meta[key]; twice {
			return nil, cli.UsageError("--meta %q is given twice", key)
		}
		meta[key] = value
	}
	switch {
	case len(meta) > 0 && cmd.Flags().Changed("observe"):
		return nil, cli.UsageError("--meta has no effect with --observe")
	case s.priority == 0 && cmd.Flags().Changed("stable"):
		return nil, cli.UsageError("--stable has no effect without --priority")
	}
	options := []election.Option{election.WithMetadata(meta),
		election.WithPriority(s.priority, time.Duration(s.stable))}
	if err := moduleonly.CheckElectionOptions(options); err != nil {
		return nil, cli.UsageError("%w", err)
	}
	return options, nil
}

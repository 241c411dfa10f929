package workflow

import (
	"context"
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/internal/failure"

	"github.com/spf13/cobra"

	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/workflow"
)

// completeRunIDs offers the ids of runs.
func completeRunIDs(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), cli.CompletionTime)
	defer cancel()
	client, err := cli.ConnectSilently(ctx, cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer client.Close(ctx) //nolint:errcheck // the session ends by itself
	path := DefaultWorkflows
	if strings.HasPrefix(begun, "/") {
		path, _ = znode.Split(begun)
	}
	runs, err := failure.Collect(workflow.New(client, path).List(ctx))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offered []string
	for _, run := range runs {
		if name := nameOfRun(path, run.ID); cli.IsOfferable(name, begun) {
			offered = append(offered, name)
		}
	}
	return slices.Clip(offered[:min(len(offered), cli.MaxCompletions)]), cobra.ShellCompDirectiveNoFileComp
}

// completeKinds offers the kinds on which members have worked.
func completeKinds(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), cli.CompletionTime)
	defer cancel()
	return cli.FindCompletions(ctx, cmd, DefaultWorkflows+"/queues/", begun), cobra.ShellCompDirectiveNoFileComp
}

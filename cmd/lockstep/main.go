// Command lockstep gives shell scripts and programs in any language the recipes of Lockstep: locks,
// elections, cron jobs, queues, barriers, configuration and more. It also runs an in-memory
// ZooKeeper to try them with:
//
//	lockstep dev &
//	lockstep lock deploy -- ./deploy.sh
package main

import (
	"context"
	"os"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
)

func main() {
	framework.WatchdogMain()
	os.Exit(runProgram())
}

// runProgram runs the command line of this process, until a signal ends it.
func runProgram() int {
	ctx, stop := cli.UntilSignal(context.Background())
	defer stop()
	return runCommandLine(ctx, cli.StandardStreams(), os.Args[1:])
}

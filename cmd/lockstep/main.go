// Command lockstep gives shell scripts and programs in any language the recipes of Lockstep: locks,
// elections, cron jobs, queues, barriers, configuration and more. It also runs an in-memory
// ZooKeeper to try them with:
//
//	lockstep dev &
//	lockstep lock deploy -- ./deploy.sh
package main

import (
	"os"

	"github.com/lockstep-go/lockstep/framework"
)

func main() {
	framework.WatchdogMain()
	os.Exit(runCommandLine(os.Args[1:]))
}

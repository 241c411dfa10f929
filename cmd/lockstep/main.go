// Command lockstep gives shell scripts and programs in any language the locks, elections and cron jobs
// of package lockstep, and a ZooKeeper to try them with:
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

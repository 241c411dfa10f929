package framework_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
)

// main is the program's own: should it be killed, what it holds is free some milliseconds later.
func ExampleWithWatchdog() {
	framework.WatchdogMain() // first: the watchdog is this program too

	ctx := context.Background()
	client, err := framework.Connect(ctx, framework.Config{
		Servers:        []string{"zk1:2181", "zk2:2181", "zk3:2181"},
		SessionTimeout: 30 * time.Second,
	}, framework.WithWatchdog())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
}

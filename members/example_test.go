package members_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/zktest"
)

func Example() {
	ctx := context.Background()
	zk, err := zktest.New() // a service gives the addresses of its ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer zk.Close()
	client, err := framework.Connect(ctx, framework.Config{Servers: zk.Servers()},
		framework.WithDialer(zk.Link("example").DialContext))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close(ctx) }()

	web := members.New(client, "/groups/web")
	self, err := web.Join(ctx, "web-1", members.Info{Version: "1.4"},
		members.WithDrain(func(context.Context, members.Cordon) error {
			fmt.Println("finishing the calls under way")
			return nil
		}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = self.Leave(ctx) }()
	if err := self.Update(ctx, func(i *members.Info) { i.Load = 0.7 }); err != nil {
		log.Fatal(err)
	}
	if err := web.Drain(ctx, "web-1", members.WithReason("new kernel")); err != nil { // an operator, or another member
		log.Fatal(err)
	}
	view, err := web.Inspect(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range view.Members {
		fmt.Println(m.ID, m.Info.Version, m.Info.Load, m.State)
	}
	// Output:
	// finishing the calls under way
	// web-1 1.4 0.7 drained
}

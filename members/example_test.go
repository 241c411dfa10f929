package members_test

import (
	"context"
	"fmt"

	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/zktest"
)

func Example() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	web := members.New(client, "/groups/web")
	self, err := web.Join(ctx, "web-1", members.Info{Version: "1.4"},
		members.WithDrain(func(context.Context, members.Cordon) error {
			fmt.Println("finishing the calls under way")
			return nil
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = self.Leave(ctx) }()
	if err := self.Update(ctx, func(i *members.Info) { i.Load = 0.7 }); err != nil {
		fmt.Println(err)
		return
	}
	if err := web.Drain(ctx, "web-1", members.WithReason("new kernel")); err != nil { // an operator, or another member
		fmt.Println(err)
		return
	}
	view, err := web.Inspect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range view.Members {
		fmt.Println(m.ID, m.Info.Version, m.Info.Load, m.State)
	}
	// Output:
	// finishing the calls under way
	// web-1 1.4 0.7 drained
}

package queue_test

import (
	"context"
	"fmt"
	"log"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/queue"
)

// Mail and Thumbnail are shared by those who put tasks and those who work on them.
type (
	Mail      struct{ To string }
	Thumbnail struct{ Image, Size string }
)

var (
	SendMail      = queue.NewKind("mail", codec.JSON[Mail]())
	MakeThumbnail = queue.NewKind("thumbnail", codec.JSON[Thumbnail]())
)

// One queue holds two kinds of items, each with its type and its handler.
func ExampleByKind() {
	ctx, cancel := context.WithCancel(context.Background())
	client, done := connect(ctx)
	defer done()

	tasks := queue.New(client, "/tasks", codec.Bytes(), queue.WithMaxAttempts(5),
		queue.WithOnDead(func(l queue.DeadLetter) { log.Printf("given up: %s %s: %s", l.Kind, l.Data, l.Reason) }))
	defer tasks.Close(ctx)
	if err := SendMail.Put(ctx, tasks, Mail{To: "ann"}); err != nil {
		fmt.Println(err)
	}
	if err := MakeThumbnail.Put(ctx, tasks, Thumbnail{"cat.png", "64x64"}); err != nil {
		fmt.Println(err)
	}
	handler, err := queue.ByKind(
		SendMail.Handler(func(_ context.Context, d *queue.Delivery[Mail]) error {
			fmt.Println("mail to", d.Value.To)
			return nil
		}),
		MakeThumbnail.Handler(func(_ context.Context, d *queue.Delivery[Thumbnail]) error {
			fmt.Println("thumbnail of", d.Value.Image)
			cancel() // the example ends here
			return nil
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := tasks.Work(ctx, 1, handler); err != nil {
		fmt.Println(err)
	}
	// Output:
	// mail to ann
	// thumbnail of cat.png
}

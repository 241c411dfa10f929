package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/zktest"
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

// newTasks makes the queue for all of them. A task is tried five times, after pauses that rise from
// a second to a minute. Then it is a dead letter.
func newTasks(client *framework.Client) *queue.Queue[[]byte] {
	return queue.New(client, "/shop/tasks", codec.Bytes(), queue.WithMaxAttempts(5),
		queue.WithRetry(queue.RetryPolicy{Min: time.Second, Max: time.Minute}),
		queue.WithOnDead(func(l queue.DeadLetter) { log.Printf("%s %s is dead: %s", l.Kind, l.Data, l.LastError) }))
}

// workOnTasks works on eight tasks at once until ctx ends.
func workOnTasks(ctx context.Context, tasks *queue.Queue[[]byte]) error {
	handler, err := queue.ByKind(
		SendMail.Handler(func(ctx context.Context, d *queue.Delivery[Mail]) error {
			if d.Value.To == "" {
				return queue.Permanent(errors.New("nobody to send to")) // no further attempt
			}
			fmt.Println("mail to", d.Value.To)
			return nil
		}),
		MakeThumbnail.Handler(func(ctx context.Context, d *queue.Delivery[Thumbnail]) error {
			fmt.Println("thumbnail of", d.Value.Image)
			return nil
		}))
	if err != nil {
		return err
	}
	return tasks.Work(ctx, 8, handler)
}

// A queue of two kinds of items, each with its type and its handler, with retries and dead letters.
func ExampleByKind() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()
	tasks := newTasks(client)
	defer tasks.Close(ctx)
	for _, err := range []error{
		SendMail.Put(ctx, tasks, Mail{To: "ann"}),
		SendMail.Put(ctx, tasks, Mail{}),
		MakeThumbnail.Put(ctx, tasks, Thumbnail{"cat.png", "64x64"}),
	} {
		if err != nil {
			fmt.Println(err)
		}
	}
	working, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- workOnTasks(working, tasks) }()
	for n, err := tasks.Len(ctx); n > 0 && err == nil; n, err = tasks.Len(ctx) {
		time.Sleep(time.Millisecond)
	}
	stop()
	fmt.Println(<-ended)
	for letter, err := range tasks.DeadLetters(ctx) {
		fmt.Println(letter.LastError, err)
	}
	// Unordered output:
	// mail to ann
	// thumbnail of cat.png
	// <nil>
	// nobody to send to <nil>
}

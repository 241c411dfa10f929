package election_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/zktest"
)

func ExampleElection_Lead() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	err := election.New(client, "/billing").Lead(ctx, func(ctx context.Context, term *election.Term) error {
		// Work until ctx is done: it ends before anybody else can lead.
		fmt.Println("leading:", term.Err() == nil && term.Token() > 0)
		return election.ErrStop
	})
	fmt.Println(err)
	// Output:
	// leading: true
	// <nil>
}

func ExampleElection_Follow() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	billing := election.New(client, "/billing", election.WithID("host-1"))
	for leader, err := range billing.Follow(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if leader != nil {
			fmt.Println(leader.ID, "leads")
			break
		}
		fmt.Println("nobody leads")
		if _, err := billing.Campaign(ctx); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// nobody leads
	// host-1 leads
}

func ExampleTerm_TransferTo() {
	ctx := context.Background()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()

	first, err := election.New(client, "/billing", election.WithID("host-1")).Campaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	elected := make(chan *election.Term)
	go func() {
		second := election.New(client, "/billing", election.WithID("host-2"))
		term, err := second.Campaign(ctx)
		if err != nil {
			log.Fatal(err)
		}
		elected <- term
	}()
	for first.TransferTo(ctx, "host-2") != nil { // it is not in line yet
		time.Sleep(time.Millisecond)
	}
	second := <-elected
	fmt.Println(second.ID(), "leads term", second.Number())
	// Output:
	// host-2 leads term 2
}

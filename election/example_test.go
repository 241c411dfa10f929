package election_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/internal/testkit/exampleclient"
)

func ExampleElection_Lead() {
	ctx := context.Background()
	client, done := exampleclient.Connect(ctx)
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
	client, done := exampleclient.Connect(ctx)
	defer done()

	billing := election.New(client, "/billing", election.WithID("host-1"))
	for leader, err := range billing.Follow(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if leader != nil {
			fmt.Println(leader.ID, "leads")
			break
		}
		fmt.Println("nobody leads")
		if _, err := billing.Campaign(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// nobody leads
	// host-1 leads
}

func ExampleTerm_TransferTo() {
	ctx := context.Background()
	client, done := exampleclient.Connect(ctx)
	defer done()

	first, err := election.New(client, "/billing", election.WithID("host-1")).Campaign(ctx)
	if err != nil {
		log.Fatal(err)
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

package config_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
)

// Limits is what an application lets its operators change.
type Limits struct {
	Rate int `json:"rate"`
}

func Example() {
	ctx := context.Background()
	client, err := framework.New(framework.Config{Servers: []string{"zk1", "zk2", "zk3"}})
	if err != nil {
		return
	}
	client.Start()
	defer client.Close(ctx)

	value := config.New(client, "/app/limits", codec.JSON[Limits](),
		config.WithDefault(Limits{Rate: 10}),
		config.WithFile[Limits]("/var/lib/app/limits"),
		config.WithValidate(func(l Limits) error {
			if l.Rate < 1 {
				return errors.New("the rate must be positive")
			}
			return nil
		}))
	go value.Run(ctx)

	fmt.Println(value.Get().Rate) // as often as you like
}

func ExampleValue_Set() {
	var ctx context.Context
	var value *config.Value[Limits] // from New

	now, err := value.Load(ctx)
	if err != nil {
		return
	}
	next := now.Value
	next.Rate *= 2
	err = value.Set(ctx, next, config.WithExpectedVersion(now.Version), config.WithNote("double the rate"))
	if errors.Is(err, framework.ErrConflict) {
		fmt.Println("another one was faster: read again")
	}
}

func ExampleValue_Follow() {
	var ctx context.Context
	var value *config.Value[Limits] // from New

	for now, err := range value.Follow(ctx) {
		if err != nil {
			return
		}
		fmt.Println(now.Value.Rate, now.Source)
	}
}

package config_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// Flags are what operators switch while the shop is open.
type Flags struct {
	NewCheckout bool `json:"newCheckout"`
	Percent     int  `json:"percent"` // of the customers who see it
}

// newFlags returns the flags. Run keeps them up to date: lockstep.Background("flags", flags.Run).
func newFlags(client *framework.Client) *config.Value[Flags] {
	return config.New(client, "/shop/flags", codec.JSON[Flags](),
		config.WithDefault(Flags{}),
		config.WithValidate(func(f Flags) error {
			if f.Percent < 0 || f.Percent > 100 {
				return errors.New("percent must be from 0 to 100")
			}
			return nil
		}))
}

// checkout is called for each request: it reads from memory.
func checkout(flags *config.Value[Flags], customer int) string {
	if f := flags.Get(); f.NewCheckout && customer%100 < f.Percent {
		return "the new checkout"
	}
	return "the checkout"
}

// Flags that all processes see, which somebody changes while they run.
func ExampleValue_Get() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	client, done := zktest.MustConnect(ctx) // a service calls framework.Connect
	defer done()
	flags := newFlags(client)
	fmt.Println(checkout(flags, 7))
	ended := make(chan error)
	go func() { ended <- flags.Run(ctx) }()
	if err := flags.Set(ctx, Flags{NewCheckout: true, Percent: 10}, config.WithNote("try it")); err != nil {
		fmt.Println(err)
	}
	for now, err := range flags.Follow(ctx) {
		if err != nil || now.Value.NewCheckout {
			break
		}
	}
	fmt.Println(checkout(flags, 7))
	stop()
	fmt.Println(<-ended)
	// Output:
	// the checkout
	// the new checkout
	// <nil>
}

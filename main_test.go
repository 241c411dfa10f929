package lockstep_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/testproc"
)

func TestMain(m *testing.M) {
	if testproc.IsProgram() {
		os.Exit(program())
	}
	signals := make(chan os.Signal, 1) // the runtime's part of signals must be begun outside bubbles
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	goleak.VerifyTestMain(m)
}

// program runs a service that leads, on the server of its first argument, and serves its health. As
// its second argument says, it ends its work at once, with its input, or never.
func program() int {
	client, err := framework.New(framework.Config{Servers: os.Args[1:2]})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	err = lockstep.Run(context.Background(), client, []lockstep.Part{
		lockstep.Lead(election.New(client, "/leader"), func(ctx context.Context, _ *election.Term) error {
			fmt.Println("leading")
			<-ctx.Done()
			fmt.Println("stopping")
			switch os.Args[2] {
			case "never":
				select {}
			case "with its input":
				_, _ = io.Copy(io.Discard, os.Stdin)
			}
			return nil
		}),
	}, lockstep.WithProbes("127.0.0.1:0"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("ended")
	return 0
}

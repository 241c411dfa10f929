// Command fencing shows why fencing tokens are needed. Two processes add to an account in a SQLite
// database, each under the same lock. The first is frozen (SIGSTOP) between its read and its write,
// until its session has expired and the second has written. When it continues, its write is late,
// and the database refuses it: the statement requires a token at least as high as the row's.
//
//	go run ./examples/fencing
//	go run ./examples/fencing --no-fence
//	go run ./examples/fencing --zk host:port,host:port,host:port
//
// See holder.go and account.go for the part that a service would have.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
)

func main() {
	demo.Main("fencing", runHolder, perform)
}

// perform returns an error if a deposit is lost or the tokens did not rise.
func perform(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	s := newRecorder(o)
	if err := runScenario(ctx, o, s); err != nil {
		return err
	}
	if o.json {
		err = s.writeJSON(os.Stdout)
	} else {
		s.writeSummary()
	}
	return errors.Join(err, s.verdict())
}

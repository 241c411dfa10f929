package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/lockstep-go/lockstep/examples/internal/demo"
	"github.com/lockstep-go/lockstep/locks"
)

const (
	taskVariable = "FENCING_TASK" // the task of a holder, as JSON
	accountID    = "42"
	lockPath     = "/accounts/" + accountID
)

// holderTask is the task of a holder's process.
type holderTask struct {
	Amount   int64  `json:"amount"`
	Pause    bool   `json:"pause"` // before the write, until the parent lets it continue
	Database string `json:"database"`
	Fenced   bool   `json:"fenced"`
}

// variable is the environment variable that gives the task to a holder.
func (t holderTask) variable() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // each of its fields can be encoded
	}
	return taskVariable + "=" + string(text)
}

// runHolder is the main function of a holder's process. It runs until its deposit is made.
// LOCKSTEP_SERVERS and further variables configure its client.
func runHolder(ctx context.Context, parent *demo.Parent) error {
	var task holderTask
	if err := json.Unmarshal([]byte(os.Getenv(taskVariable)), &task); err != nil {
		return fmt.Errorf("%s: %w", taskVariable, err)
	}
	accounts, err := openAccountStore(task.Database, task.Fenced)
	if err != nil {
		return err
	}
	defer accounts.close() //nolint:errcheck // every write was answered
	client, err := demo.ConnectMember(ctx)
	if err != nil {
		return err
	}
	defer client.Close(ctx) //nolint:errcheck // the session expires otherwise
	h := &holder{
		lock:     locks.NewMutex(client, lockPath, locks.WithOnWait(func(int) { parent.Send(event{Kind: waiting}) })),
		accounts: accounts,
		pause:    func(context.Context) error { return nil },
		emit:     func(e event) { parent.Send(e) },
	}
	if task.Pause {
		h.pause = parent.AwaitContinue
	}
	return h.run(ctx, task.Amount)
}

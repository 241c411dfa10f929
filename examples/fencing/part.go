package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

const (
	partVariable = "FENCING_PART" // set: this process is a holder, with this part as JSON
	accountID    = "42"
	lockPath     = "/accounts/" + accountID
)

// part is the task of a holder's process. LOCKSTEP_SERVERS and further variables configure its client.
type part struct {
	Holder   string `json:"holder"`
	Amount   int64  `json:"amount"`
	Pause    bool   `json:"pause"` // before the write, until the parent sends a line
	Database string `json:"database"`
	Fenced   bool   `json:"fenced"`
}

// enact is the main function of a holder's process. It runs until its deposit is made, or its parent closes its standard input.
func enact(text string) int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // Ctrl-C reaches all processes; the parent decides
	var p part
	err := json.Unmarshal([]byte(text), &p)
	if err == nil {
		ctx, lines := listen(os.Stdin)
		err = p.deposit(ctx, lines)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.Holder, err)
		return 1
	}
	return 0
}

func (p part) deposit(ctx context.Context, lines <-chan struct{}) error {
	ledger, err := openLedger(p.Database, p.Fenced)
	if err != nil {
		return err
	}
	defer ledger.close() //nolint:errcheck // every write was answered
	client, err := connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the session expires otherwise
	tell := p.teller(os.Stdout)
	if session, err := client.Session(ctx); err == nil {
		tell(event{Kind: connected, Timeout: session.Timeout()})
	}
	h := &holder{
		lock:   locks.NewMutex(client, lockPath, locks.WithOnWait(func(int) { tell(event{Kind: waiting}) })),
		ledger: ledger,
		pause:  func(context.Context) error { return nil },
		tell:   tell,
	}
	if p.Pause {
		h.pause = func(ctx context.Context) error { return await(ctx, lines) }
	}
	return h.run(ctx, p.Amount)
}

func connect(ctx context.Context) (*framework.Client, error) {
	config, err := framework.ConfigFromEnv()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return framework.Connect(ctx, config, framework.WithLogger(slog.New(slog.DiscardHandler)))
}

// teller writes events as lines.
func (p part) teller(w io.Writer) func(event) {
	var mu sync.Mutex
	lines := json.NewEncoder(w)
	return func(e event) {
		if e.Kind == "" {
			return
		}
		e.Holder, e.At = p.Holder, time.Now()
		mu.Lock()
		defer mu.Unlock()
		_ = lines.Encode(e) // fails without a parent
	}
}

// listen signals that a line was read. The context ends with standard input.
func listen(input io.Reader) (context.Context, <-chan struct{}) {
	ctx, cancel := context.WithCancelCause(context.Background())
	lines := make(chan struct{}, 1)
	go func() {
		for s := bufio.NewScanner(input); s.Scan(); {
			lines <- struct{}{}
		}
		cancel(errors.New("the parent has ended"))
	}()
	return ctx, lines
}

func await(ctx context.Context, lines <-chan struct{}) error {
	select {
	case <-lines:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

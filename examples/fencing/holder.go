package main

import (
	"context"
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/locks"
)

// holder is the part that a service would have: it adds to an account that other holders add to. The lock keeps them from reading the
// same balance. The token rejects the write of a holder that has lost the lock without knowing it.
type holder struct {
	lock   *locks.Mutex
	ledger *ledger
	pause  func(context.Context) error // between reading and writing, the first time
	tell   func(event)
}

// run deposits an amount. A refused deposit is repeated with a new lease and a new balance.
func (h *holder) run(ctx context.Context, amount int64) error {
	err := h.deposit(ctx, amount, h.pause)
	for errors.Is(err, errRefused) {
		err = h.deposit(ctx, amount, func(context.Context) error { return nil })
	}
	return err
}

// deposit reads the balance and writes the new one. A service passes lease.Context() to its statements, which prevents most late
// writes. It cannot stop a statement that is being sent when the process freezes. To show the fate of that one, the statements here do
// not end with the lease.
func (h *holder) deposit(ctx context.Context, amount int64, pause func(context.Context) error) error {
	lease, err := h.lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lease.Release(ctx) //nolint:errcheck // it returns no error after a loss
	h.tell(event{Kind: granted, Token: lease.Token()})
	balance, _, err := h.ledger.read(ctx, accountID)
	if err != nil {
		return err
	}
	balance += amount
	h.tell(event{Kind: ready, Balance: balance})
	if err := pause(ctx); err != nil { // the lease may end here
		return err
	}
	if err := lease.Err(); err != nil {
		h.tell(event{Kind: lost, Reason: err.Error()})
	}
	err = h.ledger.write(ctx, accountID, balance, lease.Token())
	h.tell(outcome(balance, lease.Token(), err))
	return err
}

// outcome describes the result of a write.
func outcome(balance, token int64, err error) event {
	switch {
	case errors.Is(err, errRefused):
		return event{Kind: refused, Balance: balance, Token: token, Reason: err.Error()}
	case err != nil:
		return event{}
	}
	return event{Kind: written, Balance: balance, Token: token}
}

// event is a line of JSON from a holder to its parent.
type event struct {
	Kind    kind          `json:"kind"`
	Holder  string        `json:"holder"`
	At      time.Time     `json:"at"`
	Timeout time.Duration `json:"timeout"`
	Token   int64         `json:"token"`
	Balance int64         `json:"balance"`
	Reason  string        `json:"reason"`
}

type kind string

const (
	connected kind = "connected"
	waiting   kind = "waiting"
	granted   kind = "granted"
	ready     kind = "ready"
	lost      kind = "lost"
	written   kind = "written"
	refused   kind = "refused"
	ended     kind = "ended" // added by the parent
)

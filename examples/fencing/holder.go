package main

import (
	"context"
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/locks"
)

// holder is what a service would write: it adds to an account that others add to as well. The lock keeps
// them from reading the same balance; the token keeps out who has lost the lock and does not know it yet.
type holder struct {
	lock   *locks.Mutex
	ledger *ledger
	pause  func(context.Context) error // between reading and writing, the first time
	tell   func(event)
}

// run deposits an amount. A deposit that was refused begins anew, with a new lease and a new balance.
func (h *holder) run(ctx context.Context, amount int64) error {
	err := h.deposit(ctx, amount, h.pause)
	for errors.Is(err, errRefused) {
		err = h.deposit(ctx, amount, func(context.Context) error { return nil })
	}
	return err
}

// deposit reads the balance and writes another. A service gives its statements lease.Context(), and so is
// spared most late writes. Nothing can call back a statement that is on its way when the process stops. To
// show what becomes of that one, the statements here do not end with the lease.
func (h *holder) deposit(ctx context.Context, amount int64, pause func(context.Context) error) error {
	lease, err := h.lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lease.Release(ctx) //nolint:errcheck // it never fails
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

// outcome tells how a write has ended.
func outcome(balance, token int64, err error) event {
	switch {
	case errors.Is(err, errRefused):
		return event{Kind: refused, Balance: balance, Token: token, Reason: err.Error()}
	case err != nil:
		return event{}
	}
	return event{Kind: written, Balance: balance, Token: token}
}

// event is what a holder tells its parent, as a line of JSON.
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
	ended     kind = "ended" // told by the parent itself
)

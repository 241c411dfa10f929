package main

import (
	"context"
	"errors"
	"time"

	"github.com/lockstep-go/lockstep/locks"
)

// holder is the part that a service would have: it adds to an account that other holders add to.
// The lock keeps them from reading the same balance. The token rejects the write of a holder that
// has lost the lock without knowing it.
type holder struct {
	lock     *locks.Mutex
	accounts *accountStore
	pause    func(context.Context) error // between reading and writing, the first time
	emit     func(event)
}

// run deposits an amount. A refused deposit is repeated with a new lease and a new balance.
func (h *holder) run(ctx context.Context, amount int64) error {
	err := h.deposit(ctx, amount, h.pause)
	for errors.Is(err, errRefused) {
		err = h.deposit(ctx, amount, func(context.Context) error { return nil })
	}
	return err
}

// deposit reads the balance and writes the new one. A service passes lease.Context() to its
// statements. That prevents most late writes, but it cannot stop a statement that is being sent
// when the process freezes. To show what happens to such a statement, the statements here use a
// context that does not end with the lease.
func (h *holder) deposit(ctx context.Context, amount int64, pause func(context.Context) error) error {
	lease, err := h.lock.Lock(ctx)
	if err != nil {
		return err
	}
	defer lease.Release(ctx) //nolint:errcheck // the deposit counts; without an answer, the client goes on to give up the lock
	h.emit(event{Kind: granted, Token: lease.Token()})
	balance, _, err := h.accounts.read(ctx, accountID)
	if err != nil {
		return err
	}
	balance += amount
	h.emit(event{Kind: ready, Balance: balance})
	if err := pause(ctx); err != nil { // the lease may end here
		return err
	}
	if err := lease.Err(); err != nil {
		h.emit(event{Kind: lost, Reason: err.Error()})
	}
	err = h.accounts.write(ctx, accountID, balance, lease.Token())
	switch {
	case err == nil:
		h.emit(event{Kind: written, Balance: balance, Token: lease.Token()})
	case errors.Is(err, errRefused):
		h.emit(event{Kind: refused, Balance: balance, Token: lease.Token(), Reason: err.Error()})
	}
	return err
}

// event is what a holder sends its parent, which adds Holder and At.
type event struct {
	Kind    kind      `json:"kind"`
	Holder  string    `json:"-"`
	At      time.Time `json:"-"`
	Token   int64     `json:"token"`
	Balance int64     `json:"balance"`
	Reason  string    `json:"reason"`
}

type kind string

const (
	waiting kind = "waiting"
	granted kind = "granted"
	ready   kind = "ready"
	lost    kind = "lost"
	written kind = "written"
	refused kind = "refused"
	ended   kind = "ended" // added by the parent
)

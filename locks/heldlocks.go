package locks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
)

// heldLock is a node that a caller holds while it asks for another lock. Paths include the client's
// root: processes may have different roots.
type heldLock struct {
	Lock string `json:"lock"` // the lock's path
	Node string `json:"node"`
	Zxid int64  `json:"zxid"` // the transaction that created the node
	turn int64  // of a slice, or 0
}

// heldLocks are the locks that a context's caller holds, the innermost lease first.
type heldLocks struct {
	standing func() []heldLock
	outer    *heldLocks // may be nil
}

// heldLocksKey is the key of the heldLocks of a context.
type heldLocksKey struct{}

// heldLocksOf returns the locks that ctx's caller holds, or nil.
func heldLocksOf(ctx context.Context) *heldLocks {
	held, _ := ctx.Value(heldLocksKey{}).(*heldLocks)
	return held
}

// withHeldLocks returns a context whose caller also holds these locks.
func withHeldLocks(ctx context.Context, standing func() []heldLock) context.Context {
	return context.WithValue(ctx, heldLocksKey{}, &heldLocks{standing, heldLocksOf(ctx)})
}

// withoutHeldLocks returns a context whose caller holds no locks.
func withoutHeldLocks(ctx context.Context) context.Context {
	return context.WithValue(ctx, heldLocksKey{}, (*heldLocks)(nil))
}

// listHeld returns the nodes of the leases that still stand, each once, and maxHeldLocks at most.
func (h *heldLocks) listHeld() (all []heldLock) {
	seen := map[heldLock]bool{}
	for ; h != nil; h = h.outer {
		for _, one := range h.standing() {
			if !seen[one] && len(all) < maxHeldLocks {
				seen[one] = true
				all = append(all, one)
			}
		}
	}
	return all
}

// maxHeldLocks bounds the held locks in one ask's record.
const maxHeldLocks = 200

// maxHeldText bounds the text of WithHeldLocks.
const maxHeldText = 128 << 10

// HeldLocks describes the locks that the caller holds by the leases of ctx, as text for another
// process of the same task, which passes it to WithHeldLocks. It is "" if the caller holds no
// locks. It leaves out turns of a local handoff. The text contains paths and no secrets.
func HeldLocks(ctx context.Context) string {
	// its node may outlive the turn
	all := slices.DeleteFunc(heldLocksOf(ctx).listHeld(), func(h heldLock) bool { return h.turn > 0 })
	if len(all) == 0 {
		return ""
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic("locks: what is held cannot be encoded: " + err.Error()) // strings and numbers
	}
	return string(text)
}

// WithHeldLocks returns a context for work on behalf of another process, which holds locks: text is
// the result of HeldLocks in that process. The detection of deadlocks treats asks under the context
// as asks of that process. The context does not end with those locks.
//
// A held lock counts as long as its node exists, so an outdated text has no effect. A wrong text
// can make only such asks fail with a DeadlockError that are under such a context themselves.
func WithHeldLocks(ctx context.Context, text string) (context.Context, error) {
	if text == "" {
		return ctx, nil
	}
	if len(text) > maxHeldText {
		return nil, fmt.Errorf("held locks: a text of %d bytes, at most %d are allowed", len(text), maxHeldText)
	}
	var all []heldLock
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("held locks: %w", err)
	}
	if err := checkHeldLocks(all); err != nil {
		return nil, fmt.Errorf("held locks: %w", err)
	}
	return withHeldLocks(ctx, func() []heldLock { return all }), nil
}

// checkHeldLocks refuses held locks that no lease can have.
func checkHeldLocks(all []heldLock) error {
	if len(all) > maxHeldLocks {
		return fmt.Errorf("%d of them, at most %d are allowed", len(all), maxHeldLocks)
	}
	for _, h := range all {
		if err := errors.Join(framework.ValidatePath(h.Lock), framework.ValidatePath(h.Node)); err != nil {
			return err
		}
		if h.Zxid <= 0 {
			return fmt.Errorf("%s: the transaction %d is not one", h.Node, h.Zxid)
		}
	}
	return nil
}

package locks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lockstep-go/lockstep/internal/waitgraph"
)

// heldLocks are the locks that a context's caller holds, the innermost lease first.
type heldLocks struct {
	standing func() []waitgraph.Held
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
func withHeldLocks(ctx context.Context, standing func() []waitgraph.Held) context.Context {
	return context.WithValue(ctx, heldLocksKey{}, &heldLocks{standing, heldLocksOf(ctx)})
}

// withoutHeldLocks returns a context whose caller holds no locks.
func withoutHeldLocks(ctx context.Context) context.Context {
	return context.WithValue(ctx, heldLocksKey{}, (*heldLocks)(nil))
}

// listHeld returns the nodes of the leases that still stand, each once, and waitgraph.MaxHeld at
// most.
func (h *heldLocks) listHeld() (all []waitgraph.Held) {
	seen := map[waitgraph.Held]bool{}
	for ; h != nil; h = h.outer {
		for _, one := range h.standing() {
			if !seen[one] && len(all) < waitgraph.MaxHeld {
				seen[one] = true
				all = append(all, one)
			}
		}
	}
	return all
}

// maxHeldText bounds the text of WithHeldLocks.
const maxHeldText = 128 << 10

// HeldLocks describes the locks that the caller holds by the leases of ctx, as text for another
// process of the same task, which passes it to WithHeldLocks. It is "" if the caller holds no
// locks. It leaves out turns of a local handoff. The text contains paths and no secrets.
func HeldLocks(ctx context.Context) string {
	// its node may outlive the turn
	all := slices.DeleteFunc(heldLocksOf(ctx).listHeld(), func(h waitgraph.Held) bool { return h.Turn > 0 })
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
// the result of HeldLocks in that process. The detection of deadlocks treats requests under the
// context as requests of that process. The context does not end with those locks.
//
// A held lock counts as long as its node exists, so an outdated text has no effect. A wrong text
// can make only such requests fail with a DeadlockError that are under such a context themselves.
func WithHeldLocks(ctx context.Context, text string) (context.Context, error) {
	if text == "" {
		return ctx, nil
	}
	if len(text) > maxHeldText {
		return nil, fmt.Errorf("held locks: a text of %d bytes, at most %d are allowed", len(text), maxHeldText)
	}
	var all []waitgraph.Held
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("held locks: %w", err)
	}
	if err := waitgraph.CheckHeld(all); err != nil {
		return nil, fmt.Errorf("held locks: %w", err)
	}
	return withHeldLocks(ctx, func() []waitgraph.Held { return all }), nil
}

package waitline

import (
	"context"

	"github.com/lockstep-go/lockstep/framework"
)

// heldKey identifies the lock or election at a path of a client.
type heldKey struct {
	client *framework.Client
	path   string
}

// HeldKey is the context key of the lock or election at a path. In the context of a lease or a
// term, the value of this key is the lease or the term. So a wait for the same path under that
// context can be refused: the holder would wait for itself.
func HeldKey(client *framework.Client, path string) any { return heldKey{client, path} }

// Holder is a lease or a term.
type Holder interface {
	// Err is nil until the lease or the term ends.
	Err() error
}

// HolderOf returns the lease or term that ctx belongs to, or nil if there is none or if it has
// ended. The key is one of HeldKey.
func HolderOf(ctx context.Context, key any) Holder {
	h, _ := ctx.Value(key).(Holder)
	if h == nil || h.Err() != nil {
		return nil
	}
	return h
}

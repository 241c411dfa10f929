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

// HeldKey is the context key of the lock or election at a path. The context of a lease or a term has its holder as the value of this key, so that
// a wait for the same path under that context can be refused: it would wait for itself.
func HeldKey(client *framework.Client, path string) any { return heldKey{client, path} }

// Holder is a lease or a term.
type Holder interface {
	// Err is nil while the holder holds.
	Err() error
}

// HolderOf returns the holder that ctx belongs to, if it holds what the key names, or nil.
func HolderOf(ctx context.Context, key any) Holder {
	h, _ := ctx.Value(key).(Holder)
	if h == nil || h.Err() != nil {
		return nil
	}
	return h
}

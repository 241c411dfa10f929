package locks

import (
	"context"
	"sync/atomic"

	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/internal/waitgraph"
)

// contenderPlace notes the node with which a call waits in line.
type contenderPlace struct {
	node atomic.Pointer[primitives.Created]
}

// contenderPlaceKey is the context key of a call's contenderPlace.
type contenderPlaceKey struct{}

// withContenderPlace returns a context for a call that waits in line, and the place that the call's
// contender is noted in.
func withContenderPlace(ctx context.Context) (context.Context, *contenderPlace) {
	p := &contenderPlace{}
	return context.WithValue(ctx, contenderPlaceKey{}, p), p
}

// noteContender returns the function that notes the node of the contender that waits for the call
// of ctx; nil if no request wants to know it.
func noteContender(ctx context.Context) func(primitives.Created) {
	p, _ := ctx.Value(contenderPlaceKey{}).(*contenderPlace)
	if p == nil {
		return nil
	}
	return func(node primitives.Created) { p.node.Store(&node) }
}

// lineNode returns the node of the contender, with root before its path. It returns false before
// the contender has joined.
func (p *contenderPlace) lineNode(root string) (waitgraph.LineNode, bool) {
	node := p.node.Load()
	if node == nil {
		return waitgraph.LineNode{}, false
	}
	return waitgraph.LineNode{Node: waitgraph.WithRoot(root, node.Path), Zxid: node.Zxid}, true
}

package locks

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/lockstep-go/lockstep/framework"
)

// Survey yields a report of every lock at root and below it, in the order of a walk: a directory before
// what lies below it, names in their order. It reads one node after the other; nothing is asked
// before the former report was taken. What makes a lock is not descended into; other nodes in its
// directory are, and are no part of its report.
//
// The servers do not tell what an ephemeral node is meant for: one by itself is reported as a claim.
//
// A directory that cannot be read, for want of permission or since it has more than MaxChildren children, is
// yielded as an error that names it (framework.ErrNoAuth, framework.ErrTooLarge), and the walk goes on.
// Any other error is the last thing yielded. What vanishes meanwhile is left out; what is made
// meanwhile may be.
func Survey(ctx context.Context, client *framework.Client, root string) iter.Seq2[*Report, error] {
	return func(yield func(*Report, error) bool) {
		if client == nil {
			yield(nil, errors.New("survey: the client is nil"))
			return
		}
		ahead := []string{root}
		for len(ahead) > 0 {
			last := len(ahead) - 1
			i := newInspection(client, ahead[last])
			ahead = ahead[:last]
			if !i.visit(ctx, yield) {
				return
			}
			slices.Reverse(i.below)
			ahead = append(ahead, i.below...)
		}
	}
}

// visit yields what there is at one path, and tells whether to go on.
func (i *inspection) visit(ctx context.Context, yield func(*Report, error) bool) bool {
	err := i.look(ctx)
	switch {
	case err == nil:
		return i.report.Kind == NoLock || yield(i.report, nil)
	case errors.Is(err, framework.ErrNoAuth), errors.Is(err, framework.ErrTooLarge):
		return yield(nil, framework.Wrap("survey", i.path, err))
	}
	yield(nil, framework.Wrap("survey", i.path, err))
	return false
}

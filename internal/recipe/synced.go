package recipe

import (
	"context"

	"github.com/lockstep-go/lockstep/framework"
)

// Sync brings the server of the client's session up to date; see framework.Session.Sync. A call
// that acts for an operator, or once in a while, begins with it: its caller believes an answer such
// as "there is no such node".
func Sync(ctx context.Context, client *framework.Client, path string) error {
	return OnSession(ctx, client, func(s *framework.Session) error { return s.Sync(ctx, path) })
}

// SyncedStat is the Stat of a node, after a Sync. A missing node is framework.ErrNoNode.
func SyncedStat(ctx context.Context, client *framework.Client, path string) (framework.Stat, error) {
	if err := Sync(ctx, client, path); err != nil {
		return framework.Stat{}, err
	}
	return client.Exists(ctx, path)
}

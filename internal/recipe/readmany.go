package recipe

import (
	"context"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
)

// GetMany reads any number of nodes. If a session ends, it begins again on the next one; see
// framework.Session.GetAll.
func GetMany(ctx context.Context, client *framework.Client, paths []string) (nodes []framework.Node, err error) {
	err = OnSession(ctx, client, func(s *framework.Session) error {
		nodes, err = s.GetAll(ctx, paths...)
		return err
	})
	return nodes, err
}

// ListMany lists the children of any number of nodes. If a session ends, it begins again on the
// next one; see primitives.Operations.ListAll.
func ListMany(ctx context.Context, client *framework.Client, paths []string) (lists []primitives.Listing, err error) {
	err = OnSession(ctx, client, func(s *framework.Session) error {
		lists, err = primitives.Of(s).ListAll(ctx, paths...)
		return err
	})
	return lists, err
}

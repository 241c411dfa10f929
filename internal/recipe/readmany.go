package recipe

import (
	"context"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
)

// GetAll reads many nodes in one request, on session after session until one answers; see framework.Session.GetAll.
func GetAll(ctx context.Context, client *framework.Client, paths ...string) (nodes []framework.Node, err error) {
	err = OnSession(ctx, client, func(s *framework.Session) error {
		nodes, err = s.GetAll(ctx, paths...)
		return err
	})
	return nodes, err
}

// ListAll lists the names below many nodes in one request, on session after session until one answers.
func ListAll(ctx context.Context, client *framework.Client, paths ...string) (lists []primitives.Listing, err error) {
	err = OnSession(ctx, client, func(s *framework.Session) error {
		lists, err = s.Primitives().ListAll(ctx, paths...)
		return err
	})
	return lists, err
}

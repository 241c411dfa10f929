package recipe

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
)

const (
	readAtOnce = 1000    // nodes in one request
	firstRead  = 100     // nodes in the first request, when no size is known yet
	pathBytes  = 400_000 // the paths in one request together; the request also has the client's root before each path
	dataAtOnce = 4 << 20 // bytes that one answer should have
)

// GetAll reads many nodes in one request. If a session ends, it tries again on the next one; see framework.Session.GetAll.
func GetAll(ctx context.Context, client *framework.Client, paths ...string) (nodes []framework.Node, err error) {
	err = OnSession(ctx, client, func(s *framework.Session) error {
		nodes, err = s.GetAll(ctx, paths...)
		return err
	})
	return nodes, err
}

// ListAll lists the children of many nodes in one request. If a session ends, it tries again on the next one; see primitives.Operations.ListAll.
func ListAll(ctx context.Context, client *framework.Client, paths ...string) (lists []primitives.Listing, err error) {
	err = OnSession(ctx, client, func(s *framework.Session) error {
		lists, err = s.Primitives().ListAll(ctx, paths...)
		return err
	})
	return lists, err
}

// GetMany reads any number of nodes, up to a thousand in one request. Each node has an error of its own, as with GetAll. If the data of one node alone are too
// large for an answer, its error wraps framework.ErrTooLarge. The first request has 100 nodes. A later one has as many nodes as should fit into an answer of
// 4 MiB, judged by the sizes in the answer before.
func GetMany(ctx context.Context, client *framework.Client, paths []string) ([]framework.Node, error) {
	return inRequests(paths, func(some []string) ([]framework.Node, error) { return GetAll(ctx, client, some...) }, dataBytes, nodeWithError)
}

func dataBytes(node framework.Node) int { return len(node.Data) }

func nodeWithError(err error) framework.Node { return framework.Node{Err: err} }

// GetManyOn is GetMany on one session: after its end the error wraps framework.ErrSessionLost. The session is a *framework.Session, or reads by one.
func GetManyOn(ctx context.Context, s interface {
	GetAll(ctx context.Context, paths ...string) ([]framework.Node, error)
}, paths []string) ([]framework.Node, error) {
	return inRequests(paths, func(some []string) ([]framework.Node, error) { return s.GetAll(ctx, some...) }, dataBytes, nodeWithError)
}

// ListMany lists the children of any number of nodes. It divides them among requests as GetMany does.
func ListMany(ctx context.Context, client *framework.Client, paths []string) ([]primitives.Listing, error) {
	return inRequests(paths, func(some []string) ([]primitives.Listing, error) { return ListAll(ctx, client, some...) }, nameBytes, listWithError)
}

// ListManyOn is ListMany on one session: after its end the error wraps framework.ErrSessionLost. The session is its primitives, or reads by them.
func ListManyOn(ctx context.Context, s interface {
	ListAll(ctx context.Context, paths ...string) ([]primitives.Listing, error)
}, paths []string) ([]primitives.Listing, error) {
	return inRequests(paths, func(some []string) ([]primitives.Listing, error) { return s.ListAll(ctx, some...) }, nameBytes, listWithError)
}

func nameBytes(list primitives.Listing) (bytes int) {
	for _, name := range list.Names {
		bytes += len(name) + 4
	}
	return bytes
}

func listWithError(err error) primitives.Listing { return primitives.Listing{Err: err} }

// inRequests divides paths among requests. If an answer is too large, it asks again for half as many paths. If the answer for a single path is too large, that is the
// path's own error.
func inRequests[T any](paths []string, read func([]string) ([]T, error), size func(T) int, refused func(error) T) ([]T, error) {
	all, atOnce := make([]T, 0, len(paths)), firstRead
	for len(paths) > 0 {
		n, bytes := 0, 0
		for n < min(atOnce, len(paths)) && (n == 0 || bytes+len(paths[n]) <= pathBytes) {
			bytes += len(paths[n])
			n++
		}
		some, err := read(paths[:n])
		switch {
		case errors.Is(err, framework.ErrTooLarge) && n > 1:
			atOnce = n / 2
			continue
		case errors.Is(err, framework.ErrTooLarge):
			some = []T{refused(err)}
		case err != nil:
			return nil, err
		}
		answer := int64(1)
		for _, one := range some {
			answer += int64(size(one))
		}
		atOnce = int(min(max(1, dataAtOnce*int64(n)/answer), readAtOnce))
		all, paths = append(all, some...), paths[n:]
	}
	return all, nil
}

package unused

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// aclsAtOnce is how many ACLs are read at the same time: one request reads one.
const aclsAtOnce = 64

// findOwnACLs finds the directories among the leftovers that have an ACL of their own: one that
// differs from that of the directory above. Somebody has made them so on purpose. If such a
// directory were deleted, the next client would create it with another ACL, and whoever may create
// nodes above could make it his own. A directory whose ACL may not be read counts, too.
func (f *finder) findOwnACLs(ctx context.Context) error {
	var dirs, paths []string
	for _, l := range f.found.Leftovers {
		for _, path := range l.Nodes {
			if (l.Kind == EmptyDirectory || l.Kind == Semaphore) && path != "/" && f.isPlain(path) {
				above, _ := znode.Split(path)
				dirs, paths = append(dirs, path), append(paths, path, above)
			}
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	acls, err := f.readACLs(ctx, paths)
	if err != nil {
		return err
	}
	for _, path := range dirs {
		above, _ := znode.Split(path)
		f.ownACL[path] = acls[path] == nil || acls[above] == nil || !isSameACL(acls[path], acls[above])
	}
	return nil
}

// readACLs reads ACLs, and leaves out those that may not be read and those of nodes that are gone
// by now. It records which nodes are gone: a semaphore without one of its directories is a leftover
// all the same.
func (f *finder) readACLs(ctx context.Context, paths []string) (map[string][]framework.ACL, error) {
	var mu sync.Mutex
	acls := map[string][]framework.ACL{}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(aclsAtOnce)
	for _, path := range paths {
		group.Go(func() error {
			acl, _, err := f.client.ACL(within, path)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, framework.ErrNoAuth):
				f.found.Refused = append(f.found.Refused, path)
			case err == nil:
				acls[path] = acl
			case errors.Is(err, framework.ErrNoNode):
				f.nodes[path] = framework.Node{Err: err}
			default:
				return err
			}
			return nil
		})
	}
	return acls, group.Wait()
}

// isSameACL reports whether two ACLs have the same entries, in any order.
func isSameACL(a, b []framework.ACL) bool {
	within := func(a, b []framework.ACL) bool {
		return !slices.ContainsFunc(a, func(entry framework.ACL) bool { return !slices.Contains(b, entry) })
	}
	return within(a, b) && within(b, a)
}

package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/cli/lock"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/monitor"
)

const (
	maxExamined     = 20_000  // nodes that are looked at
	largeData       = 800_000 // bytes of a node's data; servers accept 1 MiB for a whole request
	largeList       = 800_000 // bytes of a directory's names
	maxListedNodes  = 250_000 // children of a directory that is listed
	childrenAtOnce  = 100_000 // children of the directories that are listed together
	perNameOverhead = 4
)

// treeFigures are what a walk over nodes has found.
type treeFigures struct {
	nodes, ephemeral int
	sessions         map[framework.SessionID]int // bytes of ephemeral paths
	left             string                      // the path from which on nodes were left out, or ""
}

// examineTree walks over the nodes below a path, and over its locks.
func (d *diagnoses) examineTree(ctx context.Context, client *framework.Client, root string) error {
	f := treeFigures{sessions: map[framework.SessionID]int{}}
	if err := d.walkTree(ctx, client, root, &f); err != nil {
		return err
	}
	if f.nodes == 0 && root != defaultExamined {
		return d.bad("nodes", "check ROOT and --root", "there is no node %s: nothing was examined below it", root)
	}
	most := 0
	for session, bytes := range f.sessions {
		most = max(most, bytes)
		if bytes > monitor.DefaultSessionBytes {
			err := d.bad("session", "let its process hold fewer locks, or spread them over several clients: the "+
				"servers stop working when they delete too much at once (ZOOKEEPER-4306)",
				"%s has ephemeral nodes with %d bytes of paths: from %d on, lockstep refuses to create more",
				session, bytes, 900_000)
			if err != nil {
				return err
			}
		}
	}
	text := fmt.Sprintf("%d below %s, %d of them ephemeral, of %d sessions; the largest session has %d bytes of paths",
		f.nodes, root, f.ephemeral, len(f.sessions), most)
	var err error
	if f.left != "" {
		err = d.bad("nodes", "examine parts of the tree: lockstep doctor PATH",
			"%s; the others are left out, from %s on", text, f.left)
	} else {
		err = d.good("nodes", "%s", text)
	}
	if err != nil {
		return err
	}
	return d.examineLocks(ctx, client, root)
}

// walkTree looks at each node, up to maxExamined, level by level and many nodes in one request.
func (d *diagnoses) walkTree(ctx context.Context, client *framework.Client, root string, f *treeFigures) error {
	for level := []string{root}; len(level) > 0; {
		if room := maxExamined - f.nodes; len(level) > room {
			f.left, level = level[room], level[:room]
		}
		nodes, err := recipe.GetMany(ctx, client, level)
		if err != nil {
			return err
		}
		var dirs []listedDir
		for i, path := range level {
			stat, err := nodes[i].Stat, nodes[i].Err
			if errors.Is(err, framework.ErrNoAuth) || errors.Is(err, framework.ErrTooLarge) {
				stat, err = client.Exists(ctx, path) // which needs no permission
			}
			if errors.Is(err, framework.ErrNoNode) {
				continue
			}
			if err != nil {
				return err
			}
			f.nodes++
			if stat.EphemeralOwner != 0 {
				f.ephemeral++
				f.sessions[stat.EphemeralOwner] += len(path) + perNameOverhead
			}
			if stat.DataLength > largeData {
				if err := d.bad("size", "store less in it: the servers refuse more than 1 MiB (jute.maxbuffer)",
					"%s has %d bytes of data", path, stat.DataLength); err != nil {
					return err
				}
			}
			if stat.NumChildren > 0 {
				if len(d.directories) < maxACLs {
					d.directories = append(d.directories, path)
				}
				dirs = append(dirs, listedDir{path, int(stat.NumChildren)})
			}
		}
		if f.left != "" {
			return nil
		}
		if level, err = d.listDirs(ctx, client, dirs, f); err != nil {
			return err
		}
	}
	return nil
}

// listedDir is a directory and the number of its children.
type listedDir struct {
	path     string
	children int
}

// listDirs lists directories, judges their sizes, and returns the nodes in them, up to as many as
// may still be looked at and a list more.
func (d *diagnoses) listDirs(ctx context.Context, client *framework.Client, dirs []listedDir,
	f *treeFigures) (nodes []string, err error) {
	const advice = "let fewer processes wait there, or remove nodes that are not used: most clients cannot read a " +
		"list of more than 1 MiB"
	var some []string
	children := 0
	list := func() error {
		lists, err := recipe.ListMany(ctx, client, some)
		if err != nil {
			return err
		}
		for i, l := range lists {
			bytes := 0
			for _, name := range l.Names {
				nodes = append(nodes, znode.Join(some[i], name))
				bytes += len(name) + perNameOverhead
			}
			switch {
			case errors.Is(l.Err, framework.ErrNoNode):
			case errors.Is(l.Err, framework.ErrNoAuth):
				err = d.bad("access", "give credentials that have the permission in LOCKSTEP_AUTH_FILE (user:password)",
					"no permission to list %s, %s", some[i], sharedreport.Credentials(client.Config()))
			case l.Err != nil:
				return l.Err
			case bytes > largeList:
				err = d.bad("size", advice, "the list of %s has %d names of %d bytes", some[i], len(l.Names), bytes)
			}
			if err != nil {
				return err
			}
		}
		some, children = nil, 0
		return nil
	}
	for _, dir := range dirs {
		if dir.children > maxListedNodes {
			if err := d.bad("size", advice, "%s has %d children: they are not examined", dir.path,
				dir.children); err != nil {
				return nil, err
			}
			continue
		}
		if len(nodes) > maxExamined-f.nodes {
			continue // the next level begins with what is left out
		}
		if some, children = append(some, dir.path), children+dir.children; children > childrenAtOnce {
			if err := list(); err != nil {
				return nil, err
			}
		}
	}
	return nodes, list()
}

// examineLocks finds nodes in locks that no session owns, and counts the locks that lockstep locks
// lists and the nodes that other programs have in lines. A claim may have any data, so it does not
// tell whose it is; nor does a node whose record Curator's Revoker has overwritten.
func (d *diagnoses) examineLocks(ctx context.Context, client *framework.Client, root string) error {
	count, foreign, all := 0, 0, lock.Filter{}
	for r, err := range locks.List(ctx, client, root) {
		if errors.Is(err, framework.ErrNoAuth) || errors.Is(err, framework.ErrTooLarge) {
			continue // the walk has reported it
		}
		if err != nil {
			return err
		}
		if all.Admits(r, time.Now()) {
			count++
		}
		if r.Kind == locks.MixedLock {
			if err := d.bad("locks", "stop the programs of one kind, or give them another path",
				"%s has contenders of several kinds, which do not see each other", r.Path); err != nil {
				return err
			}
		}
		for _, e := range append(append([]locks.Entry{}, r.Holders...), r.Waiters...) {
			if e.Foreign && !e.Revoked && r.Kind != locks.ClaimLock {
				foreign++
			}
			if e.Session == 0 {
				advice := "find out who created it, and delete it: lockstep release " + cli.ShellWord(r.Path) +
					" --node " +
					cli.ShellWord(e.Node)
				if err := d.bad("orphan", advice,
					"%s is in the line of %s and belongs to no session: the servers do not delete it", e.Node,
					r.Path); err != nil {
					return err
				}
			}
		}
	}
	if foreign > 0 {
		return d.good("locks", "%d, as lockstep locks %s lists them; other programs have written %d of their nodes",
			count, cli.ShellWord(root), foreign)
	}
	return d.good("locks", "%d, as lockstep locks %s lists them", count, cli.ShellWord(root))
}

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/monitor"
)

const (
	maxExamined     = 20_000  // nodes that are looked at
	largeData       = 800_000 // bytes of a node's data; servers take 1 MiB with all around it
	largeList       = 800_000 // bytes of a directory's names
	maxListedNodes  = 250_000 // children of a directory that is listed
	perNameOverhead = 4
)

// treeFigures are what a walk over nodes has found.
type treeFigures struct {
	nodes, ephemeral int
	sessions         map[int64]int // bytes of ephemeral paths
	left             string        // the path from which on nodes were left out, or ""
}

// examineTree walks over the nodes below a path, and over its locks.
func (d *diagnoses) examineTree(ctx context.Context, client *framework.Client, root string) error {
	f := treeFigures{sessions: map[int64]int{}}
	if err := d.walkTree(ctx, client, root, &f); err != nil {
		return err
	}
	most := 0
	for session, bytes := range f.sessions {
		most = max(most, bytes)
		if bytes > monitor.DefaultSessionBytes {
			err := d.bad("session", "let its process hold fewer locks, or spread them over several clients: the servers stop working when they delete too much at once (ZOOKEEPER-4306)",
				"%s has ephemeral nodes with %d bytes of paths: from %d on, creates are refused", locks.SessionID(session), bytes, 900_000)
			if err != nil {
				return err
			}
		}
	}
	text := fmt.Sprintf("%d below %s, %d of them ephemeral, of %d sessions; the largest session has %d bytes of paths", f.nodes, root, f.ephemeral, len(f.sessions), most)
	var err error
	if f.left != "" {
		err = d.bad("nodes", "examine parts: lockstep doctor PATH", "%s; the others are left out, from %s on", text, f.left)
	} else {
		err = d.good("nodes", "%s", text)
	}
	if err != nil {
		return err
	}
	return d.examineLocks(ctx, client, root)
}

// walkTree looks at each node, up to maxExamined.
func (d *diagnoses) walkTree(ctx context.Context, client *framework.Client, root string, f *treeFigures) error {
	ahead := []string{root}
	for len(ahead) > 0 {
		path := ahead[len(ahead)-1]
		ahead = ahead[:len(ahead)-1]
		if f.nodes == maxExamined {
			f.left = path
			return nil
		}
		st, err := client.Exists(ctx, path)
		if errors.Is(err, framework.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		f.nodes++
		if st.EphemeralOwner != 0 {
			f.ephemeral++
			f.sessions[st.EphemeralOwner] += len(path) + perNameOverhead
		}
		if st.DataLength > largeData {
			if err := d.bad("size", "store less in it: the servers refuse 1 MiB (jute.maxbuffer)", "%s has %d bytes of data", path, st.DataLength); err != nil {
				return err
			}
		}
		if st.NumChildren == 0 {
			continue
		}
		names, err := d.listNames(ctx, client, path, st)
		if err != nil {
			return err
		}
		for _, name := range names {
			ahead = append(ahead, znode.Join(path, name))
		}
	}
	return nil
}

// listNames lists a directory, and judges its size.
func (d *diagnoses) listNames(ctx context.Context, client *framework.Client, path string, st framework.Stat) ([]string, error) {
	const advice = "let fewer wait there, or remove what is left over: clients cannot read a list beyond their limit (1 MiB in most)"
	if st.NumChildren > maxListedNodes {
		return nil, d.bad("size", advice, "%s has %d children: they are left out", path, st.NumChildren)
	}
	names, _, err := client.Children(ctx, path)
	switch {
	case errors.Is(err, framework.ErrNoNode):
		return nil, nil
	case errors.Is(err, framework.ErrNoAuth):
		return nil, d.bad("access", "give credentials that may in LOCKSTEP_AUTH_FILE (user:password)", "no permission to list %s, %s", path, presented(client))
	case err != nil:
		return nil, err
	}
	bytes := 0
	for _, name := range names {
		bytes += len(name) + perNameOverhead
	}
	if bytes > largeList {
		return names, d.bad("size", advice, "the list of %s has %d names of %d bytes", path, len(names), bytes)
	}
	return names, nil
}

// examineLocks finds nodes in locks that no session owns, and counts those of other programs.
func (d *diagnoses) examineLocks(ctx context.Context, client *framework.Client, root string) error {
	count, foreign := 0, 0
	for r, err := range locks.List(ctx, client, root) {
		if errors.Is(err, framework.ErrNoAuth) || errors.Is(err, framework.ErrTooLarge) {
			continue // the walk has reported it
		}
		if err != nil {
			return err
		}
		count++
		if r.Kind == locks.MixedLock {
			if err := d.bad("locks", "stop the programs of one kind, or give them another path", "%s has contenders of several kinds, which do not see each other", r.Path); err != nil {
				return err
			}
		}
		for _, e := range append(append([]locks.Entry{}, r.Holders...), r.Waiters...) {
			if e.Foreign {
				foreign++
			}
			if e.Session == 0 {
				advice := "see who made it, and take it away: lockstep release " + r.Path + " --node " + e.Node
				if err := d.bad("orphan", advice, "%s stands in the line of %s and belongs to no session: it does not go by itself", e.Node, r.Path); err != nil {
					return err
				}
			}
		}
	}
	return d.good("locks", "%d below %s; %d of their nodes are of other programs", count, root, foreign)
}

package locks

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/waitline"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// maxEntries is how many nodes Inspect reads of one lock at most.
const maxEntries = 1000

// maxChildren is how many children a directory may have to be listed: a list is one answer, and all
// of it is held in memory.
const maxChildren = 250_000

// entriesAtOnce is how many contenders are read for several paths together.
const entriesAtOnce = 20_000

// bulkReader reads the nodes that inspections need, many in one request. It reads a node that it
// has not read ahead when an inspection needs it.
type bulkReader struct {
	client *framework.Client
	read   map[string]framework.Node // by path
	listed map[string][]string       // the names of children, by path
}

func newBulkReader(client *framework.Client) *bulkReader {
	return &bulkReader{client: client, read: map[string]framework.Node{}, listed: map[string][]string{}}
}

// readAhead reads what inspections of these paths need: the nodes, the names of their children, and
// the contenders. It returns how many paths it has prepared, from the first on: it does not read
// many locks with many contenders at once.
func (b *bulkReader) readAhead(ctx context.Context, paths []string) (prepared int, err error) {
	if err := b.readNodes(ctx, paths); err != nil {
		return 0, err
	}
	if err := b.listAll(ctx, paths); err != nil {
		return 0, err
	}
	var parts, entries []string
	for _, path := range paths {
		layout := parseLayout(b.listed[path])
		lines := contenderNodes(path, layout)
		if prepared > 0 && len(entries)+len(lines) > entriesAtOnce {
			break
		}
		entries = append(entries, lines...)
		for _, name := range layout.parts {
			parts = append(parts, znode.Join(path, name))
		}
		prepared++
	}
	if err := b.readNodes(ctx, parts); err != nil {
		return 0, err
	}
	if err := b.listAll(ctx, parts); err != nil {
		return 0, err
	}
	for _, dir := range parts {
		entries = append(entries, semaphoreNodes(dir, b.listed[dir])...)
	}
	return prepared, b.readNodes(ctx, entries)
}

// contenderNodes returns the first nodes of the lines in a directory, at most as many as an
// inspection reads.
func contenderNodes(dir string, layout directoryLayout) (nodes []string) {
	for _, kind := range lineKinds {
		for _, p := range layout.lines[kind] {
			if len(nodes) == maxEntries {
				return nodes
			}
			nodes = append(nodes, znode.Join(dir, p.Name))
		}
	}
	return nodes
}

// semaphoreNodes are the contenders in one of a semaphore's directories.
func semaphoreNodes(dir string, names []string) (nodes []string) {
	for _, name := range names {
		_, isLease := waitline.ParseNumbered(name, leaseName, waitline.Mutex)
		if kind, _ := kindOfChild(name); !isLease && kind != MutexLock {
			continue
		}
		if nodes = append(nodes, znode.Join(dir, name)); len(nodes) == maxEntries {
			break
		}
	}
	return nodes
}

// readNodes reads nodes for later calls of get and exists.
func (b *bulkReader) readNodes(ctx context.Context, paths []string) error {
	nodes, err := recipe.GetMany(ctx, b.client, paths)
	for i, node := range nodes {
		if !errors.Is(node.Err, framework.ErrTooLarge) { // the inspection that needs it gets the error
			b.read[paths[i]] = node
		}
	}
	return err
}

// listAll lists those directories that have children and may be listed.
func (b *bulkReader) listAll(ctx context.Context, paths []string) error {
	var dirs []string
	for _, path := range paths {
		if n, ok := b.read[path]; ok && n.Err == nil && n.Stat.NumChildren > 0 && n.Stat.NumChildren <= maxChildren {
			dirs = append(dirs, path)
		}
	}
	all, err := recipe.ListMany(ctx, b.client, dirs)
	for i, l := range all {
		if l.Err == nil {
			b.listed[dirs[i]] = l.Names
		}
	}
	return err
}

// exists returns a node's Stat. One that may not be read has a Stat all the same.
func (b *bulkReader) exists(ctx context.Context, path string) (framework.Stat, error) {
	if n, ok := b.read[path]; ok && !errors.Is(n.Err, framework.ErrNoAuth) {
		return n.Stat, n.Err
	}
	return b.client.Exists(ctx, path)
}

// get returns a node's data.
func (b *bulkReader) get(ctx context.Context, path string) ([]byte, framework.Stat, error) {
	if n, ok := b.read[path]; ok {
		return n.Data, n.Stat, n.Err
	}
	return b.client.Get(ctx, path)
}

// children lists the names below a node.
func (b *bulkReader) children(ctx context.Context, path string) ([]string, error) {
	if names, ok := b.listed[path]; ok {
		return names, nil
	}
	names, _, err := b.client.Children(ctx, path)
	return names, err
}

package waitline

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Entry is one contender in a list of the line.
type Entry struct {
	Node    string              // the path of its node
	Token   int64               // the fencing token that its lease has, or will have when it is granted
	Session framework.SessionID // the id of its session
	Data    []byte
}

// List lists the line in order: the holders first, then the waiters. If the directory is missing,
// the line is empty. Nodes that are deleted meanwhile are left out. List reads many nodes in one
// request; see framework.Session.GetAll.
func (l *Line) List(ctx context.Context, client *framework.Client) ([]Entry, error) {
	names, _, err := client.Children(ctx, l.dir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	paths, err := l.InOrder(names)
	if err != nil {
		return nil, err
	}
	nodes, err := recipe.GetMany(ctx, client, paths)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for i, node := range nodes {
		if errors.Is(node.Err, framework.ErrNoNode) {
			continue
		}
		if node.Err != nil {
			return nil, failure.Wrap("get", paths[i], node.Err)
		}
		entries = append(entries, newEntry(paths[i], node.Data, node.Stat))
	}
	return entries, nil
}

// First returns the first contender among names, which are the directory's children, or nil if
// there is none.
func (l *Line) First(ctx context.Context, client *framework.Client, names []string) (*Entry, error) {
	paths, err := l.InOrder(names)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		data, stat, err := client.Get(ctx, path)
		if errors.Is(err, framework.ErrNoNode) { // deleted meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		first := newEntry(path, data, stat)
		return &first, nil
	}
	return nil, nil
}

// InOrder returns the paths of the contenders among names, which are the directory's children, in
// the order of the line.
func (l *Line) InOrder(names []string) ([]string, error) {
	line, err := l.filter.inOrder(names)
	if err != nil {
		return nil, failure.Wrap("list", l.dir, err)
	}
	nodes := make([]string, len(line))
	for i, p := range line {
		nodes[i] = znode.Join(l.dir, p.Name)
	}
	return nodes, nil
}

// newEntry returns the entry of a node that was read.
func newEntry(path string, data []byte, stat framework.Stat) Entry {
	return Entry{Node: path, Token: stat.Czxid, Session: stat.EphemeralOwner, Data: data}
}

package waitline

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/znode"
)

// Entry is one contender in a list of the line.
type Entry struct {
	Node    string // the path of its node
	Token   int64  // the fencing token that its lease has, or will have when it is granted
	Session int64  // the id of its session
	Data    []byte
}

// List lists the line in order: the holders first, then the waiters. If the directory is missing, the line is empty. Nodes that are deleted meanwhile are
// left out.
func (l *Line) List(ctx context.Context, client *framework.Client) ([]Entry, error) {
	names, _, err := client.Children(ctx, l.dir)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return l.readEntries(ctx, client, names, len(names))
}

// First returns the first contender among names, which are the directory's children, or nil if there is none.
func (l *Line) First(ctx context.Context, client *framework.Client, names []string) (*Entry, error) {
	entries, err := l.readEntries(ctx, client, names, 1)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	return &entries[0], nil
}

// InOrder returns the paths of the contenders among names, which are the directory's children, in the order of the line.
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

// readEntries returns the first n contenders among names.
func (l *Line) readEntries(ctx context.Context, client *framework.Client, names []string, n int) ([]Entry, error) {
	line, err := l.InOrder(names)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, path := range line {
		if len(entries) == n {
			break
		}
		data, st, err := client.Get(ctx, path)
		if errors.Is(err, framework.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, Entry{Node: path, Token: st.Czxid, Session: st.EphemeralOwner, Data: data})
	}
	return entries, nil
}

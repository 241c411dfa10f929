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
	Node    string // its path
	Token   int64  // the fencing token that its lease has or would have
	Session int64  // the number of its session
	Data    []byte
}

// List lists the line in order: the holder first, then the waiters. A missing directory is an empty line. Nodes that vanish meanwhile are
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

// First returns the holder among names, which are the directory's children, or nil.
func (l *Line) First(ctx context.Context, client *framework.Client, names []string) (*Entry, error) {
	entries, err := l.readEntries(ctx, client, names, 1)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	return &entries[0], nil
}

// readEntries returns the first n contenders among names.
func (l *Line) readEntries(ctx context.Context, client *framework.Client, names []string, n int) ([]Entry, error) {
	line, err := l.filter.inOrder(names)
	if err != nil {
		return nil, failure.Wrap("list", l.dir, err)
	}
	var entries []Entry
	for _, p := range line {
		if len(entries) == n {
			break
		}
		path := znode.Join(l.dir, p.Name)
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

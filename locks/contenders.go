package locks

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
)

// Contender is one node of a line, as anybody can see it.
type Contender struct {
	// Node is its path.
	Node string
	// Token is the fencing token that its lease has or would have.
	Token int64
	// Session is the number of the session that it lives with.
	Session int64
	// Data is what it has written into its node; see Describe.
	Data []byte
}

// Contenders lists the line in order: the holder first, then the waiters. A missing directory is an
// empty line. Nodes that vanish meanwhile are left out.
func (l *Line) Contenders(ctx context.Context) ([]Contender, error) {
	if l.err != nil {
		return nil, framework.Wrap("list", l.path, l.err)
	}
	names, _, err := l.client.Children(ctx, l.path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return l.read(ctx, names, len(names))
}

// First returns the holder, or nil.
func (l *Line) First(ctx context.Context, names []string) (*Contender, error) {
	cs, err := l.read(ctx, names, 1)
	if err != nil || len(cs) == 0 {
		return nil, err
	}
	return &cs[0], nil
}

// read returns the first n contenders among names.
func (l *Line) read(ctx context.Context, names []string, n int) ([]Contender, error) {
	line, err := order(names, l.company)
	if err != nil {
		return nil, framework.Wrap("list", l.path, err)
	}
	var out []Contender
	for _, p := range line {
		if len(out) == n {
			break
		}
		path := framework.Join(l.path, p.name)
		data, st, err := l.client.Get(ctx, path)
		if errors.Is(err, framework.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Contender{Node: path, Token: st.Czxid, Session: st.EphemeralOwner, Data: data})
	}
	return out, nil
}

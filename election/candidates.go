package election

import (
	"context"
	"errors"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
)

// Candidate is one candidate, as anybody can see it.
type Candidate struct {
	// ID is what it is called: the data of its node.
	ID string
	// Token is the fencing token that its term has or would have.
	Token int64
	// Node is the path of its node.
	Node string
	// Session is the number of the session that it lives with.
	Session int64
}

// Leader returns who leads, as the connected server knows it, which may lag behind the others. Its error
// wraps ErrNoLeader when nobody does.
func (e *Election) Leader(ctx context.Context) (Candidate, error) {
	c, err := e.leader(ctx)
	return c, framework.Wrap("leader", e.path, err)
}

func (e *Election) leader(ctx context.Context) (Candidate, error) {
	if e.err != nil {
		return Candidate{}, e.err
	}
	names, _, err := e.client.Children(ctx, e.path)
	if errors.Is(err, framework.ErrNoNode) {
		return Candidate{}, ErrNoLeader
	}
	if err != nil {
		return Candidate{}, err
	}
	first, err := e.line.First(ctx, names)
	switch {
	case err != nil:
		return Candidate{}, err
	case first == nil:
		return Candidate{}, ErrNoLeader
	}
	return candidate(*first), nil
}

// Candidates lists the candidates in the order in which they lead: the leader is the first. A missing
// directory is an empty list.
func (e *Election) Candidates(ctx context.Context) ([]Candidate, error) {
	if e.err != nil {
		return nil, framework.Wrap("candidates", e.path, e.err)
	}
	cs, err := e.line.Contenders(ctx)
	if err != nil {
		return nil, framework.Wrap("candidates", e.path, err)
	}
	out := make([]Candidate, len(cs))
	for i, c := range cs {
		out[i] = candidate(c)
	}
	return out, nil
}

func candidate(c locks.Contender) Candidate {
	return Candidate{ID: string(c.Data), Token: c.Token, Node: c.Node, Session: c.Session}
}

package election

import (
	"context"
	"errors"
	"time"

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
	// Number counts the election's terms, of a leader that has begun one. It is 0 of all others, of a winner that
	// was not yet told that it leads, and of Java's.
	Number int64
	// Since is when the term began, by the leader's clock.
	Since time.Time
	// Metadata is what the candidate tells of itself.
	Metadata Metadata
	// Priority is that of WithPriority, of a candidate that waits.
	Priority int
}

// Leader returns who leads, as the connected server knows it, which may lag behind the others. Its error
// wraps ErrNoLeader when nobody does.
func (e *Election) Leader(ctx context.Context) (Candidate, error) {
	c, err := e.readLeader(ctx)
	return c, framework.Wrap("leader", e.path, err)
}

func (e *Election) readLeader(ctx context.Context) (Candidate, error) {
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
	return e.addTermRecord(ctx, candidateOf(*first))
}

// Candidates lists the candidates in the order in which they lead: the leader is the first. A missing
// directory is an empty list. Candidates of one session and one id are told apart by their order alone.
func (e *Election) Candidates(ctx context.Context) ([]Candidate, error) {
	all, err := e.listCandidates(ctx)
	return all, framework.Wrap("candidates", e.path, err)
}

func (e *Election) listCandidates(ctx context.Context) ([]Candidate, error) {
	if e.err != nil {
		return nil, e.err
	}
	line, err := e.line.Contenders(ctx)
	if err != nil || len(line) == 0 {
		return nil, err
	}
	told, err := e.waiting.listMembers(ctx)
	if err != nil {
		return nil, err
	}
	first, err := e.addTermRecord(ctx, candidateOf(line[0]))
	if err != nil {
		return nil, err
	}
	all := []Candidate{first}
	for _, c := range line[1:] {
		one := candidateOf(c)
		told = one.addWaitingRecord(told)
		all = append(all, one)
	}
	return all, nil
}

// addWaitingRecord takes what the candidate tells of itself, and leaves the rest.
func (c *Candidate) addWaitingRecord(told []Member) (rest []Member) {
	for i, m := range told {
		if m.Session == c.Session && m.ID == c.ID {
			c.Metadata, c.Priority = m.Metadata, priorityOf(m.Node)
			return append(told[:i:i], told[i+1:]...)
		}
	}
	return told
}

// addTermRecord adds what the first in line has stored of its term.
func (e *Election) addTermRecord(ctx context.Context, c Candidate) (Candidate, error) {
	r, err := readTerm(ctx, e.client, e.termPath())
	if err != nil {
		return Candidate{}, err
	}
	c.applyTermRecord(r.termRecord)
	return c, nil
}

// applyTermRecord adds what a term's record says, if it is this candidate's, which it tells.
func (c *Candidate) applyTermRecord(r termRecord) bool {
	if r.Token != c.Token || r.Number == 0 {
		return false
	}
	c.Number, c.Since, c.Metadata = r.Number, r.Since, r.Metadata.clone()
	return true
}

// lineMember is a candidate as the line knows it.
type lineMember = locks.Contender

func candidateOf(c lineMember) Candidate {
	return Candidate{ID: string(c.Data), Token: c.Token, Node: c.Node, Session: c.Session}
}

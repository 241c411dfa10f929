package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/failure"
	"github.com/lockstep-go/lockstep/internal/moduleonly"
	"github.com/lockstep-go/lockstep/internal/recipe"
	"github.com/lockstep-go/lockstep/internal/waitline"
)

func init() {
	moduleonly.Leaders = leaders
	moduleonly.CheckElectionOptions = func(options any) error {
		_, err := configOf(options.([]Option))
		return err
	}
}

func leaders(ctx context.Context, client *framework.Client, paths ...string) ([]moduleonly.Leader, error) {
	if client == nil {
		return nil, errors.New("leaders: the client is nil")
	}
	all, err := readLeaders(ctx, client, paths)
	if err != nil {
		return nil, fmt.Errorf("read the leaders of %d elections: %w", len(paths), err)
	}
	for i, path := range paths {
		all[i].Err = failure.Wrap("leader", path, all[i].Err)
	}
	return all, nil
}

func readLeaders(ctx context.Context, client *framework.Client, paths []string) ([]moduleonly.Leader, error) {
	defaults, err := configOf(nil)
	if err != nil {
		return nil, err
	}
	lists, err := recipe.ListMany(ctx, client, paths)
	if err != nil {
		return nil, err
	}
	all, lines, nodes := make([]moduleonly.Leader, len(paths)), make([][]string, len(paths)), []string(nil)
	for i, path := range paths {
		if all[i].Err = lists[i].Err; all[i].Err == nil {
			lines[i], all[i].Err = waitline.New(path, waitline.Filter{Kind: defaults.names},
				nil).InOrder(lists[i].Names)
		}
		if errors.Is(all[i].Err, framework.ErrNoNode) {
			all[i].Err = nil
		}
		nodes = append(append(nodes, path+termSuffix), lines[i]...)
	}
	read, err := recipe.GetMany(ctx, client, nodes)
	if err != nil {
		return nil, err
	}
	for i := range all {
		candidates := read[1 : 1+len(lines[i])]
		if all[i].Err == nil {
			leader, err := leaderAmong(lines[i], candidates, paths[i]+termSuffix, read[0])
			all[i] = moduleonly.Leader{Candidate: leader, Session: leader.Session, Err: err}
		}
		read = read[1+len(candidates):]
	}
	return all, nil
}

// leaderAmong returns the first candidate in line that is still there, with the record of its term.
func leaderAmong(line []string, candidates []framework.Node, termPath string, term framework.Node) (Candidate, error) {
	for i, node := range candidates {
		switch {
		case errors.Is(node.Err, framework.ErrNoNode):
			continue
		case node.Err != nil:
			return Candidate{}, node.Err
		}
		c := Candidate{ID: string(node.Data), Token: node.Stat.Czxid, Node: line[i], Session: node.Stat.EphemeralOwner}
		switch {
		case errors.Is(term.Err, framework.ErrNoNode):
			return c, nil
		case term.Err != nil:
			return Candidate{}, term.Err
		}
		r, err := decodeTerm(term.Data)
		if err != nil {
			return Candidate{}, fmt.Errorf("%s: %w", termPath, err)
		}
		c.addTermRecord(r)
		return c, nil
	}
	return Candidate{}, ErrNoLeader
}

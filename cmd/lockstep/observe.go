package main

import (
	"context"
	"os"
	"time"

	"github.com/lockstep-go/lockstep/election"
)

// change is one line of --observe.
type change struct {
	Time  string  `json:"time"`
	ID    *string `json:"id"` // null: nobody leads
	Exact []byte  `json:"id_base64,omitempty"`
	Token int64   `json:"token"`
	Term  int64   `json:"term"` // 0: not counted

	Metadata election.Metadata `json:"metadata,omitempty"`
}

// observe prints who leads until a signal comes.
func (e *elect) observe(ctx context.Context, watched *election.Election) error {
	for leader, err := range watched.Observe(ctx) {
		if err != nil {
			return err
		}
		c, shown := change{Time: time.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00")}, "none"
		if leader != nil {
			c.ID, c.Exact, c.Token, c.Term, c.Metadata, shown = &leader.ID, exact(leader.ID), leader.Token, leader.Number, leader.Metadata, readable(leader.ID)
		}
		if err := put(os.Stdout, e.json, c, c.Time, shown, c.Token, c.Term); err != nil {
			return err
		}
	}
	return nil
}

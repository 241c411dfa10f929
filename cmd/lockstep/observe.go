package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/lockstep-go/lockstep/election"
)

// change is one line of --observe.
type change struct {
	Time  string  `json:"time"`
	ID    *string `json:"id"` // null: nobody leads
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
			c.ID, c.Token, c.Term, c.Metadata, shown = &leader.ID, leader.Token, leader.Number, leader.Metadata, readable(leader.ID)
		}
		if err := put(os.Stdout, e.json, c, c.Time, shown, c.Token, c.Term); err != nil {
			return err
		}
	}
	return nil
}

// readable quotes an id that could be taken for something else: anybody may write anything.
func readable(id string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	if id == "" || id == "none" || strings.HasPrefix(id, `"`) || strings.IndexFunc(id, odd) >= 0 {
		return strconv.Quote(id)
	}
	return id
}

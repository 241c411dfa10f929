package hold

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/terminal"
	"github.com/lockstep-go/lockstep/locks"
)

// PrintLeaderChanges prints the present leader to a terminal, now and at each change, until stop is
// called.
func PrintLeaderChanges(ctx context.Context, streams *cli.Streams, client *framework.Client, path, verb string,
	former framework.SessionID) (stop func()) {
	if !terminal.Is(streams.Err) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() {
		followLeaders(ctx, client, path, verb, former, func(text string) { streams.PrintNotice("%s", text) })
	})
	return func() {
		cancel()
		following.Wait()
	}
}

// followLeaders calls say with who leads, unless this process does. former is the session with
// which this process has led before, or 0: its nodes stay until the servers end it.
func followLeaders(ctx context.Context, client *framework.Client, path, verb string, former framework.SessionID,
	say func(string)) {
	var token int64
	said := false
	for leader, err := range election.New(client, path).Follow(ctx) {
		switch {
		case err != nil:
			return // the campaign reports the error
		case leader == nil:
			if said {
				say("standing by; nobody leads at present")
			}
			said, token = false, 0
			continue
		case leader.Token == token:
			continue
		case leader.Session == former:
			said, token = true, leader.Token
			say("standing by; nobody leads before the servers have ended the former session of this process")
			continue
		case client.Status().SessionID == leader.Session:
			continue
		}
		said, token = true, leader.Token
		text := fmt.Sprintf("standing by; %s %s", cli.QuoteName(leader.ID), verb)
		if !leader.Since.IsZero() {
			text += " since " + cli.FormatTime(leader.Since)
		}
		say(text)
	}
}

// WaitingText says what a process waits for: how many are before it, and who holds the lock, if
// that can be found out quickly.
func WaitingText(ctx context.Context, client *framework.Client, path string, ahead int) string {
	text := fmt.Sprintf("waiting for %s, %d ahead", path, ahead)
	if ahead == 0 {
		text = fmt.Sprintf("waiting for %s, first in line", path)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r, err := locks.Inspect(ctx, client, path)
	if err != nil || len(r.Holders) == 0 {
		return text
	}
	return text + "; the holder " + HoldersText(r)
}

// HoldersText says who has a lock. The nodes of locks tell when their holders asked, and those of a
// semaphore when they were granted.
func HoldersText(r locks.Report) string {
	since := "asked for it at"
	if r.Kind == locks.SemaphoreLock {
		since = "has had it since"
	}
	text := fmt.Sprintf("%s %s %s", cli.OwnerName(r.Holders[0]), since, cli.FormatTime(r.Holders[0].Since))
	if r.Holders[0].Revoked {
		text += " and was asked to let go"
	}
	if more := len(r.Holders) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

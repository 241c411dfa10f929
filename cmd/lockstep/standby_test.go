package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestStandbysSayWhoLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		a, b := srv.Member(t, "a", framework.Config{}).Client, srv.Member(t, "b", framework.Config{}).Client
		var said []string
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			followLeaders(ctx, b, "/e", "leads", 0, func(text string) { said = append(said, text) })
		}()
		time.Sleep(10*time.Hour + 2*time.Minute)
		term, err := election.New(a, "/e", election.WithID("web-2\x1b[2J")).Campaign(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		at := time.Now().Local().Format(time.DateTime)
		require.NoError(t, term.Resign(t.Context()))
		synctest.Wait()
		own, err := election.New(b, "/e").Campaign(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.NoError(t, own.Resign(t.Context()))
		time.Sleep(time.Second)
		cancel()
		<-done
		require.Equal(t, []string{
			`standing by; "web-2\x1b[2J" leads since ` + at, "standing by; nobody leads at present",
		}, said)
	})
}

// TestAFormerSessionOfTheProcessIsNotCalledTheLeader: the servers may learn only at its timeout
// that the session has ended. Here another client has it.
func TestAFormerSessionOfTheProcessIsNotCalledTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		former, b := srv.Member(t, "former", framework.Config{}).Client, srv.Member(t, "b", framework.Config{}).Client
		term, err := election.New(former, "/e").Campaign(t.Context())
		require.NoError(t, err)
		var said []string
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			followLeaders(ctx, b, "/e", "leads", term.Session(), func(text string) { said = append(said, text) })
		}()
		time.Sleep(time.Second)
		require.NoError(t, term.Resign(t.Context()))
		time.Sleep(time.Second)
		cancel()
		<-done
		require.Equal(t, []string{
			"standing by; nobody leads before the servers have ended the former session of this process",
			"standing by; nobody leads at present"}, said)
	})
}

func TestWaitersSayWhoHoldsTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		a := srv.Member(t, "web-2", framework.Config{}).Client
		require.Equal(t, "waiting for /l, 1 ahead", waitingText(t.Context(), a, "/l", 1))
		_, err := locks.NewMutex(a, "/l").Lock(t.Context())
		require.NoError(t, err)
		since := time.Now().Local()
		require.Equal(t, "waiting for /l, 1 ahead; the holder web-2 asked for it at "+since.Format(time.DateTime),
			waitingText(t.Context(), a, "/l", 1))
		_, err = locks.NewSemaphore(a, "/s", 1).Lock(t.Context())
		require.NoError(t, err)
		require.Equal(t, "waiting for /s, first in line; the holder web-2 has had it since "+
			time.Now().Local().Format(time.DateTime), waitingText(t.Context(), a, "/s", 0))
	})
}

// TestTimesAndAges: each has one spelling.
func TestTimesAndAges(t *testing.T) {
	now := time.Date(2026, 11, 26, 17, 4, 5, 0, time.Local)
	for ago, want := range map[time.Duration]string{
		-time.Minute: "just now", 999 * time.Millisecond: "just now", 7*time.Second + 936*time.Millisecond: "7s ago",
		366 * time.Second:             "6m06s ago",
		26*time.Hour + 59*time.Minute: "1d02h ago",
	} {
		require.Equal(t, want, formatSince(now.Add(-ago), now))
	}
	require.Empty(t, formatSince(time.Time{}, now))
	require.Empty(t, formatTime(time.Time{}))
	require.Equal(t, "2026-11-26 17:04:05", formatTime(now))
}

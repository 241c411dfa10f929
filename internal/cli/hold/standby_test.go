package hold

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
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

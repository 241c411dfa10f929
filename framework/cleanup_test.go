package framework_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// TestCloseWaitsAfterTheEndOfItsContext, so that a program that a signal ends leaves no session.
func TestCloseWaitsAfterTheEndOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m := zk.Member(t, "a", config)
		m.Link.Delay(10 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, m.Close(ctx))
		require.Empty(t, zk.Sessions())
	})
}

func TestCloseEndsAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		cfg := config
		cfg.CleanupTimeout = time.Second
		m := zk.Member(t, "a", cfg)
		m.Link.BlackHole(true, true)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		err := m.Close(ctx)
		require.ErrorIs(t, err, framework.ErrUnconfirmed)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "1s")
		require.Equal(t, time.Second, time.Since(began))
		for errors.Is(m.Close(t.Context()), context.DeadlineExceeded) { // it goes on in the background
			synctest.Wait()
		}
	})
}

// TestCloseTellsThatTheSessionIsLeft: no server gets the close.
func TestCloseTellsThatTheSessionIsLeft(t *testing.T) {
	for name, down := range map[string]func(l *zktest.Link){
		"no connection": func(l *zktest.Link) { l.Cut() },
		"no answers":    func(l *zktest.Link) { l.BlackHole(false, true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zk := zktest.Start(t)
				m := zk.Member(t, "a", config)
				down(m.Link)
				err := m.Close(t.Context())
				require.ErrorIs(t, err, framework.ErrUnconfirmed)
				require.ErrorContains(t, err, "no server has closed session")
				require.Len(t, zk.Sessions(), 1)
				require.ErrorIs(t, m.Close(t.Context()), framework.ErrUnconfirmed)
			})
		})
	}
}

func TestTimeOfACleanup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t, zktest.WithSessionTimeouts(4*time.Second, 12*time.Second))
		whole := zk.Member(t, "whole", framework.Config{SessionTimeout: 12 * time.Second})
		less := zk.Member(t, "less", framework.Config{SessionTimeout: 30 * time.Second}) // the servers grant 12 s
		short := zk.Member(t, "short", framework.Config{SessionTimeout: 12 * time.Second, CleanupTimeout: time.Second})
		type key struct{}
		caller := context.WithValue(t.Context(), key{}, "value")
		ended, end := context.WithCancel(caller)
		end()
		soon, cancel := context.WithTimeout(caller, 100*time.Millisecond)
		defer cancel()
		late, cancelLate := context.WithTimeout(caller, time.Hour)
		defer cancelLate()
		over, cancelOver := context.WithDeadline(caller, time.Now().Add(-time.Second))
		defer cancelOver()
		for _, c := range []struct {
			client *zktest.Member
			ctx    context.Context
			lasts  time.Duration
		}{
			{whole, caller, 4 * time.Second}, {whole, ended, 4 * time.Second},
			{whole, late, 4 * time.Second}, {whole, over, 4 * time.Second},
			{whole, soon, 100 * time.Millisecond}, {less, ended, 4 * time.Second}, {short, ended, time.Second},
		} {
			cleanup, cancel := c.client.CleanupContext(c.ctx)
			require.NoError(t, cleanup.Err())
			require.Equal(t, "value", cleanup.Value(key{}))
			deadline, _ := cleanup.Deadline()
			require.Equal(t, c.lasts, time.Until(deadline))
			cancel()
		}
	})
}

func TestCleanupTimeoutIsAtMostAThirdOfTheSessionTimeout(t *testing.T) {
	servers := []string{"zk"}
	require.NoError(t, framework.Config{Servers: servers, CleanupTimeout: 10 * time.Second}.Validate())
	err := framework.Config{Servers: servers, CleanupTimeout: 10*time.Second + 1}.Validate()
	require.ErrorIs(t, err, framework.ErrInvalid)
	require.ErrorContains(t, err, "at most 10s")
	half := framework.Config{Servers: servers, SessionTimeout: 6 * time.Second, CleanupTimeout: 3 * time.Second}
	require.ErrorIs(t, half.Validate(), framework.ErrInvalid)
	require.ErrorIs(t, framework.Config{Servers: servers, CleanupTimeout: -1}.Validate(), framework.ErrInvalid)
}

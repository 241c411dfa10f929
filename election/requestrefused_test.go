package election_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
)

// TestRefusedRequestForATransferFails: the servers let a program read the election and create no
// nodes there.
func TestRefusedRequestForATransferFails(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		open := append(framework.CreatorOnlyACL(),
			framework.ACL{Perms: framework.PermRead, Scheme: "world", ID: "anyone"})
		owner := config
		owner.Auth = []framework.Credential{{Scheme: "digest", Auth: []byte("a:secret")}}
		owner.ACL, owner.ParentACL = open, open
		a, b := w.Member(w.t, "a", owner), w.Member(w.t, "b", owner)
		term, err := election.New(a.Client, path).Campaign(t.Context())
		require.NoError(t, err)
		next := campaign(t, election.New(b.Client, path, election.WithMetadata(map[string]string{"k": "v"})))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, w.member("stranger").RequestTransfer(ctx, "b"), framework.ErrNoAuth)
		require.NoError(t, term.Err())
		require.NoError(t, term.Resign(t.Context()))
		require.NoError(t, got(t, next).Resign(t.Context()))
	})
}

// TestRequestForATransferEndsThoughItsNodeStays: the servers let the program create nodes below
// ~waiting, and delete none.
func TestRequestForATransferEndsThoughItsNodeStays(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		term := w.member("a").lead(t)
		resignAtEnd(term)
		withoutDelete := config
		withoutDelete.ParentACL = []framework.ACL{{Perms: framework.PermAll &^ framework.PermDelete, Scheme: "world",
			ID: "anyone"}}
		require.NoError(t, w.Member(w.t, "owner", withoutDelete).MakeDirs(t.Context(), path+"~waiting"))
		won := campaign(t, w.member("b").Election)
		operator := w.member("operator")
		began := time.Now()
		result := make(chan error, 1)
		go func() { result <- operator.RequestTransfer(t.Context(), "b") }()
		require.NoError(t, got(t, result))
		require.LessOrEqual(t, time.Since(began), timeout/3+time.Second)
		require.Len(t, w.Children(path+"~waiting"), 1)
		require.NoError(t, operator.client.Close(t.Context()))
		time.Sleep(timeout)
		require.Empty(t, w.Children(path+"~waiting"), "the session has ended")
		require.NoError(t, got(t, won).Resign(t.Context()))
	})
}

// TestRequestForATransferEndsWhileDisconnected: its node is deleted in the background.
func TestRequestForATransferEndsWhileDisconnected(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		term := w.member("a").lead(t)
		won := campaign(t, w.member("b").Election)
		operator := w.member("operator")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		result := make(chan error, 1)
		go func() { result <- operator.RequestTransfer(ctx, "b") }()
		synctest.Wait()
		require.Len(t, w.Children(path+"~waiting"), 1)
		require.ErrorIs(t, term.Err(), election.ErrTransferred, "its place is kept until Resign")
		operator.link.Cut()
		require.ErrorIs(t, got(t, result), context.DeadlineExceeded)
		deadline, _ := ctx.Deadline()
		require.LessOrEqual(t, time.Since(deadline), timeout/3)
		operator.link.Heal()
		time.Sleep(2 * timeout)
		require.Empty(t, w.Children(path+"~waiting"))
		require.NoError(t, term.Resign(t.Context()))
		require.NoError(t, got(t, won).Resign(t.Context()))
	})
}

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

// TestRefusedRequestForATransferFails: the servers let a program read the election and create no nodes there.
func TestRefusedRequestForATransferFails(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		open := append(framework.CreatorOnly(), framework.ACL{Perms: framework.PermRead, Scheme: "world", ID: "anyone"})
		owner := config
		owner.Auth = []framework.Credential{{Scheme: "digest", Auth: []byte("a:secret")}}
		owner.ACL, owner.ParentACL = open, open
		a, b := w.Member(w.t, "a", owner), w.Member(w.t, "b", owner)
		term, err := election.New(a.Client, path).Campaign(t.Context())
		require.NoError(t, err)
		next := campaign(t, election.New(b.Client, path, election.WithMetadata(election.Metadata{"k": "v"})))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, w.member("stranger").RequestTransfer(ctx, "b"), framework.ErrNoAuth)
		require.NoError(t, term.Err())
		require.NoError(t, term.Resign(t.Context()))
		require.NoError(t, got(t, next).Resign(t.Context()))
	})
}

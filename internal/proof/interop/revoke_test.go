package interop

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
)

// TestLockstepRevokesCuratorLock checks that Curator's listener is called.
func TestLockstepRevokesCuratorLock(t *testing.T) {
	for _, r := range []role{exclusive[0], writer, reader} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s := newTestPath(t, r)
			c := newPeerContender(t, curator.get(t), r.curator, r.paths(s.path))
			_, err := c.do(s.ctx, "revocable")
			require.NoError(t, err)
			s.mustLock(c)
			revocation := s.startWaiter(revoked{c}, forever) // it watches its own node
			s.requireStillWaiting(revocation)
			require.NoError(t, locks.Revoke(s.ctx, s.client, s.awaitContenders(1)[0].path))
			require.True(t, s.awaitGrant(revocation))
			s.release(c)
			s.awaitNoNodes()
		})
	}
}

// revoked is a contender that waits for a revocation of its lock.
type revoked struct{ peerContender }

func (r revoked) lock(ctx context.Context, _ time.Duration) (bool, error) {
	_, err := r.do(ctx, "revoked")
	return err == nil, err
}

// TestCuratorRevokesLockstepLease checks that the lease reports the revocation, and does not end. A
// report shows the holder still.
func TestCuratorRevokesLockstepLease(t *testing.T) {
	for _, r := range []role{exclusive[0], writer, reader} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s := newTestPath(t, r)
			o := lockstepLibrary.newContender(t, r, s.path).(*lockstepContender)
			s.mustLock(o)
			select {
			case <-o.lease.Revoked():
				require.Fail(t, "no revocation was reported")
			default:
			}
			c := newPeerContender(t, curator.get(t), r.curator, r.paths(s.path))
			_, err := c.peer.Do(s.ctx, Command{Do: "revoke", Client: c.lockIn.Client, Node: o.lease.Node()})
			require.NoError(t, err)
			select {
			case <-o.lease.Revoked():
			case <-s.ctx.Done():
				require.Fail(t, "the lease does not report the revocation")
			}
			require.NoError(t, o.lease.Err())
			s.eventually("a record that the holder has written back", func() bool {
				report, err := locks.Inspect(s.ctx, s.client, s.path)
				require.NoError(t, err)
				require.Len(t, report.Holders, 1)
				require.True(t, report.Holders[0].Revoked)
				return report.Holders[0].Owner != ""
			})
			s.release(o)
			s.awaitNoNodes()
		})
	}
}

package interop

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/locks"
)

// TestWeRevokeCurators lock: its listener hears of it.
func TestWeRevokeCurators(t *testing.T) {
	for _, r := range []role{exclusive[0], writer, reader} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, r)
			c := enterTheirs(t, curator.get(t), r.curator, r.paths(s.path))
			_, err := c.do(s.ctx, "revocable")
			require.NoError(t, err)
			s.hold(c)
			heard := s.queue(revoked{c}, forever) // it watches its own node
			s.waits(heard)
			require.NoError(t, locks.Revoke(s.ctx, s.client, s.stand(1)[0].path))
			require.True(t, s.told(heard))
			s.release(c)
			s.empty()
		})
	}
}

// revoked is a contender that waits for its lock to be asked back.
type revoked struct{ theirs }

func (r revoked) lock(ctx context.Context, _ time.Duration) (bool, error) {
	_, err := r.do(ctx, "revoked")
	return err == nil, err
}

// TestCuratorRevokesOurs: the lease tells of it, and stands.
func TestCuratorRevokesOurs(t *testing.T) {
	for _, r := range []role{exclusive[0], writer, reader} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, r)
			o := weTeam.enter(t, r, s.path).(*own)
			s.hold(o)
			select {
			case <-o.lease.Revoked():
				require.Fail(t, "nobody has asked")
			default:
			}
			c := enterTheirs(t, curator.get(t), r.curator, r.paths(s.path))
			_, err := c.peer.Do(s.ctx, Command{Do: "revoke", Client: c.lockIn.Client, Node: o.lease.Node()})
			require.NoError(t, err)
			select {
			case <-o.lease.Revoked():
			case <-s.ctx.Done():
				require.Fail(t, "never told")
			}
			require.NoError(t, o.lease.Err())
			s.release(o)
			s.empty()
		})
	}
}

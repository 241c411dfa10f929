package framework_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/primitives"
	"github.com/lockstep-go/lockstep/zktest"
)

const bound = 1000 // bytes

// bounded returns a client whose session may own few paths. The directory /d is there.
func bounded(t *testing.T, zk *zktest.Server) (*zktest.Member, *framework.Session) {
	cfg := config
	cfg.MaxEphemeralBytes = bound
	m := zk.Member(t, "bounded", cfg)
	s := session(t, m)
	require.NoError(t, s.MakeDirs(t.Context(), "/d"))
	return m, s
}

// ownedOnServer is what a server would have to name to close the session.
func ownedOnServer(zk *zktest.Server, s *framework.Session) (bytes int) {
	for _, name := range zk.Children("/d") {
		if n, there := zk.Node("/d/" + name); there && n.Stat.EphemeralOwner == s.ID() {
			bytes += len("/d/"+name) + 4
		}
	}
	return bytes
}

// TestASessionOwnsNoMoreThanItsBound creates nodes in each way until that is refused.
func TestASessionOwnsNoMoreThanItsBound(t *testing.T) {
	type creation func(ctx context.Context, s *framework.Session, i int) (created []string, err error)
	for name, create := range map[string]creation{
		"create": func(ctx context.Context, s *framework.Session, i int) ([]string, error) {
			path := fmt.Sprint("/d/", i)
			return []string{path}, s.Create(ctx, path, nil, framework.Ephemeral)
		},
		"create if missing": func(ctx context.Context, s *framework.Session, i int) ([]string, error) {
			path := fmt.Sprint("/d/", i)
			return []string{path}, s.CreateIfMissing(ctx, path, nil, framework.Ephemeral)
		},
		"protected": func(ctx context.Context, s *framework.Session, _ int) ([]string, error) {
			c, err := createProtected(ctx, s, "/d", "lock-", nil)
			return []string{c.Path}, err
		},
		"together": func(ctx context.Context, s *framework.Session, i int) ([]string, error) {
			fence := fmt.Sprint("/d/", i)
			cs, err := createTogether(ctx, s, primitives.ProtectedCreate{Dir: "/d", Name: "permit-", Count: 2,
				With: []framework.Op{framework.CreateOp(fence, nil, framework.Ephemeral)}})
			if err != nil {
				return nil, err
			}
			return []string{cs[0].Path, cs[1].Path, fence}, nil
		},
		"transaction": func(ctx context.Context, s *framework.Session, i int) ([]string, error) {
			rs, err := s.Multi(ctx, framework.CreateOp("/d/n-", nil, framework.EphemeralSequential),
				framework.CreateOp(fmt.Sprint("/d/", i), nil, framework.Ephemeral))
			if err != nil {
				return nil, err
			}
			return []string{rs[0].Path, rs[1].Path}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, zk := t.Context(), zktest.Start(t)
				_, s := bounded(t, zk)
				var all [][]string
				for i := 0; ; i++ {
					created, err := create(ctx, s, i)
					require.Equal(t, ownedOnServer(zk, s), framework.OwnedBytes(s))
					require.LessOrEqual(t, ownedOnServer(zk, s), bound)
					if err != nil {
						require.ErrorIs(t, err, framework.ErrTooLarge)
						require.ErrorContains(t, err, fmt.Sprintf("have %d bytes", framework.OwnedBytes(s)))
						require.ErrorContains(t, err, "the bound of 1000")
						break
					}
					all = append(all, created)
				}
				require.Greater(t, len(all), 3)
				_, err := s.Multi(ctx, framework.CreateOp("/d/persistent", nil, framework.Persistent))
				require.NoError(t, err, "what does not go with the session is not counted")

				require.NoError(t, s.Delete(ctx, all[0][0], framework.AnyVersion))
				<-primitives.Of(s).Discard(nil, all[1][0], all[1][1:]...).Done()
				_, err = s.Multi(ctx, framework.DeleteOp(all[2][0], framework.AnyVersion))
				require.NoError(t, err)
				require.Equal(t, ownedOnServer(zk, s), framework.OwnedBytes(s))
				_, err = create(ctx, s, 1000)
				require.NoError(t, err, "there is room again")
			})
		})
	}
}

// TestRefusedCreateDoesNotCountNodes has creates that the servers refuse.
func TestRefusedCreateDoesNotCountNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		_, s := bounded(t, zk)
		require.NoError(t, s.Create(ctx, "/d/n", nil, framework.Ephemeral))
		sum := framework.OwnedBytes(s)
		require.ErrorIs(t, s.Create(ctx, "/d/n", nil, framework.Ephemeral), framework.ErrNodeExists)
		require.NoError(t, s.CreateIfMissing(ctx, "/d/n", nil, framework.Ephemeral))
		_, err := s.Multi(ctx, framework.CreateOp("/d/m", nil, framework.Ephemeral), framework.CheckOp("/d", 77))
		require.ErrorIs(t, err, framework.ErrBadVersion)
		_, err = createTogether(ctx, s, primitives.ProtectedCreate{Dir: "/d", Name: "n", Count: 1,
			With: []framework.Op{framework.CheckOp("/d", 77)}})
		require.ErrorIs(t, err, framework.ErrBadVersion)
		require.Equal(t, sum, framework.OwnedBytes(s))
	})
}

// TestASwapAtTheBoundIsLetThrough replaces a node by another in one transaction.
func TestASwapAtTheBoundIsLetThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		_, s := bounded(t, zk)
		i := 0
		for ; s.Create(ctx, fmt.Sprintf("/d/%03d", i), nil, framework.Ephemeral) == nil; i++ {
		}
		swap := func(old, new string) error {
			_, err := s.Multi(ctx, framework.DeleteOp(old, framework.AnyVersion),
				framework.CreateOp(new, nil, framework.Ephemeral))
			return err
		}
		require.NoError(t, swap("/d/000", "/d/new"))
		require.NoError(t, s.Create(ctx, "/d/persistent", nil, framework.Persistent))
		require.ErrorIs(t, swap("/d/persistent", "/d/persisten2"), framework.ErrTooLarge,
			"that one was not the session's")
		require.Equal(t, ownedOnServer(zk, s), framework.OwnedBytes(s))
	})
}

// TestDeletionByOthersFreesEphemeralBytes deletes a session's nodes from outside.
func TestDeletionByOthersFreesEphemeralBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		_, s := bounded(t, zk)
		operator := session(t, zk.Member(t, "operator", config))
		for round := range 3 {
			i := 0
			for ; ; i++ {
				err := s.Create(ctx, fmt.Sprint("/d/", round, "-", i), nil, framework.Ephemeral)
				if err != nil {
					require.ErrorIs(t, err, framework.ErrTooLarge)
					break
				}
			}
			require.Greater(t, i, 50, "round %d", round)
			for _, name := range zk.Children("/d") {
				require.NoError(t, operator.Delete(ctx, "/d/"+name, framework.AnyVersion))
			}
			time.Sleep(timeout)
		}
	})
}

// TestTheServersAreAskedSeldom goes on asking for more than the bound.
func TestTheServersAreAskedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, zk := t.Context(), zktest.Start(t)
		_, s := bounded(t, zk)
		questions := 0
		zk.Observe(func(r zktest.Request) {
			if r.Op.String() == "getEphemerals" {
				questions++
			}
		})
		var asks sync.WaitGroup
		for range 200 {
			asks.Go(func() {
				for range 10 {
					_, _ = createProtected(ctx, s, "/d", "lock-", nil)
				}
			})
		}
		asks.Wait()
		require.Equal(t, 1, questions)
		require.LessOrEqual(t, ownedOnServer(zk, s), bound)
	})
}

// TestTheBoundHoldsWhenAnswersAreLost has many creates at once on a link that breaks all the time,
// and callers that give up.
func TestTheBoundHoldsWhenAnswersAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		m, s := bounded(t, zk)
		m.Link.Delay(5 * time.Millisecond)
		var work sync.WaitGroup
		for i := range 40 {
			work.Go(func() {
				for j := range 20 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*j%50)*time.Millisecond)
					var err error
					var path string
					switch i % 3 {
					case 0:
						var c primitives.Created
						c, err = createProtected(ctx, s, "/d", "lock-", nil)
						path = c.Path
					case 1:
						path = fmt.Sprintf("/d/%d-%d", i, j)
						err = s.Create(ctx, path, nil, framework.Ephemeral)
					case 2:
						var rs []framework.OpResult
						if rs, err = s.Multi(ctx,
							framework.CreateOp("/d/n-", nil, framework.EphemeralSequential)); err == nil {
							path = rs[0].Path
						}
					}
					cancel()
					if err == nil && j%2 == 0 {
						_ = s.Delete(t.Context(), path, framework.AnyVersion)
					}
				}
			})
		}
		for i := range 600 {
			time.Sleep(time.Millisecond)
			require.LessOrEqual(t, ownedOnServer(zk, s), bound)
			if i%20 == 0 {
				m.Link.Reset()
			}
		}
		work.Wait()
		time.Sleep(time.Minute)
		require.NoError(t, s.Err())
		require.GreaterOrEqual(t, framework.OwnedBytes(s), ownedOnServer(zk, s))
		for s.Create(t.Context(), "/d/"+fmt.Sprint(time.Now().UnixNano()), nil, framework.Ephemeral) == nil {
			// the servers are asked at the bound
			time.Sleep(timeout)
		}
		require.Equal(t, ownedOnServer(zk, s), framework.OwnedBytes(s))
	})
}

// TestCreatesUnderWayAreCounted asks for many nodes at once before the first answer arrives.
func TestCreatesUnderWayAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zk := zktest.Start(t)
		_, s := bounded(t, zk)
		zk.DelayReplies(time.Second, zktest.Match{Op: zktest.OpCreate})
		var creates sync.WaitGroup
		for i := range 300 {
			creates.Go(func() { _ = s.Create(t.Context(), fmt.Sprintf("/d/%03d", i), nil, framework.Ephemeral) })
		}
		creates.Wait()
		require.LessOrEqual(t, ownedOnServer(zk, s), bound)
		require.Greater(t, ownedOnServer(zk, s), bound*9/10)
	})
}

// TestCreatesOfAnUnknownOutcomeAreCounted gives up each create while its answer is under way.
func TestCreatesOfAnUnknownOutcomeAreCounted(t *testing.T) {
	for name, op := range map[string]func(i int) framework.Op{
		"of a known name": func(i int) framework.Op {
			return framework.CreateOp(fmt.Sprintf("/d/%03d", i), nil, framework.Ephemeral)
		},
		"of a number": func(int) framework.Op {
			return framework.CreateOp("/d/n-", nil,
				framework.EphemeralSequential)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zk := zktest.Start(t)
				m, s := bounded(t, zk)
				m.Link.Delay(5 * time.Millisecond)
				unknown := 0
				for i := range 300 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					_, err := s.Multi(ctx, op(i))
					cancel()
					require.Error(t, err)
					if errors.Is(err, framework.ErrOutcomeUnknown) {
						unknown++
					}
				}
				time.Sleep(time.Second)
				require.Positive(t, unknown)
				require.LessOrEqual(t, ownedOnServer(zk, s), bound)
				require.Greater(t, ownedOnServer(zk, s), bound*9/10)
			})
		})
	}
}

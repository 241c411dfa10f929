package config_test

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

// settings is a configuration of many keys.
type settings struct {
	X, Y    int
	Name    string `json:"label"`
	MaxRate float64
	On      bool
	Wait    time.Duration
	Hosts   []netip.Addr
	DB      struct {
		Pool *pool
	}
	Shards map[string]pool
	Common
	Small  int8
	Hidden int `json:"-"`
}

// Common are settings of all applications.
type Common struct{ Level uint8 }

type pool struct{ Max, Min int }

var treeDirs = config.SpringContexts("/config", "billing", "prod")

// writeKeys writes keys in one transaction, as paths below /config; those without a value are
// deleted.
func (w *world) writeKeys(keys map[string]string) {
	w.t.Helper()
	ctx := w.t.Context()
	var ops []framework.Op
	for key, value := range keys {
		node := "/config/" + key
		_, exists := w.Node(node)
		switch {
		case value == "":
			ops = append(ops, framework.DeleteOp(node, framework.AnyVersion))
		case exists:
			ops = append(ops, framework.SetOp(node, []byte(value), framework.AnyVersion))
		default:
			require.NoError(w.t, w.b.MakeDirs(ctx, node[:strings.LastIndexByte(node, '/')]))
			ops = append(ops, framework.CreateOp(node, []byte(value), framework.Persistent))
		}
	}
	_, err := w.b.Multi(ctx, ops...)
	require.NoError(w.t, err)
}

func (w *world) tree(m *zktest.Member, opts ...config.Option[settings]) *config.Tree[settings] {
	w.t.Helper()
	tree := config.NewTree(m.Client, treeDirs, opts...)
	require.NoError(w.t, tree.Validate())
	return tree
}

func (w *world) runTree(tree *config.Tree[settings]) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- tree.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		require.NoError(w.t, <-done)
	})
	synctest.Wait()
}

func TestSpringsDirectories(t *testing.T) {
	require.Equal(t, []string{"/config/billing,prod", "/config/billing", "/config/application,prod",
		"/config/application"}, treeDirs)
	require.Equal(t, []string{"/c/a,two", "/c/a,one", "/c/a", "/c/application,two", "/c/application,one",
		"/c/application"}, config.SpringContexts("/c", "a", "one", "two"))
}

func TestATreesKeysAreFields(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		fallback := settings{X: 7, Name: "default", Shards: map[string]pool{"b": {Min: 1}, "c": {Min: 2}}}
		fallback.DB.Pool = &pool{Max: 3, Min: 2}
		w.writeKeys(map[string]string{
			"application/x": "1", "application/label": "all", "application/y": "2", "billing/y": "3",
			"billing,prod/label": "mine",
			"billing/max-rate":   "1.5", "billing/ON": "true", "billing/wait": "1m30s",
			"billing/hosts":       "10.0.0.1, ::1",
			"billing/db/pool/max": "9", "billing/shards.b.max": "4", "billing/shards/eu-1/min": "5",
			"billing/unknown": "?", "billing/hidden": "1", "billing/level": "6", "application/empty/small": "8",
		})
		tree := w.tree(w.a, config.WithDefault(fallback))
		require.Equal(t, fallback, tree.Get())
		s, err := tree.Load(t.Context())
		require.NoError(t, err)
		want := settings{X: 1, Y: 3, Name: "mine", MaxRate: 1.5, On: true, Common: Common{Level: 6},
			Wait: 90 * time.Second, Hosts: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.IPv6Loopback()},
			Shards: map[string]pool{"b": {Max: 4, Min: 1}, "c": {Min: 2}, "eu-1": {Min: 5}}}
		want.DB.Pool = &pool{Max: 9, Min: 2}
		require.Equal(t, want, s.Value)
		require.Equal(t, config.FromServers, s.Source)
		require.Equal(t, &pool{Max: 3, Min: 2}, fallback.DB.Pool, "the default stays as it was")
		require.Len(t, fallback.Shards, 2)
		require.Equal(t, pool{Min: 1}, fallback.Shards["b"])
	})
}

// TestAKeyChangesNoOtherValue: what UnmarshalText of a big.Int writes to is shared by copies. A key
// must change neither the default nor a value that was shown before.
func TestAKeyChangesNoOtherValue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		type settings struct{ Limit big.Int }
		var byDefault settings
		byDefault.Limit.SetString("1000000000000000000000", 10)
		dir := "/config/billing"
		require.NoError(t, w.a.MakeDirs(t.Context(), dir))
		require.NoError(t, w.a.Create(t.Context(), dir+"/limit", []byte("5"), framework.Persistent))
		tree := config.NewTree(w.b.Client, []string{dir}, config.WithDefault(byDefault))
		first, err := tree.Load(t.Context())
		require.NoError(t, err)
		_, err = w.a.Set(t.Context(), dir+"/limit", []byte("7"), framework.AnyVersion)
		require.NoError(t, err)
		second, err := tree.Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, "5", first.Value.Limit.String())
		require.Equal(t, "7", second.Value.Limit.String())
		require.Equal(t, "1000000000000000000000", byDefault.Limit.String())
	})
}

func TestATreeThatCannotBeDecodedIsRefused(t *testing.T) {
	for _, key := range []string{"x=one", "small=128", "on=perhaps", "wait=5", "hosts=10.0.0.1,no", "db.pool.max=1.5",
		"shards.a.max=x", "level=256"} {
		t.Run(key, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.writeKeys(map[string]string{"billing/x": "1"})
				tree := w.tree(w.a)
				w.runTree(tree)
				good := tree.Get()
				require.Equal(t, 1, good.X)
				name, value, _ := strings.Cut(key, "=")
				w.writeKeys(map[string]string{"billing,prod/" + name: value})
				synctest.Wait()
				require.ErrorIs(t, tree.Refused(), framework.ErrBadValue)
				require.Equal(t, good, tree.Get())
				w.writeKeys(map[string]string{"billing,prod/" + name: "", "billing/x": "2"})
				synctest.Wait()
				require.Equal(t, 2, tree.Get().X)
				w.writeKeys(map[string]string{"billing/m-x": "1", "billing/MX": "2", "billing/max-rate": "1",
					"billing/maxRate": "2"})
				synctest.Wait()
				require.ErrorContains(t, tree.Refused(), "two keys for MaxRate")
			})
		})
	}
}

// TestTheFirstDirectoryCountsWhateverTheStyle: directories name one field in different styles, as
// Spring allows.
func TestTheFirstDirectoryCountsWhateverTheStyle(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.writeKeys(map[string]string{
			"application/max-rate": "1", "billing/maxRate": "2", "billing,prod/MAX_RATE": "3",
			"application/DB/Pool/max": "4", "billing/db/pool/min": "5", "billing/db.pool.MAX": "6",
			"application/LEVEL": "7", "billing/level": "8",
			"application/SHARDS/eu-1/min": "1", "application/shards.EU_1.min": "2", "billing/Shards.eu-1.MIN": "3",
		})
		s, err := w.tree(w.a).Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3.0, s.Value.MaxRate)
		require.Equal(t, &pool{Max: 6, Min: 5}, s.Value.DB.Pool)
		require.Equal(t, uint8(8), s.Value.Level)
		require.Equal(t, map[string]pool{"eu-1": {Min: 3}, "EU_1": {Min: 2}}, s.Value.Shards,
			"entries are named exactly")
		w.writeKeys(map[string]string{"billing,prod/MAX_RATE": "", "billing/db.pool.MAX": ""})
		s, err = w.tree(w.a).Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2.0, s.Value.MaxRate)
		require.Equal(t, &pool{Max: 4, Min: 5}, s.Value.DB.Pool)
	})
}

func TestATreeFollowsKeysThatComeAndGo(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		tree := w.tree(w.a, config.WithDefault(settings{X: 7}),
			config.WithFile[settings](filepath.Join(t.TempDir(), "tree")))
		w.runTree(tree)
		require.Equal(t, config.FromDefault, tree.Current().Source)
		version := int64(0)
		shows := func(x int) {
			t.Helper()
			time.Sleep(2 * time.Second)
			require.Equal(t, x, tree.Get().X)
			loaded, err := w.tree(w.b, config.WithDefault(settings{X: 7})).Load(t.Context())
			require.NoError(t, err)
			require.Equal(t, x, loaded.Value.X)
			if x != 7 {
				require.Greater(t, tree.Current().Version, version)
				version = tree.Current().Version
			}
		}
		w.writeKeys(map[string]string{"application/x": "1"})
		shows(1)
		w.writeKeys(map[string]string{"billing/x": "2"})
		shows(2)
		w.a.Link.Cut()
		w.writeKeys(map[string]string{"billing/x": ""})
		w.writeKeys(map[string]string{"billing/x": "3"}) // version 0 again
		w.a.Link.Heal()
		time.Sleep(timeout)
		shows(3)
		// Both go at once: a reader that saw the empty directory first would keep the version that
		// it had then.
		_, err := w.b.Multi(t.Context(), framework.DeleteOp("/config/billing/x", framework.AnyVersion),
			framework.DeleteOp("/config/billing", framework.AnyVersion))
		require.NoError(t, err)
		shows(1)
		for _, node := range []string{"/config/application/x", "/config/application", "/config"} {
			require.NoError(t, w.b.Delete(t.Context(), node, framework.AnyVersion))
		}
		shows(7)
		w.writeKeys(map[string]string{"billing/x": "4"})
		w.writeKeys(map[string]string{"billing/x/below": "5"})
		shows(4)
	})
}

// TestATreeGoesBackToWhatItsFollowerShowedLast: Load takes a newer value while the follower, whose
// session is new, waits before it reads. Then the keys become what they were before.
func TestATreeGoesBackToWhatItsFollowerShowedLast(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		tree := w.tree(w.a)
		w.writeKeys(map[string]string{"billing/x": "1"})
		w.runTree(tree)
		for range 10 {
			require.Equal(t, 1, tree.Get().X)
			session, err := w.a.Session(t.Context())
			require.NoError(t, err)
			require.NoError(t, w.Expire(session.ID()))
			<-session.Context().Done()
			w.writeKeys(map[string]string{"billing/x": "2"})
			loaded, err := tree.Load(t.Context())
			require.NoError(t, err)
			require.Equal(t, 2, loaded.Value.X)
			w.writeKeys(map[string]string{"billing/x": "1"})
			time.Sleep(2 * timeout)
		}
		version := tree.Current().Version
		require.NoError(t, w.b.MakeDirs(t.Context(), "/config/billing/db"))
		time.Sleep(2 * timeout)
		require.Equal(t, version, tree.Current().Version, "no key has changed")
	})
}

// TestATreeShowsOneMoment: while another client writes two keys in one transaction again and again,
// and requests of the reader take long, it shows no value in which the keys differ.
func TestATreeShowsOneMoment(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		write := func(n int) {
			w.writeKeys(map[string]string{"billing/x": strconv.Itoa(n), "application/y": strconv.Itoa(n)})
		}
		write(1)
		w.a.Link.Delay(50 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		shown := make(chan int, 1000)
		done := make(chan struct{})
		tree := w.tree(w.a)
		go func() {
			defer close(done)
			for s, err := range tree.Follow(ctx) {
				if err == nil {
					if s.Value.X != s.Value.Y {
						t.Errorf("%d and %d are shown together", s.Value.X, s.Value.Y)
					}
					shown <- s.Value.X
				}
			}
		}()
		last := 1
		for range 30 {
			for range rand.IntN(10) {
				last++
				write(last)
				time.Sleep(rand.N(300 * time.Millisecond))
			}
			time.Sleep(rand.N(3 * time.Second))
		}
		time.Sleep(time.Minute)
		cancel()
		<-done
		require.Equal(t, last, tree.Get().X)
		require.Greater(t, len(shown), 10)
	})
}

func tossed(rng *rand.Rand) bool { return rng.IntN(2) == 0 }

// TestATreeShowsNoOlderMoment, whatever happens to its connection, its session and its server.
func TestATreeShowsNoOlderMoment(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				rng := rand.New(rand.NewPCG(seed, 1))
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				tree := w.tree(w.a)
				go func() {
					defer close(done)
					newest, version := 0, int64(0)
					for s, err := range tree.Follow(ctx) {
						if err != nil {
							t.Errorf("it cannot follow: %v", err)
							return
						}
						if s.Value.X != s.Value.Y || s.Value.X < newest ||
							s.Source == config.FromServers && s.Version <= version {
							t.Errorf("%d and %d of version %d are shown after %d of version %d", s.Value.X, s.Value.Y,
								s.Version, newest, version)
						}
						newest, version = s.Value.X, s.Version
					}
				}()
				last := 0
				for range 200 {
					last++
					w.writeKeys(map[string]string{"billing,prod/x": strconv.Itoa(last),
						"application/y": strconv.Itoa(last)})
					time.Sleep(time.Duration(rng.Int64N(int64(500 * time.Millisecond))))
					switch rng.IntN(12) {
					case 0:
						w.a.Link.Cut()
					case 1:
						w.a.Link.Reset()
					case 2, 3:
						ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
						if s, err := w.a.Session(ctx); err == nil && tossed(rng) {
							_ = w.Expire(s.ID())
						} else if err == nil {
							_, _ = w.Lag(s.ID())
						}
						cancel()
					default:
						w.a.Link.Heal()
					}
				}
				w.a.Link.Heal()
				last++
				w.writeKeys(map[string]string{"billing,prod/x": strconv.Itoa(last),
					"application/y": strconv.Itoa(last)})
				w.a.Link.Reset()
				time.Sleep(time.Minute)
				require.Equal(t, last, tree.Get().X)
				cancel()
				<-done
			})
		})
	}
}

// TestATreeWithAQuietTime shows what a slow writer has written key by key as one change.
func TestATreeWithAQuietTime(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.writeKeys(map[string]string{"billing/x": "1", "billing/y": "1"})
		tree := w.tree(w.a, config.WithQuietTime[settings](time.Second))
		w.runTree(tree)
		time.Sleep(2 * time.Second)
		require.Equal(t, 1, tree.Get().X)
		w.writeKeys(map[string]string{"billing/x": "2"})
		time.Sleep(800 * time.Millisecond)
		require.Equal(t, 1, tree.Get().X)
		w.writeKeys(map[string]string{"billing/y": "2"})
		time.Sleep(800 * time.Millisecond)
		require.Equal(t, 1, tree.Get().X)
		time.Sleep(10 * time.Second)
		require.Equal(t, 2, tree.Get().X)
		require.Equal(t, 2, tree.Get().Y)
	})
}

// TestATreeCostsFewRequests: one that does not change costs none, and a change of one key costs the
// same whatever the number of keys.
func TestATreeCostsFewRequests(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		keys := map[string]string{}
		for i := range 400 {
			keys[fmt.Sprintf("billing/shards/%d/max", i)] = "1"
		}
		w.writeKeys(keys)
		tree := w.tree(w.a)
		w.runTree(tree)
		s, err := w.a.Session(t.Context())
		require.NoError(t, err)
		count := 0
		defer w.Observe(func(q zktest.Request) {
			if q.Session == s.ID() && q.Op != zktest.OpPing {
				count++
			}
		})()
		w.writeKeys(map[string]string{"billing/shards/5/max": "2"})
		synctest.Wait()
		require.Equal(t, 2, tree.Get().Shards["5"].Max)
		require.LessOrEqual(t, count, 6,
			"the node's data and its children, all nodes in two batches, and those once more")
		count = 0
		time.Sleep(time.Hour)
		require.Zero(t, count)
	})
}

// TestATreeTellsOfChangesOnly: nodes that come and go without a change of a key are no change.
func TestATreeTellsOfChangesOnly(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.writeKeys(map[string]string{"billing/x": "1"})
		ctx, cancel := context.WithCancel(t.Context())
		shown := []int{}
		done := make(chan struct{})
		tree := w.tree(w.a, config.WithDefault(settings{}))
		go func() {
			defer close(done)
			for s := range tree.Follow(ctx) {
				shown = append(shown, s.Value.X)
			}
		}()
		synctest.Wait()
		require.NoError(t, w.b.MakeDirs(t.Context(), "/config/billing,prod/db"))
		synctest.Wait()
		w.writeKeys(map[string]string{"billing/x": "1"})
		synctest.Wait()
		w.a.Link.Reset()
		time.Sleep(timeout)
		w.writeKeys(map[string]string{"billing/x": "2"})
		time.Sleep(timeout)
		cancel()
		<-done
		require.Equal(t, []int{0, 1, 2}, shown)
	})
}

func TestATreeReadsBehindASync(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.writeKeys(map[string]string{"billing/x": "1"})
		s, err := w.a.Session(t.Context())
		require.NoError(t, err)
		_, err = w.LagAsLeader(s.ID())
		require.NoError(t, err)
		w.writeKeys(map[string]string{"billing/x": "2"})
		loaded, err := w.tree(w.a).Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, loaded.Value.X)
	})
}

func TestATreeStartsFromItsFile(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		file := config.WithFile[settings](filepath.Join(t.TempDir(), "tree"))
		w.writeKeys(map[string]string{"billing/x": "5"})
		_, err := w.tree(w.b, file).Load(t.Context())
		require.NoError(t, err)
		w.a.Link.Cut()
		later := w.tree(w.a, file, config.WithDefault(settings{X: 1, Y: 2}))
		require.Equal(t, config.FromFile, later.Current().Source)
		require.Equal(t, settings{X: 5, Y: 2}, later.Get())
	})
}

func TestATreeWithBadArguments(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for _, err := range []error{
			config.NewTree[settings](nil, treeDirs).Validate(), config.NewTree[settings](w.a.Client, nil).Validate(),
			config.NewTree[settings](w.a.Client, []string{"/"}).Validate(),
			config.NewTree[settings](w.a.Client, []string{"/a", "b"}).Validate(),
			config.NewTree[settings](w.a.Client, []string{"/a", "/zookeeper"}).Validate(),
			config.NewTree[string](w.a.Client, treeDirs).Validate(),
			config.NewTree(w.a.Client, treeDirs, config.WithQuietTime[settings](-1)).Validate(),
		} {
			require.Error(t, err)
		}
		tree := w.tree(w.a)
		_, err := tree.Load(t.Context())
		require.ErrorIs(t, err, config.ErrNoValue)
		require.NoError(t, w.a.Close(t.Context()))
		require.ErrorIs(t, tree.Run(t.Context()), framework.ErrClosed)
	})
}

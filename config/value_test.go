package config_test

import (
	"context"
	"iter"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestAValueFollowsItsNode(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := w.limits(w.a, config.WithDefault(limits{Rate: 10}))
		require.Equal(t, config.Snapshot[limits]{Value: limits{Rate: 10}, Source: config.FromDefault}, v.Current())
		w.run(v)
		require.Equal(t, 10, v.Get().Rate)
		w.write(`{"rate":20,"later":true}`)
		require.Equal(t, 20, v.Get().Rate)
		now := v.Current()
		require.Equal(t, config.FromServers, now.Source)
		require.Equal(t, w.version(), now.Version)
		require.WithinDuration(t, time.Now(), now.Since, time.Second)

		require.NoError(t, w.b.Delete(t.Context(), path, framework.AnyVersion))
		synctest.Wait()
		require.Equal(t, config.Snapshot[limits]{Value: limits{Rate: 10}, Source: config.FromDefault}, v.Current())
	})
}

func TestANodeThatIsCreatedAnewDuringAnOutageIsNoticed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		require.NoError(t, w.b.MakeDirs(t.Context(), "/app"))
		require.NoError(t, w.b.Create(t.Context(), path, []byte(`{"rate":1}`), framework.Persistent))
		v := w.limits(w.a)
		w.run(v)
		require.Equal(t, 1, v.Get().Rate)
		w.a.Link.Cut()
		require.NoError(t, w.b.Delete(t.Context(), path, 0))
		require.NoError(t, w.b.Create(t.Context(), path, []byte(`{"rate":2}`), framework.Persistent)) // version 0 again
		w.a.Link.Heal()
		time.Sleep(timeout)
		require.Equal(t, 2, v.Get().Rate)
	})
}

func TestARefusedValueIsKeptOut(t *testing.T) {
	for name, bad := range map[string]string{"not JSON": "rate: 5", "not valid": `{"rate":-1}`,
		"another type": `{"rate":"5"}`, "empty": ""} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				v := w.limits(w.a)
				w.run(v)
				w.write(`{"rate":5}`)
				good := v.Current()
				require.NoError(t, v.Refused())
				w.write(bad)
				require.Equal(t, good, v.Current())
				require.ErrorIs(t, v.Refused(), framework.ErrBadValue)
				_, err := v.Load(t.Context())
				require.ErrorIs(t, err, framework.ErrBadValue)
				w.write(`{"rate":6}`)
				require.Equal(t, 6, v.Get().Rate)
				require.NoError(t, v.Refused())
			})
		})
	}
}

func TestAMissingNodeWithoutADefaultKeepsTheLastGoodValue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := w.limits(w.a)
		_, err := v.Load(t.Context())
		require.ErrorIs(t, err, config.ErrNoValue)
		w.write(`{"rate":5}`)
		loaded, err := v.Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, 5, loaded.Value.Rate)
		w.run(v)
		require.NoError(t, w.b.Delete(t.Context(), path, framework.AnyVersion))
		synctest.Wait()
		require.Equal(t, 5, v.Get().Rate)
		require.ErrorIs(t, v.Refused(), config.ErrNoValue)
	})
}

func TestChangesYieldsEachValueAndSkipsToTheLatest(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := w.limits(w.a, config.WithDefault(limits{Rate: 10}))
		next, stop := iter.Pull2(v.Follow(t.Context()))
		defer stop()
		rate := func() int {
			s, err, more := next()
			require.NoError(t, err)
			require.True(t, more)
			return s.Value.Rate
		}
		require.Equal(t, 10, rate())
		require.Equal(t, 10, rate(), "the servers have none")
		w.write(`{"rate":20}`)
		require.Equal(t, 20, rate())
		for _, text := range []string{`{"rate":30}`, `bad`, `{"rate":40}`, `{"rate":-5}`, `{"rate":50}`} {
			w.write(text)
		}
		require.Equal(t, 50, rate())
		stop()
		synctest.Wait()
		require.Empty(t, w.Watches())
	})
}

func TestLoadReadsBehindASync(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.write(`{"rate":1}`)
		s, err := w.a.Session(t.Context())
		require.NoError(t, err)
		_, err = w.LagAsLeader(s.ID())
		require.NoError(t, err)
		w.write(`{"rate":2}`)
		loaded, err := w.limits(w.a).Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, loaded.Value.Rate)
	})
}

func TestGetAllocatesNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := w.limits(w.a, config.WithDefault(limits{Rate: 10}))
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = v.Get() }))
	})
}

func TestRunGoesOnAfterAPermissionThatIsMissing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		owner := w.Member(t, "owner",
			framework.Config{SessionTimeout: timeout,
				Auth: []framework.Credential{{Scheme: "digest", Auth: []byte("u:p")}}})
		require.NoError(t, w.b.MakeDirs(t.Context(), "/app"))
		require.NoError(t, owner.Create(t.Context(), path, []byte(`{"rate":1}`), framework.Persistent))
		v := w.limits(w.a)
		w.run(v)
		require.Zero(t, v.Get().Rate)
		require.NoError(t, owner.Delete(t.Context(), path, 0))
		w.write(`{"rate":2}`)
		time.Sleep(time.Minute)
		require.Equal(t, 2, v.Get().Rate)
	})
}

func TestAWrongPathOrOptionIsTold(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		for _, v := range []*config.Value[string]{
			config.New(w.a.Client, "app", codec.Text()), config.New(w.a.Client, "/", codec.Text()),
			config.New(w.a.Client, "/zookeeper/config", codec.Text()), config.New(nil, path, codec.Text()),
			config.New[string](w.a.Client, path, nil),
			config.New(w.a.Client, path, codec.Text(), config.WithValidate[string](nil)),
			config.New(w.a.Client, path, codec.Text(), config.WithFile[string]("")),
		} {
			require.Error(t, v.Validate())
			require.Equal(t, v.Validate(), v.Run(t.Context()))
			require.Equal(t, v.Validate(), v.Set(t.Context(), "x"))
			_, err := v.History(t.Context())
			require.Equal(t, v.Validate(), err)
			_, err = v.Load(t.Context())
			require.Equal(t, v.Validate(), err)
			for _, err := range v.Follow(t.Context()) {
				require.Equal(t, v.Validate(), err)
			}
			require.Empty(t, v.Get())
		}
		v := config.New(w.a.Client, path, codec.Text(), nil)
		require.Error(t, v.Set(t.Context(), "x", config.WithExpectedVersion(-1)))
		require.NoError(t, w.a.Close(t.Context()))
		require.ErrorIs(t, v.Run(t.Context()), framework.ErrClosed)
		require.ErrorIs(t, v.Set(t.Context(), "x"), framework.ErrClosed)
	})
}

// panickyCodec panics for one value.
type panickyCodec struct{ codec.Codec[string] }

func (c panickyCodec) Encode(v string) ([]byte, error) {
	if v == "panic of Encode" {
		panic(v)
	}
	return c.Codec.Encode(v)
}

func (c panickyCodec) Decode(data []byte) (string, error) {
	if string(data) == "panic of Decode" {
		panic(string(data))
	}
	return c.Codec.Decode(data)
}

// TestPanicOfTheUsersCodeRefusesTheValue: neither the codec nor the check of a value ends the
// program.
func TestPanicOfTheUsersCodeRefusesTheValue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		v := config.New[string](w.a.Client, path, panickyCodec{codec.Text()}, config.WithDefault("default"),
			config.WithValidate(func(v string) error {
				if v == "panic of the check" {
					panic(v)
				}
				return nil
			}))
		for _, value := range []string{"panic of Encode", "panic of Decode", "panic of the check"} {
			err := v.Set(t.Context(), value)
			require.ErrorIs(t, err, framework.ErrBadValue)
			require.ErrorContains(t, err, "panic: "+value)
		}
		require.NoError(t, v.Set(t.Context(), "good"))
		var running sync.WaitGroup
		defer running.Wait()
		ctx, end := context.WithCancel(t.Context())
		defer end()
		running.Go(func() { _ = v.Run(ctx) })
		time.Sleep(time.Minute)
		require.Equal(t, "good", v.Get())
		for _, value := range []string{"panic of Decode", "panic of the check"} {
			w.write(value)
			time.Sleep(time.Minute)
			require.Equal(t, "good", v.Get())
			require.ErrorIs(t, v.Refused(), framework.ErrBadValue)
		}
	})
}

func TestManyReadersOfOneClientShareAWatch(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.write(`{"rate":1}`)
		var values []*config.Value[limits]
		for range 100 {
			values = append(values, w.limits(w.a))
			w.run(values[len(values)-1])
		}
		require.Len(t, w.Watches(), 1)
		before := w.Requests()[zktest.OpGetData]
		w.write(`{"rate":2}`)
		require.Equal(t, before+1, w.Requests()[zktest.OpGetData])
		for _, v := range values {
			require.Equal(t, 2, v.Get().Rate)
		}
	})
}

// TestValidationMayUseItsValue: nothing of the user's is called under a lock, and a value that
// takes long to decode does not replace a newer one, in memory and in the file.
func TestValidationMayUseItsValue(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		name := filepath.Join(t.TempDir(), "limits")
		var v *config.Value[limits]
		leave := make(chan struct{})
		v = w.limits(w.a, config.WithFile[limits](name), config.WithValidate(func(l limits) error {
			if l.Rate == 1 {
				require.NoError(t, v.Refused())
				<-leave
			}
			return nil
		}))
		w.write(`{"rate":1}`)
		w.run(v)
		w.write(`{"rate":2}`)
		_, err := v.Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, v.Get().Rate)
		close(leave)
		synctest.Wait()
		require.Equal(t, 2, v.Get().Rate)
		require.Equal(t, 2, w.limits(w.b, config.WithFile[limits](name)).Get().Rate)
	})
}

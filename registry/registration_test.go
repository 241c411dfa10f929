package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/logtest"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestAnInstanceIsRegisteredAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, other := w.member("a"), w.member("b")
		g, r := w.register(m, "one"), registry.New(other.Client, base)
		require.NoError(t, g.Update(t.Context(),
			func(i *registry.Instance) { i.Metadata = map[string]string{"version": "2"}; i.ID = "x" }))
		require.NoError(t, r.Disable(t.Context(), billing, "one", "debugging"))
		synctest.Wait() // the process knows
		for _, lose := range []func(){
			func() { require.NoError(t, w.Expire(w.session(m).ID())) },
			func() {
				require.NoError(t, other.Delete(t.Context(), base+"/billing/one", framework.AnyVersion))
			},
			func() { m.Link.Cut(); time.Sleep(3 * timeout); m.Link.Heal() },
			w.Restart,
		} {
			lose()
			time.Sleep(timeout)
			all, err := r.Instances(t.Context(), billing)
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.Equal(t, "2", all[0].Metadata["version"], "the process's own update")
			require.Equal(t, "debugging", all[0].Disabled, "another client's change")
			require.Equal(t, all[0], g.Instance())
			n, _ := w.Node(base + "/billing/one")
			require.Equal(t, w.session(m).ID(), n.Stat.EphemeralOwner)
		}
		require.NoError(t, r.Enable(t.Context(), billing, "one"))
		require.NoError(t, g.Close(t.Context()))
		require.NoError(t, g.Close(t.Context()))
		require.ErrorIs(t, g.Err(), framework.ErrClosed)
		require.Empty(t, w.Children(base+"/billing"))
		require.ErrorIs(t, g.Disable(t.Context(), "x"), framework.ErrClosed)
		require.ErrorIs(t, r.Disable(t.Context(), billing, "one", "x"), framework.ErrNotFound)
		require.ErrorIs(t, r.Disable(t.Context(), billing, "a/b", "x"), framework.ErrNotFound)
	})
}

// TestALostReplyRegistersOnce: any request of a registration, an update or a close may get no
// answer.
func TestALostReplyRegistersOnce(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpMulti, zktest.OpGetData, zktest.OpDelete} {
		for nth := 1; nth <= 3; nth++ {
			in(t, func(t *testing.T, w *world) {
				m := w.member("a")
				f := w.DropReply(nth, zktest.Match{Op: op})
				defer f.Cancel()
				g := w.register(m, "")
				for port := 1; port <= 4; port++ {
					require.NoError(t, g.Update(t.Context(), func(i *registry.Instance) { i.Port = port }))
					require.Equal(t, port, g.Instance().Port)
				}
				require.Equal(t, []string{g.Instance().ID}, w.Children(base+"/billing"))
				require.Contains(t, w.data(g.Instance().ID), `"port":4`)
				require.NoError(t, g.Close(t.Context()))
				require.Empty(t, w.Children(base+"/billing"))
			})
		}
	}
}

// TestAnIDOfAnotherSession: Register waits for the end of another session's node, and does not
// delete it.
func TestAnIDOfAnotherSession(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		given := registry.Instance{Service: billing, Address: "a", Port: 1, Disabled: "\xff", URISpec: "\xff"}
		require.NoError(t, given.Validate(), "Register chooses and mends what is missing")
		require.Equal(t, registry.Instance{Service: billing, Address: "a", Port: 1, Disabled: "\xff", URISpec: "\xff"},
			given)
		g := w.register(m, "one")
		b := w.member("b")
		_, err := registry.New(b.Client, base).Register(t.Context(),
			registry.Instance{Service: billing, ID: "one", Address: "b", Port: 1})
		require.ErrorIs(t, err, registry.ErrIDInUse)
		require.NoError(t, g.Err())
		m.Link.Cut() // as if its process had died; another process takes the same id
		began := time.Now()
		_ = w.register(b, "one")
		require.LessOrEqual(t, time.Since(began), timeout+2*time.Second)
		n, _ := w.Node(base + "/billing/one")
		require.Equal(t, w.session(b).ID(), n.Stat.EphemeralOwner)
	})
}

func TestARegistrationThatIsGivenUpLeavesNoNode(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		r := registry.New(m.Client, base)
		m.Link.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := r.Register(ctx, registry.Instance{Service: billing, Address: "a", Port: 1})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		m.Link.Heal()
		time.Sleep(time.Minute)
		require.Empty(t, w.Children(base+"/billing"))
		for _, i := range []registry.Instance{
			{Service: "a/b", Address: "a", Port: 1},
			{Service: "", Address: "a", Port: 1},
			{Service: billing, ID: "a/b", Address: "a", Port: 1},
			{Service: billing, Port: 1},
			{Service: billing, Address: "a b", Port: 1},
			{Service: billing, Address: "user@host", Port: 1},
			{Service: billing, Address: "a\u202eb", Port: 1},
			{Service: billing, Address: "a:1", Port: 1},
			{Service: billing, Address: "0.0.0.0", Port: 1},
			{Service: billing, Address: "::", Port: 1},
			{Service: billing, Address: "a"},
			{Service: billing, Address: "a", Port: 65536},
			{Service: billing, Address: "a", Port: 1, Weight: 1001},
		} {
			_, err := r.Register(t.Context(), i)
			require.ErrorIs(t, err, framework.ErrInvalid, "%+v", i)
			require.ErrorIs(t, i.Validate(), framework.ErrInvalid, "%+v", i)
		}
		g := w.register(m, "one")
		require.ErrorIs(t, g.Update(t.Context(), func(i *registry.Instance) { i.Address = "" }), framework.ErrInvalid)
		require.ErrorContains(t, g.Update(t.Context(), func(i *registry.Instance) { i.Address = "::" }),
			"the address :: stands for all of a machine's")
		_, err = r.Register(t.Context(), registry.Instance{Service: billing, Address: "a", Port: 1},
			registry.WithHealth(nil, 0))
		require.ErrorIs(t, err, framework.ErrInvalid)
		_, err = registry.New(nil, base).Register(t.Context(), registry.Instance{})
		require.ErrorContains(t, err, "client is nil")
		require.NoError(t, m.Close(t.Context()))
		<-g.Done()
		require.Error(t, g.Err())
	})
}

func TestAnUnhealthyInstanceIsDisabled(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var sick atomic.Bool
		sick.Store(true)
		g := w.register(w.member("a"), "one", registry.WithHealth(func(context.Context) error {
			if sick.Load() {
				return errors.New("no disk")
			}
			return nil
		}, 5*time.Second))
		require.Contains(t, g.Instance().Disabled, "unhealthy", "until the first check")
		sick.Store(false)
		time.Sleep(6 * time.Second)
		require.Empty(t, g.Instance().Disabled)
		sick.Store(true)
		time.Sleep(6 * time.Second)
		require.Equal(t, "unhealthy: no disk", g.Instance().Disabled)
		require.Contains(t, w.data("one"), `"enabled":false`)
		require.NoError(t, g.Disable(t.Context(), "by hand"))
		sick.Store(false)
		time.Sleep(time.Minute)
		require.Equal(t, "by hand", g.Instance().Disabled, "the health check does not enable it")
	})
}

// TestACheckThatPanicsDisablesTheInstance, also one that ends its goroutine.
func TestACheckThatPanicsDisablesTheInstance(t *testing.T) {
	for says, fail := range map[string]func(){"no disk": func() { panic("no disk") }, "Goexit": runtime.Goexit} {
		in(t, func(t *testing.T, w *world) {
			var sick atomic.Bool
			g := w.register(w.member("a"), "one", registry.WithHealth(func(context.Context) error {
				if sick.Load() {
					fail()
				}
				return nil
			}, time.Second))
			time.Sleep(3 * time.Second)
			require.Empty(t, g.Instance().Disabled)
			sick.Store(true)
			time.Sleep(3 * time.Second)
			require.Contains(t, g.Instance().Disabled, says)
			sick.Store(false)
			time.Sleep(3 * time.Second)
			require.Empty(t, g.Instance().Disabled)
		})
	}
}

func TestDrainIsNoticedBeforeTheEnd(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		one := w.register(m, "one")
		w.register(w.member("b"), "two")
		p := w.pool(w.member("c"))
		require.Equal(t, []string{"one", "two"}, w.listed(p))
		done := make(chan error, 1)
		go func() { done <- one.Drain(t.Context()) }()
		time.Sleep(time.Second)
		require.Equal(t, []string{"two"}, w.listed(p))
		require.Len(t, w.Children(base+"/billing"), 2, "it is still registered")
		synctest.Wait()
		require.NoError(t, <-done)
		require.Equal(t, []string{"two"}, w.Children(base+"/billing"))
	})
}

// TestAnInstanceIsCuratorsJSON, and the fields of Java programs stay.
func TestAnInstanceIsCuratorsJSON(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		g := w.register(m, "one")
		require.JSONEq(t, `{"name":"billing","id":"one","address":"10.0.0.7","port":8080,"sslPort":null,"payload":null,"registrationTimeUTC":946684800000,
			"serviceType":"DYNAMIC","uriSpec":null,"enabled":true}`, w.data("one"))
		require.NoError(t, g.Update(t.Context(),
			func(i *registry.Instance) { i.Weight, i.Metadata = 3, map[string]string{"zone": "a"} }))
		require.Contains(t, w.data("one"), `"payload":{"metadata":{"zone":"a"},"weight":3}`)
		s, r := w.session(m), registry.New(m.Client, base)
		java := `{"name":"billing","id":"j","address":"h","port":null,"sslPort":8443,"payload":{"@class":"com.example.Meta","n":5},"registrationTimeUTC":5,"serviceType":"DYNAMIC","uriSpec":{"parts":[{"value":"scheme","variable":true}]}}`
		require.NoError(t, s.Create(t.Context(), base+"/billing/j", []byte(java), framework.Ephemeral))
		for id, data := range map[string]string{"x1": "", "x2": "hello", "x3": `{"address":"a b","port":5}`,
			"x4": `{"address":"a","port":99999}`, "x5": `[]`} {
			require.NoError(t, s.Create(t.Context(), base+"/billing/"+id, []byte(data), framework.Ephemeral))
		}
		all, err := r.Instances(t.Context(), billing)
		require.NoError(t, err)
		require.Len(t, all, 2, "nodes that are not instances are left out")
		require.Equal(t, "h:8443", all[0].HostPort(false))
		require.Empty(t, all[0].Disabled)
		require.NoError(t, r.Disable(t.Context(), billing, "j", "why"))
		for _, part := range []string{`"@class":"com.example.Meta"`, `"n":5`, `"uriSpec":{"parts"`, `"enabled":false`,
			`"disabled":"why"`} {
			require.Contains(t, w.data("j"), part)
		}
		require.Equal(t, "{scheme}", all[0].URISpec)
		require.JSONEq(t, `{"@class":"com.example.Meta","n":5}`, string(all[0].Payload))
		require.NoError(t, g.Update(t.Context(), func(i *registry.Instance) {
			i.Payload, i.URISpec = []byte(`{"@class":"com.example.Meta","n":6}`), "{scheme}://{address}:{port}/}{"
		}))
		require.JSONEq(t, `{"@class":"com.example.Meta","n":6,"metadata":{"zone":"a"},"weight":3}`,
			string(g.Instance().Payload))
		for _, part := range []string{`{"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false}`,
			`{"value":"/}{","variable":false}]}`} {
			require.Contains(t, w.data("one"), part)
		}
		for _, payload := range []string{`"text"`, "{", "[]"} {
			require.ErrorIs(t, g.Update(t.Context(), func(i *registry.Instance) { i.Payload = []byte(payload) }),
				framework.ErrInvalid, "it cannot hold the weight")
		}
		require.NoError(t, g.Update(t.Context(),
			func(i *registry.Instance) { i.Payload, i.Weight, i.Metadata, i.URISpec = []byte(`"text"`), 1, nil, "" }))
		require.Contains(t, w.data("one"), `"payload":"text"`)
		require.ErrorIs(t, r.Disable(t.Context(), billing, "x2", ""), framework.ErrBadRecord)
		require.Equal(t, "hello", w.data("x2"))
		names, err := r.Services(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{billing}, names)
		names, err = registry.New(m.Client, "/none").Services(t.Context())
		require.NoError(t, err)
		require.Empty(t, names)
	})
}

// TestAJavaProgramsFieldsStay: a Java program has fields of its own with the names of this
// package's. An operator disables and enables its instance, and each byte of the payload stays.
func TestAJavaProgramsFieldsStay(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.member("a")
		s, r := w.session(m), registry.New(m.Client, base)
		require.NoError(t, s.MakeDirs(t.Context(), base+"/billing"))
		for id, payload := range map[string]string{
			"fraction": `{"weight":0.25,"region":"eu","@class":"com.example.Node"}`,
			"large":    `{"weight":5000}`,
			"zero":     `{"weight":0,"n":1e400}`,
			"own":      `{"weight":2,"metadata":{"zone":"a"},"region":"eu"}`,
			"numbers":  `{"metadata":{"zone":"a","cores":8},"weight":2}`,
			"flag":     `{"disabled":false,"region":"eu"}`,
			"nothing":  `{"weight":null,"metadata":null,"disabled":null}`,
			"case":     `{"Weight":7,"Disabled":1}`,
			"text":     `"text"`,
		} {
			node := `{"name":"billing","id":"` + id + `","address":"h","port":5,"sslPort":null,"payload":` + payload +
				`,"registrationTimeUTC":5,"serviceType":"DYNAMIC","uriSpec":null,"enabled":true}`
			require.NoError(t, s.Create(t.Context(), base+"/billing/"+id, []byte(node), framework.Ephemeral))
			require.NoError(t, r.Disable(t.Context(), billing, id, "debugging"))
			require.Contains(t, w.data(id), `"enabled":false`)
			require.NoError(t, r.Enable(t.Context(), billing, id))
			require.Contains(t, w.data(id), `"enabled":true`)
			all, err := r.Instances(t.Context(), billing)
			require.NoError(t, err)
			of := slices.IndexFunc(all, func(i registry.Instance) bool { return i.ID == id })
			if json.Valid([]byte(payload)) && !strings.Contains(payload, "1e400") {
				require.JSONEq(t, payload, string(all[of].Payload))
			}
			for _, field := range strings.Split(strings.Trim(payload, "{}"), ",") {
				require.Contains(t, string(all[of].Payload), strings.Trim(field, "{}"))
			}
		}
		g := w.register(m, "go")
		require.NoError(t, g.Update(t.Context(),
			func(i *registry.Instance) { i.Payload = []byte(`{"weight":0.25,"metadata":7}`) }))
		require.ErrorContains(t, g.Update(t.Context(), func(i *registry.Instance) { i.Weight = 3 }), "the weight 3")
		require.ErrorContains(t,
			g.Update(t.Context(), func(i *registry.Instance) { i.Metadata = map[string]string{"a": "b"} }), "metadata")
	})
}

// TestTwoChangesAtOnceBothCount: an operator disables an instance that its process changes after
// the operator's read.
func TestTwoChangesAtOnceBothCount(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		one, operator := w.register(w.member("a"), "one"), w.member("operator")
		late := w.DelayReplies(time.Second, zktest.Match{Op: zktest.OpGetData,
			Session: w.session(operator).ID()})
		disabled := make(chan error, 1)
		go func() { disabled <- registry.New(operator.Client, base).Disable(t.Context(), billing, "one", "x") }()
		<-late.Hit()
		late.Cancel()
		require.NoError(t, one.Update(t.Context(), func(i *registry.Instance) { i.Weight = 5 }))
		require.NoError(t, <-disabled)
		all, err := registry.New(operator.Client, base).Instances(t.Context(), billing)
		require.NoError(t, err)
		require.Equal(t, 5, all[0].Weight)
		require.Equal(t, "x", all[0].Disabled)
	})
}

// TestAHealthCheckEnablesWhatItHasDisabled, whatever the payload and the error's text are, and
// nothing that an operator has disabled.
func TestAHealthCheckEnablesWhatItHasDisabled(t *testing.T) {
	for _, payload := range []string{``, `{"@class":"com.example.Meta"}`, `"text"`, `[1]`} {
		in(t, func(t *testing.T, w *world) {
			var sick atomic.Bool
			check := registry.WithHealth(func(context.Context) error {
				if sick.Load() {
					return errors.New("no disk\xff")
				}
				return nil
			}, time.Second)
			r := registry.New(w.member("a").Client, base)
			one := registry.Instance{Service: billing, ID: "one", Address: "a", Port: 1, Payload: []byte(payload)}
			g, err := r.Register(t.Context(), one, check)
			require.NoError(t, err)
			defer func() { _ = g.Close(context.Background()) }()
			time.Sleep(time.Second / 2) // from here on the test acts between two checks
			for range 2 {
				time.Sleep(2 * time.Second)
				require.Empty(t, g.Instance().Disabled, "the check has succeeded")
				sick.Store(true)
				time.Sleep(2 * time.Second)
				require.NotEmpty(t, g.Instance().Disabled)
				sick.Store(false)
			}
			require.NoError(t, r.Enable(t.Context(), billing, "one"))
			time.Sleep(2 * time.Second)
			require.NoError(t, r.Disable(t.Context(), billing, "one", "unhealthy: the operator says so"))
			time.Sleep(10 * time.Second)
			require.NotEmpty(t, g.Instance().Disabled, "the check has not disabled it")
			require.NoError(t, g.Close(t.Context()))

			one.Disabled = "maintenance"
			g, err = r.Register(t.Context(), one, check)
			require.NoError(t, err)
			time.Sleep(10 * time.Second)
			require.NotEmpty(t, g.Instance().Disabled, "the caller has disabled it")
			require.NoError(t, g.Close(t.Context()))
		})
	}
}

// TestRegisterEndsWithItsContext, also when the connection is lost after the create, and when the
// health check ignores its context. The node is deleted in the background.
func TestRegisterEndsWithItsContext(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m, hangs := w.member("a"), make(chan struct{})
		defer close(hangs)
		late := w.DelayReplies(time.Minute, zktest.Match{Op: zktest.OpGetData})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := registry.New(m.Client, base).Register(ctx,
				registry.Instance{Service: billing, Address: "a", Port: 1},
				registry.WithHealth(func(context.Context) error { <-hangs; return nil }, time.Second))
			done <- err
		}()
		<-late.Hit()
		late.Cancel()
		m.Link.Cut()
		require.Len(t, w.Children(base+"/billing"), 1)
		cancel()
		synctest.Wait()
		select {
		case err := <-done:
			require.ErrorIs(t, err, context.Canceled)
		default:
			require.Fail(t, "Register waits for the end of the session or of the health check")
		}
		m.Link.Heal()
		time.Sleep(3 * timeout)
		require.Empty(t, w.Children(base+"/billing"))
	})
}

// TestDrainOfAnOverwrittenNode closes the registration, since the node cannot be changed.
func TestDrainOfAnOverwrittenNode(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		g, other := w.register(w.member("a"), "one"), w.member("b")
		_, err := other.Set(t.Context(), base+"/billing/one", []byte("junk"), framework.AnyVersion)
		require.NoError(t, err)
		require.ErrorIs(t, g.Drain(t.Context()), framework.ErrBadRecord)
		require.ErrorIs(t, g.Err(), framework.ErrClosed)
		require.Empty(t, w.Children(base+"/billing"))
	})
}

// TestARefusedUpdateLeavesTheRegistration as it was. Its caller gets the error.
func TestARefusedUpdateLeavesTheRegistration(t *testing.T) {
	large := func(i *registry.Instance) { i.Metadata = map[string]string{"x": strings.Repeat("x", 2<<20)} }
	small := func(i *registry.Instance) { i.Metadata = map[string]string{"x": strings.Repeat("x", 2000)} }
	for name, c := range map[string]struct {
		change func(*registry.Instance)
		want   error
		acl    []framework.ACL
		refuse func(t *testing.T, w *world)
	}{
		"too large": {large, framework.ErrTooLarge, nil, func(*testing.T, *world) {}},
		"above the quota": {small, framework.ErrQuotaExceeded, nil, func(t *testing.T, w *world) {
			limitQuota(t, w.member("operator"), "byteHardLimit=1000")
		}},
		"without permission": {small, framework.ErrNoAuth,
			[]framework.ACL{{Perms: framework.PermAll &^ framework.PermWrite, Scheme: "world", ID: "anyone"}},
			func(t *testing.T, w *world) {
				require.NoError(t, w.member("operator").MakeDirs(t.Context(), base+"/"+billing))
			}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{zktest.Start(t, zktest.WithEnforcedQuotas()), t}
				c.refuse(t, w)
				var log logtest.Buffer
				m := w.Member(t, "a", framework.Config{SessionTimeout: timeout, ACL: c.acl},
					framework.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				g := w.register(m, "one")
				before := w.data("one")
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				require.ErrorIs(t, g.Update(ctx, c.change), c.want)
				require.NotContains(t, log.String(), "cannot be kept registered")
				require.NoError(t, g.Err())
				require.Empty(t, g.Instance().Metadata)
				require.NoError(t, w.Expire(w.session(m).ID()))
				time.Sleep(time.Minute)
				require.NoError(t, g.Err())
				require.Equal(t, before, w.data("one"), "it is registered again in its former state")
				if errors.Is(c.want, framework.ErrNoAuth) {
					require.ErrorIs(t, g.Drain(t.Context()), c.want)
					require.Empty(t, w.Children(base+"/billing"), "Drain cannot disable it, and closes it")
				} else {
					require.NoError(t, g.Update(t.Context(), func(i *registry.Instance) { i.Port = 2 }))
				}
			})
		})
	}
}

// limitQuota sets a limit of the quota of the service's directory.
func limitQuota(t *testing.T, m *zktest.Member, limit string) {
	quota := "/zookeeper/quota" + base + "/" + billing
	require.NoError(t, m.MakeDirs(t.Context(), quota))
	require.NoError(t, m.Create(t.Context(), quota+"/zookeeper_limits", []byte(limit), framework.Persistent))
	require.NoError(t, m.Create(t.Context(), quota+"/zookeeper_stats", []byte("count=0,bytes=0"), framework.Persistent))
}

// TestARefusedRegistrationIsTriedAgain, if the instance was registered before.
func TestARefusedRegistrationIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{zktest.Start(t, zktest.WithEnforcedQuotas()), t}
		operator := w.member("operator")
		limitQuota(t, operator, "countHardLimit=2")
		setLimit := func(limit string) {
			_, err := operator.Set(t.Context(), "/zookeeper/quota"+base+"/"+billing+"/zookeeper_limits", []byte(limit),
				framework.AnyVersion)
			require.NoError(t, err)
		}
		var log logtest.Buffer
		m := w.Member(t, "a", framework.Config{SessionTimeout: timeout, RetryMax: 2 * time.Second},
			framework.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		g := w.register(m, "one")
		for _, end := range []func(){
			func() {
				setLimit("countHardLimit=2")
				time.Sleep(time.Minute)
				require.Equal(t, []string{"one"}, w.Children(base+"/billing"))
			},
			func() {
				require.ErrorIs(t, g.Update(t.Context(), func(i *registry.Instance) { i.Port = 2 }),
					framework.ErrQuotaExceeded)
				require.ErrorIs(t, g.Drain(t.Context()), framework.ErrQuotaExceeded)
			},
		} {
			earlier := strings.Count(log.String(), "an instance cannot be kept registered")
			setLimit("countHardLimit=1")
			require.NoError(t, operator.Delete(t.Context(), base+"/billing/one", framework.AnyVersion))
			time.Sleep(time.Minute)
			require.NoError(t, g.Err())
			warnings := strings.Count(log.String(), "an instance cannot be kept registered") - earlier
			require.Positive(t, warnings)
			require.Less(t, warnings, 60)
			require.Empty(t, w.Children(base+"/billing"))
			end()
		}
		require.ErrorIs(t, g.Err(), framework.ErrClosed)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := registry.New(m.Client, base).Register(ctx, registry.Instance{Service: billing, Address: "a", Port: 1})
		require.ErrorIs(t, err, framework.ErrQuotaExceeded, "it was not registered before")
	})
}

// TestAPanicInAnUpdateIsHarmless: a handler of net/http writes to a nil map, and its server goes
// on.
func TestAPanicInAnUpdateIsHarmless(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		g := w.register(w.member("a"), "one")
		require.Panics(t, func() {
			_ = g.Update(t.Context(),
				func(i *registry.Instance) { i.Port, i.Metadata["zone"] = 9, "b" })
		})
		require.Equal(t, 8080, g.Instance().Port)
		require.NoError(t, g.Update(t.Context(), func(i *registry.Instance) { i.Weight = g.Instance().Weight + 1 }),
			"the function may read the registration")
		require.Equal(t, 2, g.Instance().Weight)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, g.Close(ctx))
		require.Empty(t, w.Children(base+"/"+billing))
	})
}

// TestALongErrorOfAHealthCheckIsCut.
func TestALongErrorOfAHealthCheckIsCut(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var sick atomic.Bool
		g := w.register(w.member("a"), "one", registry.WithHealth(func(context.Context) error {
			if sick.Load() {
				return errors.New(strings.Repeat("ä", 1<<20))
			}
			return nil
		}, time.Second))
		time.Sleep(2 * time.Second)
		require.Empty(t, g.Instance().Disabled)
		sick.Store(true)
		time.Sleep(2 * time.Second)
		require.Len(t, g.Instance().Disabled, len("unhealthy: ")+4096)
		sick.Store(false)
		time.Sleep(2 * time.Second)
		require.Empty(t, g.Instance().Disabled)
	})
}

// TestTextsOfAnInstanceAreWrittenOnce: what is not UTF-8 would differ from what was stored, and be
// written again with each change.
func TestTextsOfAnInstanceAreWrittenOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		g := w.register(w.member("a"), "one")
		var version int32
		for range 2 {
			require.NoError(t, g.Disable(t.Context(), "a\xff"))
			require.Equal(t, "a\uFFFD", g.Instance().Disabled)
			n, _ := w.Node(base + "/billing/one")
			require.True(t, version == 0 || version == n.Stat.Version, "it was not written again")
			version = n.Stat.Version
		}
		err := g.Update(t.Context(), func(i *registry.Instance) { i.Metadata = map[string]string{"k": "\xff"} })
		require.ErrorIs(t, err, framework.ErrInvalid)
		require.ErrorContains(t, err, "is not UTF-8")
	})
}

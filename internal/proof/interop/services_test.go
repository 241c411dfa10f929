package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/proof/ensemble"
	"github.com/lockstep-go/lockstep/registry"
)

// discovery has Curator's x-discovery and a Lockstep registry, with the same directory.
type discovery struct {
	t    *testing.T
	ctx  context.Context
	peer *Peer
	ours *registry.Registry
	pool *registry.Pool
}

// service is the name of the tests' service.
const service = "billing"

func newDiscovery(t *testing.T) *discovery {
	t.Helper()
	servers := ensemble.Shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*deadline)
	t.Cleanup(cancel)
	client, err := framework.Connect(ctx, framework.Config{Servers: servers},
		framework.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	base := "/interop/" + strconv.FormatInt(time.Now().UnixNano(), 36)
	d := &discovery{t, ctx, startCurator(t, CuratorDiscovery), registry.New(client, base),
		registry.NewPool(client, base, service, registry.WithRefresh(time.Second))}
	t.Cleanup(func() { require.NoError(t, d.pool.Close(context.Background())) })
	d.java(Command{Do: "open", Servers: strings.Join(servers, ","), Part: base})
	return d
}

func (d *discovery) java(c Command) []string {
	d.t.Helper()
	c.Node = service
	answer, err := d.peer.Do(d.ctx, c)
	require.NoError(d.t, err)
	return answer.Participants
}

// awaitAnswer sends Curator a command repeatedly until it gives this answer. Curator's server may
// lag behind Lockstep's, and its caches behind the server.
func (d *discovery) awaitAnswer(c Command, want ...string) {
	d.t.Helper()
	var got []string
	poll(d.t, func() string { return fmt.Sprintf("the answer %q to %q; the last one is %q", want, c.Do, got) },
		func() bool {
			got = d.java(c)
			return slices.Equal(want, got)
		})
}

// awaitCache waits until Curator's ServiceCache has these instances.
func (d *discovery) awaitCache(lines ...string) {
	d.t.Helper()
	lines = append([]string{}, lines...)
	wait := int(deadline.Milliseconds())
	require.Equal(d.t, lines, d.java(Command{Do: "await", Nodes: lines, Wait: &wait}))
}

// awaitPool waits until Lockstep's pool picks these instances only.
func (d *discovery) awaitPool(ids ...string) {
	d.t.Helper()
	require.EventuallyWithT(d.t, func(c *assert.CollectT) {
		all, _, err := d.pool.Instances(d.ctx)
		require.NoError(c, err)
		enabled := []string{}
		for _, i := range all {
			if i.Disabled == "" {
				enabled = append(enabled, i.ID)
			}
		}
		require.Equal(c, ids, enabled)
	}, deadline, 50*time.Millisecond)
}

// TestCuratorInstancesAreListed checks that a registry lists, and a pool picks, the instances that
// Curator's ServiceDiscovery registers, changes and unregisters. If a registry disables an
// instance, Curator finds it disabled, with its other fields unchanged.
func TestCuratorInstancesAreListed(t *testing.T) {
	d := newDiscovery(t)
	began := time.Now().Add(-time.Minute)
	for id, kind := range map[string]string{"full": "full", "plain": "plain", "text": "text", "off": "off"} {
		d.java(Command{Do: "register", Lock: id, Part: kind})
	}
	all, err := d.ours.Instances(d.ctx, service)
	require.NoError(t, err)
	require.Len(t, all, 4)
	full := all[0]
	require.WithinRange(t, full.Registered, began, time.Now().Add(time.Minute))
	require.JSONEq(t, `{"@class":"Discovery$Meta","zone":"b","load":5}`, string(full.Payload))
	want := registry.Instance{Service: service, ID: "full", Address: "10.0.0.8", Port: 8081, SSLPort: 8444, Weight: 1,
		Registered: full.Registered, Payload: full.Payload,
		URISpec: "{scheme}://{address}:{port}/v2"}
	require.Equal(t, want, full)
	require.Equal(t, registry.Instance{Service: service, ID: "off", Address: "10.0.0.8", Port: 8081, Weight: 1,
		Disabled: "disabled", Registered: all[1].Registered}, all[1])
	require.Equal(t, registry.Instance{Service: service, ID: "plain", Address: "10.0.0.8", Port: 8081, Weight: 1,
		Registered: all[2].Registered}, all[2])
	require.JSONEq(t, `"hello"`, string(all[3].Payload))
	d.awaitPool("full", "plain", "text")

	d.java(Command{Do: "change", Lock: "full", Part: "full"})
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		all, _, err := d.pool.Instances(d.ctx)
		require.NoError(c, err)
		require.Contains(c, string(all[0].Payload), `"load":7`)
	}, deadline, 50*time.Millisecond)

	for _, id := range []string{"full", "text"} {
		require.NoError(t, d.ours.Disable(d.ctx, service, id, "by hand"))
	}
	d.awaitPool("plain")
	d.awaitAnswer(Command{Do: "one", Lock: "full"},
		`full 10.0.0.8 8081 8444 off DYNAMIC {"zone":"b","load":7} https://10.0.0.8:8081/v2`)
	d.awaitAnswer(Command{Do: "one", Lock: "text"}, `text 10.0.0.8 8081 null off DYNAMIC "hello" -`)
	require.NoError(t, d.ours.Enable(d.ctx, service, "full"))
	d.java(Command{Do: "unregister", Lock: "plain"})
	d.awaitPool("full")
}

// TestCuratorFindsRegisteredInstances checks that Curator's ServiceDiscovery and ServiceProvider
// find Lockstep's instances, and that its ServiceCache notices each change.
func TestCuratorFindsRegisteredInstances(t *testing.T) {
	d := newDiscovery(t)
	one, err := d.ours.Register(d.ctx, registry.Instance{Service: service, ID: "one", Address: "10.0.0.7", Port: 8080,
		SSLPort: 8443, URISpec: "{scheme}://{address}:{port}/{name}",
		Payload: json.RawMessage(`{"@class":"Discovery$Meta","zone":"a","load":1}`)})
	require.NoError(t, err)
	two, err := d.ours.Register(d.ctx, registry.Instance{Service: service, ID: "two", Address: "::1", Port: 9090,
		Weight: 3, Metadata: map[string]string{"zone": "c"}})
	require.NoError(t, err)
	const (
		first  = `one 10.0.0.7 8080 8443 on DYNAMIC {"zone":"a","load":1} https://10.0.0.7:8080/billing`
		second = `two ::1 9090 null on DYNAMIC {"metadata":{"zone":"c"},"weight":3} -`
	)
	d.awaitAnswer(Command{Do: "names"}, service)
	d.awaitAnswer(Command{Do: "list"}, first, second)
	require.Equal(t, []string{second}, d.java(Command{Do: "one", Lock: "two"}))
	d.java(Command{Do: "watch"})
	d.awaitCache(first, second)
	d.awaitAnswer(Command{Do: "provide", Rounds: 10}, "one", "two")

	require.NoError(t, two.Update(d.ctx, func(i *registry.Instance) { i.Port, i.Metadata = 9091, nil }))
	d.awaitCache(first, `two ::1 9091 null on DYNAMIC {"weight":3} -`)
	require.NoError(t, one.Disable(d.ctx, "debugging"))
	require.Error(t, one.Update(d.ctx, func(i *registry.Instance) { i.Payload = json.RawMessage("{") }))
	d.awaitCache(strings.Replace(first, " on ", " off ", 1), `two ::1 9091 null on DYNAMIC {"weight":3} -`)
	d.awaitAnswer(Command{Do: "provide", Rounds: 10}, "two")
	require.NoError(t, two.Close(d.ctx))
	require.NoError(t, one.Enable(d.ctx))
	d.awaitCache(first)
	require.NoError(t, one.Close(d.ctx))
	d.awaitCache()
}

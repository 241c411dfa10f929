package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/ui"
	"github.com/lockstep-go/lockstep/zktest"
)

// manyNodes is more than any search of a page looks at.
const manyNodes = 130_000

// TestTooManyNodesAreLeftOut: each page answers below a root with more nodes than it looks at, says
// what it has left out, and sends and keeps no more than it may. The time is virtual.
func TestTooManyNodesAreLeftOut(t *testing.T) { synctest.Test(t, testTooManyNodesAreLeftOut) }

func testTooManyNodesAreLeftOut(t *testing.T) {
	s := newStage(t)
	ctx := t.Context()
	lease, err := locks.NewMutex(s.member(t, "holder", "holder"), "/a/lock").Lock(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { _ = lease.Release(context.Background()) })
	writer := s.member(t, "writer", "writer")
	require.NoError(t, writer.Create(ctx, "/many", nil, framework.Persistent))
	for i := 0; i < manyNodes; i += 1000 {
		var ops []framework.Op
		for k := range 1000 {
			ops = append(ops, framework.CreateOp(fmt.Sprintf("/many/%06d", i+k), nil, framework.Persistent))
		}
		_, err := writer.Multi(ctx, ops...)
		require.NoError(t, err)
	}
	before, sent := heap(), s.client.Status().Requests
	require.Contains(t, text(t, s.get(t, "")), "left out")
	for page, most := range map[string]string{"locks": "100000", "elections": "100000", "jobs": "100000",
		"queues": "100000", "workflows": "100000", "barriers": "20000", "members": "20000", "services": "20000",
		"configuration": "20000", "search?q=lock": "20000"} {
		body := text(t, s.get(t, page))
		require.Contains(t, body, "Not everything could be read", page)
		require.Contains(t, body, "there are more than "+most+" nodes", page)
	}
	require.Contains(t, text(t, s.get(t, "locks")), "lock?path=%2Fa%2Flock", "it shows what it has read")
	require.Less(t, s.client.Status().Requests-sent, int64(2000))
	require.Less(t, heap()-before, int64(32<<20), "bytes that the page keeps")
}

// heap is what is in use.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // it fits
}

// TestMissingPermissionIsNamed: pages name the path that they may not read or change, and the
// credentials with which they connected, without the password.
func TestMissingPermissionIsNamed(t *testing.T) { synctest.Test(t, testMissingPermissionIsNamed) }

func testMissingPermissionIsNamed(t *testing.T) {
	zk := zktest.Start(t)
	connect := func(user string) *framework.Client {
		return zk.Member(t, user, framework.Config{ACL: framework.OpenACL(), ParentACL: framework.OpenACL(),
			Auth: []framework.Credential{{Scheme: "digest", Auth: []byte(user + ":password")}}}).Client
	}
	owner, reader := connect("owner"), connect("reader")
	page, err := ui.New(reader, ui.WithActions())
	require.NoError(t, err)
	t.Cleanup(page.Close)
	s := &stage{zk: zk, client: reader, page: page}
	ctx := t.Context()
	q := queue.New(owner, "/queues/shown", codec.Text())
	require.NoError(t, q.Put(ctx, "item"))
	require.NoError(t, q.Close(ctx))
	shown := framework.ACL{Perms: framework.PermRead, Scheme: "world", ID: "anyone"}
	require.NoError(t, owner.SetACL(ctx, "/queues/shown", append(framework.CreatorOnlyACL(), shown)))
	require.NoError(t, owner.MakeDirs(ctx, "/closed/x/y"))
	for _, path := range []string{"/closed/x", "/closed"} {
		require.NoError(t, owner.SetACL(ctx, path, framework.CreatorOnlyACL()))
	}

	names := func(body, path string) {
		t.Helper()
		require.Contains(t, body, path)
		require.Contains(t, body, "no permission")
		require.Contains(t, body, "with the credentials digest:reader")
		require.NotContains(t, body, "password")
	}
	for _, target := range []string{"", "locks", "elections", "jobs", "queues", "workflows", "barriers", "members",
		"services", "configuration", "search?q=x"} {
		names(text(t, s.get(t, target)), "/closed")
	}
	for _, target := range []string{"lock?path=/closed", "group?path=/closed", "service?path=/closed/x",
		"value?path=/closed/x", "election?path=/closed/x"} {
		for _, asked := range []string{target, strings.Replace(target, "?", ".json?", 1)} {
			r := s.get(t, asked)
			body := text(t, r)
			require.Equal(t, http.StatusServiceUnavailable, r.StatusCode, "%s: %s", asked, body)
			names(body, "/closed")
		}
	}
	r := s.post(t, "act", s.form(t, "queue?path=/queues/shown", "pause-queue"))
	require.Equal(t, http.StatusBadGateway, r.StatusCode)
	names(text(t, r), "/queues/shown")

	var listed []queue.Report
	require.NoError(t, json.NewDecoder(s.get(t, "queues.json").Body).Decode(&listed))
	require.Len(t, listed, 1)
}

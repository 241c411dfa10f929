//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
)

// pageCommands are the pages whose JSON a command prints, too, a line for each element of a list.
// Several commands print the elements one after the other, and "page#field" is a field of the
// page's object.
var pageCommands = map[string][]string{
	"locks": {"locks /lockstep"}, "lock?path=/lockstep/locks/one": {"locks one"},
	"elections": {"elections /lockstep"}, "election?path=/lockstep/elections/one": {"elections one"},
	"jobs": {"jobs"}, "job?path=/lockstep/jobs/one": {"jobs /lockstep/jobs/one"},
	"queues": {"queue ls /lockstep"}, "queue?path=/lockstep/queues/one#queue": {"queue ls one"},
	"queue?path=/lockstep/queues/one#in_flight":    {"queue inflight one"},
	"queue?path=/lockstep/queues/one#dead_letters": {"queue dead one"},
	"barriers": {"barriers", "gates", "latch ls"},
	"members":  {"members"}, "group?path=/lockstep/groups/one": {"members one"},
	"services": {"services"}, "service?path=/lockstep/services/one": {"services one"},
	"configuration": {"config ls"}, "value?path=/lockstep/config/one": {"config history one"},
	"workflows": {"workflows"}, "workflow?path=/lockstep/workflows&id=failed": {"workflows failed"},
	"workflow?path=/lockstep/workflows&id=waits": {"workflows waits"},
	"doctor": {"doctor"},
}

// passing are texts that differ from one examination to the next: durations, zxids and sessions.
var passing = regexp.MustCompile(`0x[0-9a-f]+|[0-9][0-9.]*(µs|ms|s)?`)

// TestPagesServeWhatCommandsPrint compares the JSON of each page with that of the commands, on one
// server.
func TestPagesServeWhatCommandsPrint(t *testing.T) {
	s := newStage(t)
	fillForPages(t, s)
	p := s.start("ui", "/lockstep", "--listen", "127.0.0.1:0", "--allow-actions", "--json")
	address := decode(t, p.line(0))["url"].(string)
	defer http.DefaultClient.CloseIdleConnections()
	examined, err := http.PostForm(address+"examine", nil) //nolint:gosec // the address that the command has printed
	require.NoError(t, err)
	require.NoError(t, examined.Body.Close())
	require.Equal(t, http.StatusOK, examined.StatusCode)

	get := func(page string) (value any) {
		t.Helper()
		name, query, _ := strings.Cut(page, "?")
		r, err := http.Get(address + name + ".json?" + query) //nolint:gosec // as above
		require.NoError(t, err)
		defer r.Body.Close()
		require.Equal(t, http.StatusOK, r.StatusCode, page)
		require.NoError(t, json.NewDecoder(r.Body).Decode(&value), page)
		return value
	}
	for page, commands := range pageCommands {
		page, field, isField := strings.Cut(page, "#")
		shown := get(page)
		if isField {
			shown = shown.(map[string]any)[field]
		}
		list, isList := shown.([]any)
		if !isList {
			list = []any{shown}
		}
		require.NotEmpty(t, list, page)
		var printed []any
		for _, command := range commands {
			_, out, errs := s.run(append(strings.Fields(command), "--json")...)
			for line := range strings.Lines(out) {
				one := decode(t, line)
				if page != "locks" || one["kind"] != "election" { // elections have a page of their own
					printed = append(printed, one)
				}
			}
			require.NotEmpty(t, out, "%s: %s", command, errs)
		}
		for _, one := range append(printed, list...) {
			object := one.(map[string]any)
			delete(object, "at") // when it was read
			if page == "doctor" {
				object["text"] = passing.ReplaceAllString(object["text"].(string), "N")
			}
		}
		require.ElementsMatch(t, printed, list, "%s: %v", page, commands)
	}
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.wait())
}

// fillForPages makes one of each thing at the paths at which commands look without a NAME.
func fillForPages(t *testing.T, s *stage) {
	t.Helper()
	c := connectAs(t, s, "", "")
	ctx, cancel := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	t.Cleanup(func() { cancel(); tasks.Wait() })
	_, err := locks.NewMutex(c, "/lockstep/locks/one", locks.WithData([]byte("\xff"))).Lock(ctx)
	require.NoError(t, err)
	waits := make(chan struct{})
	waiter := connectAs(t, s, "", "")
	tasks.Go(func() {
		_, _ = locks.NewMutex(waiter, "/lockstep/locks/one", locks.WithOnWait(func(int) { close(waits) })).Lock(ctx)
	})
	<-waits
	_, err = election.New(c, "/lockstep/elections/one", election.WithID("first\u202e"),
		election.WithMetadata(map[string]string{"zone": "a"})).Campaign(ctx)
	require.NoError(t, err)

	jobs := scheduler.New(c, "/lockstep/jobs/one") // as lockstep cron stores a job
	require.NoError(t, jobs.Add(scheduler.Job{Name: "one", Spec: "0 3 29 2 *", Zone: time.UTC, Description: "leaps",
		Run: func(context.Context, scheduler.Run) error { return nil }}))
	tasks.Go(func() { _ = jobs.Run(ctx) })
	s.until("the job", func() bool {
		report, err := jobs.Inspect(ctx, "one")
		return err == nil && report.Owner != nil
	})

	q := queue.New(c, "/lockstep/queues/one", codec.Text(), queue.WithMaxAttempts(1))
	for _, item := range []string{"given up", "taken", "waits\xff"} {
		require.NoError(t, q.Put(ctx, item, queue.WithHeaders(map[string]string{"k": "v"})))
	}
	given, err := q.Take(ctx)
	require.NoError(t, err)
	require.NoError(t, given.Nack(ctx, 0, errors.New("no use")))
	_, err = q.Take(ctx)
	require.NoError(t, err)

	require.NoError(t, barrier.NewGate(c, "/lockstep/gates/one").Raise(ctx))
	require.NoError(t, barrier.NewLatch(c, "/lockstep/latches/one", 3).CountDown(ctx, "first"))
	_, err = barrier.NewDoubleBarrier(c, "/lockstep/barriers/one", 1).Enter(ctx)
	require.NoError(t, err)

	group := members.New(c, "/lockstep/groups/one")
	_, err = group.Join(ctx, "member", members.Info{Version: "1", Load: 0.5, Metadata: map[string]string{"k": "v"}})
	require.NoError(t, err)
	require.NoError(t, group.Cordon(ctx, "member", members.WithReason("disk")))
	require.NoError(t, group.Cordon(ctx, "gone", members.WithAbsentMember()))
	_, err = registry.New(c, "/lockstep/services").Register(ctx, registry.Instance{Service: "one", ID: "instance",
		Address: "host", Port: 80, Payload: json.RawMessage(`{"k":1}`)})
	require.NoError(t, err)
	value := config.New(c, "/lockstep/config/one", codec.Bytes())
	require.NoError(t, value.Set(ctx, []byte("text")))
	require.NoError(t, value.Set(ctx, []byte("\xff"), config.WithNote("binary")))

	flows := workflow.New(c, "/lockstep/workflows")
	fails, waiting := workflow.NewKind[string, string]("fails"), workflow.NewKind[string, string]("waits")
	require.NoError(t, flows.Register(
		fails.Function(func(ctx context.Context, run *workflow.Run, _ string) (string, error) {
			_, err := workflow.Step(ctx, run, "first", func(context.Context, workflow.Key) (string, error) {
				return "result\u202e", nil
			})
			return "", errors.Join(err, workflow.Permanent(errors.New("no use")))
		}),
		waiting.Function(func(ctx context.Context, run *workflow.Run, _ string) (string, error) {
			return workflow.Await[string](ctx, run, "approved", time.Hour)
		})))
	_, err = fails.Start(ctx, flows, "failed", "input")
	require.NoError(t, err)
	_, err = waiting.Start(ctx, flows, "waits", "input")
	require.NoError(t, err)
	tasks.Go(func() { _ = flows.Work(ctx) })
	s.until("the runs", func() bool {
		failed, err := flows.Inspect(ctx, "failed")
		waits, waitsErr := flows.Inspect(ctx, "waits")
		return errors.Join(err, waitsErr) == nil && failed.State == workflow.Failed && waits.State == workflow.Waiting
	})
}

package ui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/registry"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/ui"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a server with pages on it.
type stage struct {
	zk     *zktest.Server
	client *framework.Client
	page   *ui.UI
	link   *zktest.Link
	// real are the servers if they are not zk.
	real []string
}

// member connects one more client.
func (s *stage) member(t *testing.T, name, identity string) *framework.Client {
	t.Helper()
	if s.real == nil {
		return s.zk.Member(t, name, framework.Config{Identity: identity}).Client
	}
	client, err := framework.Connect(t.Context(), framework.Config{Servers: s.real, Identity: identity,
		SessionTimeout: 30 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

func newStage(t *testing.T, opts ...ui.Option) *stage {
	t.Helper()
	zk := zktest.Start(t)
	member := zk.Member(t, "page", framework.Config{})
	page, err := ui.New(member.Client, opts...)
	require.NoError(t, err)
	t.Cleanup(page.Close)
	return &stage{zk: zk, client: member.Client, page: page, link: member.Link}
}

// get asks for a page.
func (s *stage) get(t *testing.T, target string) *http.Response {
	t.Helper()
	return s.do(t, httptest.NewRequest(http.MethodGet, "http://localhost/lockstep/"+target, nil))
}

func (s *stage) do(t *testing.T, r *http.Request) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	s.page.ServeHTTP(w, r)
	return w.Result()
}

func (s *stage) post(t *testing.T, target string, form url.Values, head ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://localhost/lockstep/"+target, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	return s.do(t, r)
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	all, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(all)
}

// fill makes one of each thing, with this name and this text.
func fill(t *testing.T, s *stage, name string) { t.Helper(); fillWith(t, s, name, name) }

// fillWith is fill with a text of UTF-8, at most 250 bytes long, wherever applications write what
// they like.
func fillWith(t *testing.T, s *stage, name, text string) {
	t.Helper()
	ctx := t.Context()
	holder := s.member(t, "holder", text)
	lease, err := locks.NewMutex(holder, "/locks/"+name).Lock(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { _ = lease.Release(context.Background()) })
	waiting, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	joined := make(chan struct{})
	waiter := s.member(t, "waiter", text)
	go func() {
		defer close(done)
		_, _ = locks.NewMutex(waiter, "/locks/"+name, locks.WithOnWait(func(int) { close(joined) })).Lock(waiting)
	}()
	t.Cleanup(func() { stop(); <-done })
	<-joined

	term, err := election.New(holder, "/elections/"+name, election.WithID(text),
		election.WithMetadata(map[string]string{text: text})).Campaign(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { _ = term.Resign(context.Background()) })

	member, err := members.New(holder, "/groups/"+name).Join(ctx, text, members.Info{Version: text,
		Metadata: map[string]string{text: text}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = member.Leave(context.Background()) })
	require.NoError(t, members.New(holder, "/groups/"+name).Cordon(ctx, "absent "+text, members.WithAbsentMember(),
		members.WithReason(text)))
	instance, err := registry.New(holder, "/services").Register(ctx, registry.Instance{Service: name, ID: name,
		Address: "host", Port: 80, Metadata: map[string]string{text: text}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = instance.Close(context.Background()) })
	value := config.New(holder, "/config/"+name, codec.Text())
	require.NoError(t, value.Set(ctx, "same\nold\n"+text))
	require.NoError(t, value.Set(ctx, "same\n"+text+"\n"+text, config.WithNote(text)))

	q := queue.New(holder, "/queues/"+name, codec.Text())
	require.NoError(t, q.Put(ctx, text))
	t.Cleanup(func() { _ = q.Close(context.Background()) })

	jobs := scheduler.New(holder, "/jobs")
	require.NoError(t, jobs.Add(scheduler.Job{Name: name, Spec: "0 3 * * *", Description: text,
		Run: func(context.Context, scheduler.Run) error { return nil }}))
	running, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- jobs.Run(running) }()
	t.Cleanup(func() { end(); <-ended })
	require.Eventually(t, func() bool { _, err := jobs.State(ctx, name); return err == nil }, wait, tick)
}

// targets are all pages of what fill makes.
func targets(name string) []string {
	q := url.QueryEscape
	return []string{"", "locks", "lock?path=" + q("/locks/"+name), "elections",
		"election?path=" + q("/elections/"+name), "jobs", "job?path=" + q("/jobs/"+name), "queues",
		"queue?path=" + q("/queues/"+name), "barriers", "workflows",
		"members", "group?path=" + q("/groups/"+name), "services", "service?path=" + q("/services/"+name),
		"configuration", "value?path=" + q("/config/"+name),
		"sessions", "session?id=0x1", "doctor", "search?q=" + q(name),
		"confirm?do=pause-queue&seen=" + q("goes on") + "&path=" + q("/queues/"+name),
		"confirm?do=signal&seen=" + q(name) + "&path=/flows&node=" + q(name)}
}

// hostile is a name that ZooKeeper permits and that no page may repeat as it is.
const hostile = `<script>alert(1)</script>"'&` + "\u202e" + `\x`

func TestPagesEscapeNames(t *testing.T) { synctest.Test(t, testPagesEscapeNames) }

func testPagesEscapeNames(t *testing.T) {
	s := newStage(t, ui.WithActions())
	name := strings.ReplaceAll(hostile, "/", "_")
	fill(t, s, name)
	for _, target := range targets(name) {
		t.Log(target)
		r := s.get(t, target)
		body := text(t, r)
		require.Equal(t, http.StatusOK, r.StatusCode, body)
		require.NotContains(t, body, "<script>alert")
		require.NotContains(t, body, "\u202e")
		require.NotRegexp(t, `(?i)\son[a-z]+=|style=|javascript:`, body, "the policy forbids inline scripts and styles")
		require.NotContains(t, body, "ZgotmplZ")
		require.Contains(t, r.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'")
		for _, link := range regexp.MustCompile(`(?:href|src|action)="([^"]*)"`).FindAllStringSubmatch(body, -1) {
			require.NotRegexp(t, `^(/|[a-z]+:)`, link[1], "links are relative, for any prefix")
		}
		checkBalance(t, body)
	}
}

// checkBalance checks that each element of these kinds is closed.
func checkBalance(t *testing.T, body string) {
	t.Helper()
	for _, element := range strings.Fields("div section table tbody tr td th ul dl a span p svg") {
		opened := len(regexp.MustCompile(`<`+element+`[\s>]`).FindAllString(body, -1))
		require.Equal(t, opened, strings.Count(body, "</"+element+">"), element)
	}
}

func TestPagesAsJSON(t *testing.T) { synctest.Test(t, testPagesAsJSON) }

func testPagesAsJSON(t *testing.T) {
	s := newStage(t)
	fill(t, s, "one")
	for _, target := range targets("one") {
		name, query, _ := strings.Cut(target, "?")
		if name == "confirm" {
			continue
		}
		if name == "" {
			name = "index"
		}
		r := s.get(t, name+".json?"+query)
		require.Equal(t, http.StatusOK, r.StatusCode, target)
		var v any
		require.NoError(t, json.NewDecoder(r.Body).Decode(&v), target)
	}
	var report locks.Report
	require.NoError(t, json.NewDecoder(s.get(t, "lock.json?path=/locks/one").Body).Decode(&report))
	require.Len(t, report.Waiters, 1)
}

func TestRefusals(t *testing.T) { synctest.Test(t, testRefusals) }

func testRefusals(t *testing.T) {
	s := newStage(t, ui.WithRoot("/apps"), ui.WithHosts("ops.example"))
	for target, want := range map[string]int{
		"nothing": 404, "lock?path=nothing": 404, "lock?path=/other": 404, "lock?path=/apps/none": 404,
		"job?path=/apps/x": 404, "queue": 404, "election?path=/apps/none": 404, "session?id=x": 404,
		"workflow?path=/apps/w&id=1": 404, "group?path=/apps/none": 404, "group?path=/other": 404,
		"service?path=/apps/none": 404, "service?path=/x": 404, "value?path=/apps/none": 404, "value?path=/other": 404,
		"confirm?do=explode": 404, "confirm?do=revoke&path=/apps/x": 403,
		"events?page=nothing": 404, "lock.json?path=x": 404,
	} {
		r := s.get(t, target)
		require.Equal(t, want, r.StatusCode, "%s: %s", target, text(t, r))
	}
	for host, want := range map[string]int{"localhost:8080": 200, "127.0.0.1:1": 200, "[::1]:8080": 200,
		"OPS.example": 200, "evil.example": 421, "localhost.evil.example": 421, "": 421} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		require.Equal(t, want, s.do(t, r).StatusCode, host)
	}
	r := httptest.NewRequest(http.MethodPut, "http://localhost/", nil)
	require.Equal(t, 405, s.do(t, r).StatusCode)
	require.Equal(t, 400, s.post(t, "act", url.Values{"do": {strings.Repeat("x", 1<<20)}}).StatusCode)
	acting := newStage(t, ui.WithRoot("/apps"), ui.WithActions())
	for target, want := range map[string]int{"act?do=explode&path=/apps/x": 404, "act?do=revoke&path=/other": 404,
		"act?do=revoke&path=x": 404, "act": 404, "nothing": 404, "act?do=signal&path=/apps/x&node=run": 400,
		"act?do=signal&path=/apps/x&node=run&signal=s&data=no": 400} {
		r := acting.post(t, target, nil)
		require.Equal(t, want, r.StatusCode, "%s: %s", target, text(t, r))
	}
	require.Equal(t, 403, s.post(t, "act?do=revoke&path=/apps/x", nil).StatusCode, "actions are off")
}

func TestOptionsRefuse(t *testing.T) {
	client := zktest.Start(t).Member(t, "page", framework.Config{}).Client
	for _, opt := range []ui.Option{ui.WithRoot("x"), ui.WithInterval(1), ui.WithZone(nil), ui.WithHosts("a:1"),
		ui.WithAuthorize(nil), ui.WithUser(nil), ui.WithExamination(nil)} {
		_, err := ui.New(client, opt)
		require.ErrorIs(t, err, framework.ErrInvalid)
	}
	_, err := ui.New(nil)
	require.ErrorIs(t, err, framework.ErrInvalid)
}

func TestAuthorize(t *testing.T) { synctest.Test(t, testAuthorize) }

func testAuthorize(t *testing.T) {
	s := newStage(t, ui.WithActions(), ui.WithAuthorize(func(r *http.Request, a ui.Action) error {
		if a.Kind != ui.ActionView || r.Header.Get("User") == "" {
			return fmt.Errorf("<b>no</b>")
		}
		return nil
	}))
	r := s.get(t, "locks")
	require.Equal(t, 403, r.StatusCode)
	require.Contains(t, text(t, r), "&lt;b&gt;no&lt;/b&gt;")
	asked := httptest.NewRequest(http.MethodGet, "http://localhost/locks", nil)
	asked.Header.Set("User", "ann")
	require.Equal(t, 200, s.do(t, asked).StatusCode)
	require.Equal(t, 403, s.post(t, "act", url.Values{"do": {"pause-queue"}, "path": {"/q"}}, "User", "ann").StatusCode)
}

// form is what the confirmation of an action sends.
func (s *stage) form(t *testing.T, page, do string) url.Values {
	t.Helper()
	body := text(t, s.get(t, page))
	found := regexp.MustCompile(`href="confirm\?(do=` + do + `&amp;[^"]*)"`).FindStringSubmatch(body)
	require.NotNil(t, found, body)
	query, err := url.ParseQuery(html.UnescapeString(found[1]))
	require.NoError(t, err)
	confirm := s.get(t, "confirm?"+query.Encode())
	require.Equal(t, 200, confirm.StatusCode)
	act := regexp.MustCompile(`action="act\?([^"]*)"`).FindStringSubmatch(text(t, confirm))
	require.NotNil(t, act)
	form, err := url.ParseQuery(html.UnescapeString(act[1]))
	require.NoError(t, err)
	return form
}

func TestActions(t *testing.T) { synctest.Test(t, testActions) }

func testActions(t *testing.T) {
	s := newStage(t, ui.WithActions())
	fill(t, s, "one")
	ctx := t.Context()
	for _, action := range []struct {
		page, do string
		check    func()
	}{
		{"lock?path=/locks/one", "revoke", func() {
			r, err := locks.Inspect(ctx, s.client, "/locks/one")
			require.NoError(t, err)
			require.True(t, r.Holders[0].Revoked)
		}},
		{"queue?path=/queues/one", "pause-queue", func() {
			q := queue.New(s.client, "/queues/one", codec.Text())
			defer q.Close(ctx)
			paused, err := q.Paused(ctx)
			require.NoError(t, err)
			require.True(t, paused)
		}},
		{"queue?path=/queues/one", "resume-queue", func() {}},
		{"job?path=/jobs/one", "pause-job", func() {
			state, err := scheduler.New(s.client, "/jobs").State(ctx, "one")
			require.NoError(t, err)
			require.False(t, state.Paused.IsZero())
		}},
		{"job?path=/jobs/one", "resume-job", func() {}},
		{"job?path=/jobs/one", "trigger", func() {}},
	} {
		form := s.form(t, action.page, action.do)
		r := s.post(t, "act", form)
		require.Equal(t, http.StatusSeeOther, r.StatusCode, "%s: %s", action.do, text(t, r))
		require.Contains(t, text(t, s.get(t, r.Header.Get("Location"))), `aria-label="Done"`)
		action.check()
	}

	{ // what has changed meanwhile is refused
		form := s.form(t, "queue?path=/queues/one", "pause-queue")
		q := queue.New(s.client, "/queues/one", codec.Text())
		defer q.Close(ctx)
		require.NoError(t, q.Pause(ctx))
		require.Equal(t, http.StatusConflict, s.post(t, "act", form).StatusCode)

		form = s.form(t, "lock?path=/locks/one", "evict")
		require.Equal(t, http.StatusSeeOther, s.post(t, "act", form).StatusCode)
		require.Equal(t, http.StatusConflict, s.post(t, "act", form).StatusCode)
	}
	{ // another site's form is refused
		form := s.form(t, "queue?path=/queues/one", "resume-queue")
		require.Equal(t, http.StatusForbidden, s.post(t, "act", form, "Sec-Fetch-Site", "cross-site").StatusCode)
		require.Equal(t, http.StatusForbidden, s.post(t, "act", form, "Origin", "https://evil.example").StatusCode)
	}
}

// TestHideData has a secret wherever an application can write, and asks for each page, its JSON and
// its stream. Without WithHideData the same pages must have secrets: else the test would prove
// nothing.
func TestHideData(t *testing.T) { synctest.Test(t, testHideData) }

func testHideData(t *testing.T) {
	for _, hide := range []bool{true, false} {
		var opts []ui.Option
		if hide {
			opts = append(opts, ui.WithHideData())
		}
		s := newStage(t, opts...)
		plantSecrets(t, s)
		found := map[string]bool{}
		scan := func(target, body string) {
			for _, kind := range secretKinds {
				if strings.Contains(body, "secret-"+kind) {
					found[kind] = true
					require.False(t, hide, "%s shows secret-%s:\n%s", target, kind, body)
				}
			}
		}
		for _, target := range append(targets("one"), "workflow?path=/flows&id=run", "lock?path=/locks/data") {
			scan(target, text(t, s.get(t, target)))
			name, query, _ := strings.Cut(target, "?")
			if name == "" {
				name = "index"
			}
			if name != "confirm" {
				scan(name+".json", text(t, s.get(t, name+".json?"+query)))
			}
		}
		if !hide {
			require.Len(t, found, len(secretKinds), "%v", found)
		}
	}
}

var secretKinds = []string{"metadata", "item", "reason", "letter", "header", "job", "description", "data", "input",
	"member", "instance", "payload", "value", "note"}

// plantSecrets makes one of each thing, with secrets where applications write what they like.
func plantSecrets(t *testing.T, s *stage) {
	t.Helper()
	ctx := t.Context()
	client := s.zk.Member(t, "writer", framework.Config{}).Client
	late := func(f func(context.Context) error) { t.Cleanup(func() { _ = f(context.Background()) }) }
	term, err := election.New(client, "/elections/one", election.WithID("one"),
		election.WithMetadata(map[string]string{"k": "secret-metadata"})).Campaign(ctx)
	require.NoError(t, err)
	late(term.Resign)
	for _, lock := range []string{"/locks/one", "/locks/data"} {
		lease, err := locks.NewMutex(client, lock, locks.WithData([]byte("secret-data"))).Lock(ctx)
		require.NoError(t, err)
		late(lease.Release)
	}

	q := queue.New(client, "/queues/one", codec.Text(), queue.WithMaxAttempts(1))
	late(q.Close)
	require.NoError(t, q.Put(ctx, "secret-letter", queue.WithHeaders(map[string]string{"k": "secret-header"})))
	d, err := q.Take(ctx)
	require.NoError(t, err)
	require.NoError(t, d.Nack(ctx, 0, errors.New("secret-reason")))
	require.NoError(t, q.Put(ctx, "secret-item"))
	_, err = q.Take(ctx)
	require.NoError(t, err)

	jobs := scheduler.New(client, "/jobs")
	require.NoError(t, jobs.Add(scheduler.Job{Name: "one", Spec: "0 3 * * *", Description: "secret-description",
		Run: func(context.Context, scheduler.Run) error { return scheduler.Permanent(errors.New("secret-job")) }}))
	running, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- jobs.Run(running) }()
	t.Cleanup(func() { end(); <-ended })
	require.Eventually(t, func() bool { return jobs.Trigger(ctx, "one") == nil }, wait, tick)
	require.Eventually(t, func() bool {
		state, err := jobs.State(ctx, "one")
		return err == nil && state.LastRun != nil
	}, wait, tick)

	member, err := members.New(client, "/groups/one").Join(ctx, "one", members.Info{
		Metadata: map[string]string{"k": "secret-member"}})
	require.NoError(t, err)
	late(member.Leave)
	instance, err := registry.New(client, "/services").Register(ctx, registry.Instance{Service: "one", ID: "one",
		Address: "host", Port: 80, Metadata: map[string]string{"k": "secret-instance"},
		Payload: json.RawMessage(`{"k":"secret-payload"}`)})
	require.NoError(t, err)
	late(instance.Close)
	require.NoError(t, config.New(client, "/config/one", codec.Text()).Set(ctx, "secret-value",
		config.WithNote("secret-note")))

	flows := workflow.New(client, "/flows")
	late(flows.Close)
	_, err = workflow.NewKind[string, string]("kind").Start(ctx, flows, "run", "secret-input")
	require.NoError(t, err)
}

// TestTransfer lets a candidate lead that stands by, by its button.
func TestTransfer(t *testing.T) { synctest.Test(t, testTransfer) }

func testTransfer(t *testing.T) {
	s := newStage(t, ui.WithAuthorize(func(*http.Request, ui.Action) error { return nil }))
	lead := func(id string) (led <-chan struct{}) {
		client := s.zk.Member(t, id, framework.Config{}).Client
		leads, ended := make(chan struct{}, 10), make(chan struct{})
		ctx, end := context.WithCancel(context.Background())
		go func() {
			defer close(ended)
			_ = election.New(client, "/elections/one", election.WithID(id)).Lead(ctx, func(ctx context.Context,
				_ *election.Term) error {
				leads <- struct{}{}
				<-ctx.Done()
				return nil
			})
		}()
		t.Cleanup(func() { end(); <-ended })
		return leads
	}
	<-lead("first")
	second := lead("a/second")
	require.Eventually(t, func() bool {
		all, err := election.New(s.client, "/elections/one").Candidates(t.Context())
		return err == nil && len(all) == 2
	}, wait, tick)
	require.Eventually(t, func() bool {
		return strings.Contains(text(t, s.get(t, "election?path=/elections/one")), "do=transfer")
	}, wait, tick)
	form := s.form(t, "election?path=/elections/one", "transfer")
	require.Equal(t, "a/second", form.Get("node"))
	require.Contains(t, text(t, s.get(t, "confirm?"+form.Encode())), "hand over to a/second")
	r := s.post(t, "act", form)
	require.Equal(t, http.StatusSeeOther, r.StatusCode, text(t, r))
	<-second
	require.Equal(t, http.StatusConflict, s.post(t, "act", form).StatusCode, "another one leads by now")
}

// TestConfirmationsAreAuthorized asks for a confirmation that the user may not have.
func TestConfirmationsAreAuthorized(t *testing.T) { synctest.Test(t, testConfirmationsAreAuthorized) }

func testConfirmationsAreAuthorized(t *testing.T) {
	s := newStage(t, ui.WithAuthorize(func(_ *http.Request, a ui.Action) error {
		if a.Kind != ui.ActionView {
			return errors.New("only scanning")
		}
		return nil
	}))
	r := s.get(t, "confirm?do=revoke&path=/locks/one&node=/locks/one/x&seen=1")
	require.Equal(t, http.StatusForbidden, r.StatusCode)
	require.Contains(t, text(t, r), "only scanning")
}

// TestWhyTermsEnded: scans tell a leader that goes on with something else from one that is gone.
func TestWhyTermsEnded(t *testing.T) { synctest.Test(t, testWhyTermsEnded) }

func testWhyTermsEnded(t *testing.T) {
	s := newStage(t)
	page := func(query string) string { return text(t, s.get(t, "election?path=/elections/one"+query)) }
	lead := func(client *framework.Client, id string) *election.Term {
		term, err := election.New(client, "/elections/one", election.WithID(id)).Campaign(t.Context())
		require.NoError(t, err)
		page("")
		time.Sleep(2 * time.Hour)
		page("")
		return term
	}
	client := s.member(t, "first", "first")
	lease, err := locks.NewMutex(client, "/locks/one").Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, lead(client, "first").Resign(t.Context()))
	require.NoError(t, lead(s.member(t, "second", "second"), "second").Resign(t.Context()))
	last := lead(client, "third")
	time.Sleep(time.Minute) // why is known by the next scan
	require.Regexp(t, `(?s)>first<.*>it resigned or handed over: its session goes on<.*>second<.*`+
		`>it is gone: its session has nothing here any more<.*>third<`, page(""))
	require.Contains(t, page(""), "first leads, 2000-01-01 00:00:00")
	ranged := page("&range=1h")
	require.NotContains(t, ranged, "first leads,", "that is longer ago")
	require.Contains(t, ranged, "third leads, ")
	require.Contains(t, ranged, `<a href="?path=%2Felections%2Fone&amp;range=1h" aria-current="true">1h</a>`)
	require.NoError(t, last.Resign(t.Context()))
	require.NoError(t, lease.Release(t.Context()))
}

// TestTimelineOfTerms draws a former term, the time without a leader, and the term that goes on.
func TestTimelineOfTerms(t *testing.T) { synctest.Test(t, testTimelineOfTerms) }

func testTimelineOfTerms(t *testing.T) {
	s := newStage(t)
	const page = "election?path=/elections/one"
	lead := func(id string) *election.Term {
		term, err := election.New(s.zk.Member(t, id, framework.Config{}).Client, "/elections/one",
			election.WithID(id)).Campaign(t.Context())
		require.NoError(t, err)
		return term
	}
	bars := func() (classes []string) {
		body := text(t, s.get(t, page))
		for _, bar := range regexp.MustCompile(`<rect class="(b-[a-z]+)" x="[0-9.]+%"`).FindAllStringSubmatch(body, -1) {
			classes = append(classes, bar[1])
		}
		return classes
	}
	first := lead("<first>")
	require.Equal(t, []string{"b-busy"}, bars())
	time.Sleep(time.Minute)
	require.NoError(t, first.Resign(t.Context()))
	text(t, s.get(t, page))
	time.Sleep(time.Minute)
	require.Equal(t, []string{"b-rest", "b-missed"}, bars())
	second := lead("second")
	time.Sleep(time.Minute)
	require.Equal(t, []string{"b-rest", "b-missed", "b-busy"}, bars())
	require.Contains(t, text(t, s.get(t, page)), "<title>&lt;first&gt; leads, ")
	require.NoError(t, second.Resign(t.Context()))
}

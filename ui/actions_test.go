package ui_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/testkit/logtest"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/ui"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// act does an action by its button and its confirmation, which must succeed, and returns the form.
func (s *stage) act(t *testing.T, page, do string) url.Values {
	t.Helper()
	time.Sleep(2 * time.Second) // the hub scans anew
	form := s.form(t, page, do)
	r := s.post(t, "act", form)
	require.Equal(t, http.StatusSeeOther, r.StatusCode, "%s: %s", do, text(t, r))
	require.Contains(t, text(t, s.get(t, r.Header.Get("Location"))), `aria-label="Done"`)
	return form
}

// refused sends a form, which must be refused with the present state.
func (s *stage) refused(t *testing.T, form url.Values, now string) {
	t.Helper()
	r := s.post(t, "act", form)
	body := text(t, r)
	require.Equal(t, http.StatusConflict, r.StatusCode, body)
	require.Contains(t, body, now)
	require.Contains(t, body, "Back to the page")
}

// TestDeadLetterActions puts dead letters back and deletes them, and refuses to when there are
// others.
func TestDeadLetterActions(t *testing.T) { synctest.Test(t, testDeadLetterActions) }

func testDeadLetterActions(t *testing.T) {
	s := newStage(t, ui.WithActions())
	ctx := t.Context()
	q := queue.New(s.client, "/queues/one", codec.Text(), queue.WithMaxAttempts(1))
	defer q.Close(context.Background())
	bury := func() {
		require.NoError(t, q.Put(ctx, "item"))
		d, err := q.Take(ctx)
		require.NoError(t, err)
		require.NoError(t, d.Nack(ctx, 0, errors.New("fails")))
	}
	counts := func() queue.Counts {
		counts, err := q.Counts(ctx)
		require.NoError(t, err)
		return counts
	}
	bury()
	bury()
	const page = "queue?path=/queues/one"
	all := s.form(t, page, "requeue")
	require.Regexp(t, "^2 [0-9a-f]+$", all.Get("seen"))
	require.Contains(t, text(t, s.get(t, "confirm?"+all.Encode())), "without their attempts: all 2 of them.")
	body := text(t, s.get(t, page))
	require.Equal(t, 3, strings.Count(body, "do=requeue&amp;"), "all, and each of the two")
	var node string
	for letter, err := range q.DeadLetters(ctx) {
		require.NoError(t, err)
		node = letter.Node
	}
	one := url.Values{"do": {"requeue"}, "path": {"/queues/one"}, "node": {node}, "seen": {"one"}}
	require.Contains(t, text(t, s.get(t, "confirm?"+one.Encode())), "without their attempts")
	require.Equal(t, http.StatusSeeOther, s.post(t, "act", one).StatusCode)
	require.Equal(t, 1, counts().Dead)
	require.Equal(t, 1, counts().Items)
	s.refused(t, one, "no such dead letter")
	s.refused(t, all, "Now the queue has 1 dead letter, which are not those of the page.")
	s.act(t, page, "requeue")
	require.Zero(t, counts().Dead)
	require.Equal(t, 2, counts().Items)

	for range 2 {
		d, err := q.Take(ctx)
		require.NoError(t, err)
		require.NoError(t, d.Nack(ctx, 0, errors.New("fails")))
	}
	for letter, err := range q.DeadLetters(ctx) {
		require.NoError(t, err)
		node = letter.Node
	}
	one = url.Values{"do": {"purge-dead"}, "path": {"/queues/one"}, "node": {node}, "seen": {"one"}}
	time.Sleep(2 * time.Second) // the hub scans anew
	require.Equal(t, 3, strings.Count(text(t, s.get(t, page)), "do=purge-dead&amp;"), "all, and each of the two")
	require.Contains(t, text(t, s.get(t, "confirm?"+one.Encode())), node[strings.LastIndexByte(node, '/')+1:])
	require.Equal(t, http.StatusSeeOther, s.post(t, "act", one).StatusCode)
	require.Equal(t, 1, counts().Dead, "only this one")
	s.refused(t, one, "no such dead letter")
	purge := s.act(t, page, "purge-dead")
	require.Zero(t, counts().Dead)
	s.refused(t, purge, "Now the queue has 0 dead letters")
	bury()
	s.refused(t, purge, "Now the queue has 1 dead letter") // as many as the page has shown, but another one
	require.Equal(t, 1, counts().Dead)
}

// TestActionsOnWhatIsGone say that it is gone, and not that it may have been done.
func TestActionsOnWhatIsGone(t *testing.T) { synctest.Test(t, testActionsOnWhatIsGone) }

func testActionsOnWhatIsGone(t *testing.T) {
	s := newStage(t, ui.WithActions())
	for _, form := range []url.Values{
		{"do": {"revoke"}, "path": {"/locks/x"}, "node": {"/locks/x/n"}, "seen": {"7"}},
		{"do": {"evict"}, "path": {"/locks/x"}, "node": {"/locks/x/n"}, "seen": {"7"}},
		{"do": {"transfer"}, "path": {"/elections/x"}, "node": {"b"}, "seen": {"7"}},
		{"do": {"trigger"}, "path": {"/jobs/x"}, "seen": {"goes on since 7"}},
		{"do": {"pause-queue"}, "path": {"/queues/x"}, "seen": {"goes on"}},
		{"do": {"purge-dead"}, "path": {"/queues/x"}, "seen": {"2 7"}},
		{"do": {"cancel"}, "path": {"/flows/x"}, "node": {"run"}, "seen": {"7"}},
		{"do": {"retry"}, "path": {"/flows/x"}, "node": {"run"}, "seen": {"7"}},
		{"do": {"signal"}, "path": {"/flows/x"}, "node": {"run"}, "seen": {"7"}, "signal": {"go"}},
		{"do": {"cordon"}, "path": {"/groups/x"}, "node": {"a"}, "seen": {"active"}},
		{"do": {"rollback"}, "path": {"/config/x"}, "node": {"3"}, "seen": {"7"}},
	} {
		s.refused(t, form, "Lockstep")
		require.Empty(t, s.zk.Children("/"+strings.Split(form.Get("path"), "/")[1]))
	}
}

// TestAnActionThatIsInterrupted is done once, and the page shows that: its reply is lost, or the
// session of the page's client expires before it or while its reply is on its way.
func TestAnActionThatIsInterrupted(t *testing.T) {
	for name, interrupt := range map[string]func(s *stage, page framework.SessionID) (interrupted <-chan struct{}){
		"its reply is lost": func(s *stage, page framework.SessionID) <-chan struct{} {
			return s.zk.DropReply(1, zktest.Match{Op: zktest.OpMulti, Path: "/flows/runs", Session: page,
				Func: zktest.Request.Writes}).Hit()
		},
		"its session is gone": func(s *stage, page framework.SessionID) <-chan struct{} {
			expired := make(chan struct{})
			if s.zk.Expire(page) == nil {
				close(expired)
			}
			return expired
		},
		"its session ends meanwhile": func(s *stage, page framework.SessionID) <-chan struct{} {
			expired := make(chan struct{})
			s.link.Delay(100 * time.Millisecond)
			time.AfterFunc(350*time.Millisecond, func() {
				if s.zk.Expire(page) == nil {
					close(expired)
				}
			})
			return expired
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, ui.WithActions())
				flows := workflow.New(s.member(t, "program", "program"), "/flows")
				defer flows.Close(context.Background())
				_, err := workflow.NewKind[string, string]("kind").Start(t.Context(), flows, "run", "input")
				require.NoError(t, err)
				for _, do := range []string{"cancel", "retry"} {
					time.Sleep(2 * time.Second) // the hub scans anew
					form := s.form(t, "workflow?path=/flows&id=run", do)
					page, err := s.client.Session(t.Context())
					require.NoError(t, err)
					interrupted := interrupt(s, page.ID())
					r := s.post(t, "act", form)
					require.Equal(t, http.StatusSeeOther, r.StatusCode, text(t, r))
					<-interrupted
					s.link.Delay(0)
					s.refused(t, form, "Now the run is ")
				}
			})
		})
	}
}

// TestMemberActions cordons, drains and uncordons a member, and refuses to when its state is
// another.
func TestMemberActions(t *testing.T) { synctest.Test(t, testMemberActions) }

func testMemberActions(t *testing.T) {
	s := newStage(t, ui.WithActions())
	ctx := t.Context()
	group := members.New(s.zk.Member(t, "member", framework.Config{}).Client, "/groups/one")
	release := make(chan struct{})
	member, err := group.Join(ctx, "a/b", members.Info{}, members.WithDrain(func(ctx context.Context,
		_ members.Cordon) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	require.NoError(t, err)
	t.Cleanup(func() { _ = member.Leave(context.Background()) })
	const page = "group?path=/groups/one"
	becomes := func(want members.State) {
		t.Helper()
		require.Eventually(t, func() bool {
			view, err := group.Inspect(ctx)
			return err == nil && view.Members[0].State == want
		}, wait, tick)
	}
	cordon := s.act(t, page, "cordon")
	require.Equal(t, "a/b", cordon.Get("node"))
	becomes(members.Cordoned)
	s.refused(t, cordon, "Now the member is cordoned.")
	s.act(t, page, "uncordon")
	becomes(members.Active)
	drain := s.act(t, page, "drain") // it returns before the member has drained
	becomes(members.Draining)
	s.refused(t, drain, "Now the member is draining.")
	close(release)
	becomes(members.Drained)
	s.act(t, page, "uncordon")
	becomes(members.Active)
	drain.Set("node", "nobody")
	s.refused(t, drain, "Now the member is not there.")
}

// TestRollBack rolls a value back, and refuses to when it has another version.
func TestRollBack(t *testing.T) { synctest.Test(t, testRollBack) }

func testRollBack(t *testing.T) {
	s := newStage(t, ui.WithActions())
	ctx := t.Context()
	v := config.New(s.client, "/config/one", codec.Text())
	require.NoError(t, v.Set(ctx, "same\nfirst"))
	require.NoError(t, v.Set(ctx, "same\nsecond\nadded"))
	const page = "value?path=/config/one"
	body := text(t, s.get(t, page))
	require.Regexp(t, `(?s)<td class="code">same</td>.*class="del".*first.*class="add".*second.*class="add".*added`, body)
	form := s.act(t, page, "rollback")
	now, err := v.Load(ctx)
	require.NoError(t, err)
	require.Equal(t, "same\nfirst", now.Value)
	s.refused(t, form, "Now the value has version")
	r := s.get(t, page+"&version="+form.Get("seen"))
	require.Equal(t, http.StatusOK, r.StatusCode)
	require.Contains(t, text(t, r), "added")
	require.Equal(t, http.StatusNotFound, s.get(t, page+"&version=7").StatusCode)
}

// TestRunActions signals, cancels and retries a run.
func TestRunActions(t *testing.T) { synctest.Test(t, testRunActions) }

func testRunActions(t *testing.T) {
	s := newStage(t, ui.WithActions())
	ctx := t.Context()
	flows := workflow.New(s.client, "/flows")
	defer flows.Close(context.Background())
	_, err := workflow.NewKind[string, string]("kind").Start(ctx, flows, "run", "input")
	require.NoError(t, err)
	const page = "workflow?path=/flows&id=run"
	signal := s.form(t, page, "signal")
	require.Equal(t, http.StatusBadRequest, s.post(t, "act", signal).StatusCode, "it has no name")
	signal.Set("signal", "approved")
	signal.Set("data", "{")
	require.Equal(t, http.StatusBadRequest, s.post(t, "act", signal).StatusCode, "it has no JSON")
	signal.Set("data", `{"by":"ann"}`)
	require.Equal(t, http.StatusSeeOther, s.post(t, "act", signal).StatusCode)
	info, err := flows.Inspect(ctx, "run")
	require.NoError(t, err)
	require.Equal(t, []string{"approved"}, info.Signals)

	cancel := s.act(t, page, "cancel")
	s.refused(t, cancel, "Now the run is "+string(workflow.Cancelled))
	retry := s.act(t, page, "retry")
	info, err = flows.Inspect(ctx, "run")
	require.NoError(t, err)
	require.False(t, info.State.IsFinished())
	s.refused(t, retry, "Now the run is "+string(info.State))
	retry.Set("seen", "another")
	s.refused(t, retry, "another run has this id")
}

// TestActionsAreRecorded with who has asked for them, or else the remote address.
func TestActionsAreRecorded(t *testing.T) { synctest.Test(t, testActionsAreRecorded) }

func testActionsAreRecorded(t *testing.T) {
	var log logtest.Buffer
	zk := zktest.Start(t)
	client := zk.Member(t, "page", framework.Config{}, framework.WithLogger(slog.New(slog.NewTextHandler(&log,
		nil)))).Client
	page, err := ui.New(client, ui.WithActions(), ui.WithUser(func(r *http.Request) string {
		return r.Header.Get("User")
	}))
	require.NoError(t, err)
	defer page.Close()
	s := &stage{zk: zk, client: client, page: page}
	q := queue.New(client, "/q", codec.Text())
	defer q.Close(context.Background())
	require.NoError(t, q.Put(t.Context(), "item"))
	form := url.Values{"do": {"pause-queue"}, "path": {"/q"}, "seen": {"goes on"}}
	require.Equal(t, http.StatusSeeOther, s.post(t, "act", form, "User", "ann").StatusCode)
	require.Regexp(t, `action=pause-queue path=/q .*who=ann from=192`, log.String())
	require.Equal(t, http.StatusConflict, s.post(t, "act", form).StatusCode)
	require.Regexp(t, `action=pause-queue path=/q .*who=192[^ ]* from=192`, log.String())
}

// TestExamination runs when a visitor asks for it, and no second one meanwhile.
func TestExamination(t *testing.T) { synctest.Test(t, testExamination) }

func testExamination(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	s := newStage(t, ui.WithExamination(func(context.Context) ([]ui.Check, error) {
		began <- struct{}{}
		<-end
		return []ui.Check{{Name: "quorum", OK: true, Text: "<b>three</b>"}, {Name: "clock", Text: "late",
			Advice: "use NTP"}, {Name: "acl", OK: true, Text: "open", Advice: "close it"}}, errors.New("lost <i>it</i>")
	}))
	require.Contains(t, text(t, s.get(t, "doctor")), "Nothing was examined yet")
	require.Equal(t, http.StatusForbidden, s.post(t, "examine", nil, "Sec-Fetch-Site", "cross-site").StatusCode)
	first := make(chan *http.Response, 1)
	go func() { first <- s.post(t, "examine", nil) }()
	<-began
	require.Equal(t, http.StatusConflict, s.post(t, "examine", nil).StatusCode)
	close(end)
	require.Equal(t, http.StatusSeeOther, (<-first).StatusCode)
	body := text(t, s.get(t, "doctor"))
	for _, want := range []string{"&lt;b&gt;three", "use NTP", "lost &lt;i&gt;it", "</dt><dd>1<small>of 3 checks",
		">warning<", "close it"} {
		require.Contains(t, body, want)
	}
	require.NotContains(t, body, "<b>three")
	require.Contains(t, text(t, s.get(t, "doctor.json")), `"check": "quorum"`)
	require.Equal(t, http.StatusNotFound, newStage(t).post(t, "examine", nil).StatusCode)
}

// TestSessionsAreListed with what each has.
func TestSessionsAreListed(t *testing.T) { synctest.Test(t, testSessionsAreListed) }

func testSessionsAreListed(t *testing.T) {
	s := newStage(t)
	fill(t, s, "one")
	body := text(t, s.get(t, "sessions.json"))
	require.Regexp(t, `(?s)"holds": [1-9],\s*"waits": 0.*"holds": 0,\s*"waits": 1`, body, "the holder, then the waiter")
	require.Contains(t, text(t, s.get(t, "sessions?q=one")), `href="session?id=0x`)
	require.Contains(t, text(t, s.get(t, "sessions?q=nobody")), "No session matches")
}

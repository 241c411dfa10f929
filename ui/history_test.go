package ui_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/ui"
	"github.com/lockstep-go/lockstep/workflow"
	"github.com/lockstep-go/lockstep/zktest"
)

// words are what a reader sees of a page.
func (s *stage) words(t *testing.T, target string) string {
	t.Helper()
	page := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(text(t, s.get(t, target)), " ")
	return strings.Join(strings.Fields(page), " ")
}

// TestTimelineOfAJob draws its runs, in the range that was chosen.
func TestTimelineOfAJob(t *testing.T) {
	inTrouble(t, func(t *testing.T, on *trouble) {
		jobs := scheduler.New(on.member(t, "runner", "runner"), "/cron")
		fails := true
		require.NoError(t, jobs.Add(scheduler.Job{Name: "one", Spec: "0 * * * *",
			Run: func(context.Context, scheduler.Run) error {
				time.Sleep(10 * time.Minute)
				if fails {
					fails = false
					return errors.New("fails")
				}
				return nil
			}}))
		on.tasks.Go(func() { _ = jobs.Run(on.ctx) })
		time.Sleep(2*time.Hour + 15*time.Minute)
		classes := func(query string) (all []string) {
			page := text(t, on.get(t, "job?path=/cron/one"+query))
			for _, found := range regexp.MustCompile(`<rect class="(b-[a-z]+)" x="[0-9.]+%"`).FindAllStringSubmatch(page, -1) {
				all = append(all, found[1])
			}
			return all
		}
		require.Equal(t, []string{"b-warn", "b-good"}, classes(""))
		require.Equal(t, []string{"b-good"}, classes("&range=1h"))
		page := text(t, on.get(t, "job?path=/cron/one"))
		require.Contains(t, page, "<title>run 2: succeeded, 2000-01-01 02:00:00 to ")
	}, ui.WithInterval(time.Minute))
}

// TestAQueueShowsAgesAndWhatHasComeBack after a consumer has given an item back.
func TestAQueueShowsAgesAndWhatHasComeBack(t *testing.T) {
	inTrouble(t, func(t *testing.T, on *trouble) {
		q := on.queue(on.member(t, "consumer", "consumer"), "/queues/one")
		require.NoError(t, q.Put(on.ctx, "item"))
		d, err := q.Take(on.ctx)
		require.NoError(t, err)
		require.NoError(t, d.Nack(on.ctx, 0, errors.New("mailbox is full")))
		time.Sleep(2 * time.Minute)
		words := on.words(t, "queue?path=/queues/one")
		require.Regexp(t, `Items that have come back 1 Item \S+ Attempts 1 Last error mailbox is full`, words)
		require.Regexp(t, `the oldest item, at most (1m4|1m5|2m0)`, words)
	})
}

// TestExecutorsOfARun: the one whose session is gone is lost, and a further one has the run.
func TestExecutorsOfARun(t *testing.T) {
	inTrouble(t, func(t *testing.T, on *trouble) {
		kind := workflow.NewKind[string, string]("kind")
		work := func(name string) *zktest.Link {
			member := on.zk.Member(t, name, framework.Config{Identity: name})
			flows := workflow.New(member.Client, "/flows")
			step := func(ctx context.Context, _ workflow.Key) error { <-ctx.Done(); return ctx.Err() }
			execute := func(ctx context.Context, run *workflow.Run, _ string) (string, error) {
				return "", run.Do(ctx, "step", step)
			}
			require.NoError(t, flows.Register(kind.Function(execute)))
			on.tasks.Go(func() { _ = flows.Work(on.ctx) })
			on.last = append(on.last, func() { _ = flows.Close(context.Background()) })
			return member.Link
		}
		first := work("first")
		flows := workflow.New(on.client, "/flows")
		_, err := kind.Start(on.ctx, flows, "run", "input")
		require.NoError(t, err)
		on.last = append(on.last, func() { _ = flows.Close(context.Background()) })
		time.Sleep(10 * time.Second)
		require.Regexp(t, `Executors .* first 0x\w+ \S+ has it`, on.words(t, "workflow?path=/flows&id=run"))
		work("second")
		first.Cut()
		time.Sleep(2 * time.Minute)
		require.Regexp(t, `first 0x\w+ \S+ \S+ lost: its session has nothing here any more second 0x\w+ \S+ has it`,
			on.words(t, "workflow?path=/flows&id=run"))
	})
}

// TestAMissingThingIsAnsweredWithThoseThatThereAre, up to ten.
func TestAMissingThingIsAnsweredWithThoseThatThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		fill(t, s, "one")
		for target, want := range map[string]string{"lock?path=/none": "There is locks/ one",
			"job?path=/none": "There is jobs/ one", "queue?path=/none": "There is queues/ one",
			"election?path=/none": "There is elections/ one jobs/ election",
			"value?path=/none":    "The menu lists what there is."} {
			require.Contains(t, s.words(t, target), want)
		}
		require.Contains(t, text(t, s.get(t, "lock?path=/none")), `href="lock?path=%2Flocks%2Fone"`)
		for i := range 12 {
			q := queue.New(s.client, "/more/"+string(rune('a'+i)), codec.Text())
			require.NoError(t, q.Put(t.Context(), "item"))
			require.NoError(t, q.Close(t.Context()))
		}
		time.Sleep(time.Minute)
		require.Contains(t, s.words(t, "queue?path=/none"), "more/ j and 3 more")
	})
}

// TestWhatWasReadStaysWhileNoServerAnswers: the list of members was open, that of values was not.
// A run is shown without its steps.
func TestWhatWasReadStaysWhileNoServerAnswers(t *testing.T) {
	inTrouble(t, func(t *testing.T, on *trouble) {
		fill(t, on.stage, "one")
		flows := workflow.New(on.member(t, "starts", "starts"), "/flows")
		on.last = append(on.last, func() { _ = flows.Close(context.Background()) })
		_, err := workflow.NewKind[string, string]("kind").Start(on.ctx, flows, "run", "input")
		require.NoError(t, err)
		_, closePage := on.open(t, "members")
		defer closePage()
		time.Sleep(time.Minute)
		on.link.Cut()
		time.Sleep(time.Minute)
		members := on.words(t, "members")
		require.Contains(t, members, "No answer from ZooKeeper since")
		require.Contains(t, members, "Below is what was seen at")
		require.Contains(t, members, "groups/ one")
		require.Contains(t, on.words(t, "workflow?path=/flows&id=run"), "They were not read before.")
		r := on.get(t, "configuration")
		require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
		body := text(t, r)
		require.Contains(t, body, "No server answers at present, and this was not read before; reload the page later.")
		require.NotContains(t, body, "Below is what was seen")
		on.link.Heal()
		time.Sleep(time.Minute)
		require.Contains(t, on.words(t, "configuration"), "config/ one")
	})
}

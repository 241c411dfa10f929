package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
)

// ActionKind says what a request does.
type ActionKind string

// The kinds.
const (
	ActionView        ActionKind = "view"    // at a page
	ActionExamine     ActionKind = "examine" // the cluster; see WithExamination
	ActionRevoke      ActionKind = "revoke"
	ActionEvict       ActionKind = "evict"
	ActionTransfer    ActionKind = "transfer"
	ActionTriggerJob  ActionKind = "trigger"
	ActionPauseJob    ActionKind = "pause-job"
	ActionResumeJob   ActionKind = "resume-job"
	ActionPauseQueue  ActionKind = "pause-queue"
	ActionResumeQueue ActionKind = "resume-queue"
	ActionRequeue     ActionKind = "requeue"
	ActionPurgeDead   ActionKind = "purge-dead"
	ActionCancelRun   ActionKind = "cancel"
	ActionRetryRun    ActionKind = "retry"
	ActionSignalRun   ActionKind = "signal"
	ActionCordon      ActionKind = "cordon"
	ActionUncordon    ActionKind = "uncordon"
	ActionDrain       ActionKind = "drain"
	ActionRollback    ActionKind = "rollback"
)

const (
	maxFormBytes = 16 << 10
	actionTime   = 15 * time.Second // an action may take
)

// Action is what a request does, and to what.
type Action struct {
	Kind ActionKind
	Path string // "" for ActionView and ActionExamine
	// Node is what the action is about at the path: the holder's node, the id of a candidate, a
	// member or a run, a dead letter's node, or the version to roll back to; or "".
	Node string
	// Seen is what the page has shown of it: the fencing token of the lease or the term, the state
	// of a job, a queue or a member, which dead letters there are, the UUID of a run, or the
	// version of a value. The action is refused if that is not so any more.
	Seen string
	// Signal is the name of ActionSignalRun's signal, and Data its data as JSON. Both are "" until
	// the form of the confirmation is sent.
	Signal, Data string
}

// actionDef is what the pages know of a kind of action.
type actionDef struct {
	page   string // that has its button
	button string
	what   string // what happens, for the confirmation; %s is the node
	done   string
	danger bool
	// do does it. It returns a changedError if what was seen is not so any more.
	do func(ctx context.Context, u *UI, a Action) error
}

// changedError is returned when what the page has shown is not so any more.
type changedError struct{ now string }

func (e *changedError) Error() string { return "changed meanwhile: " + e.now }

// changed returns a changedError that says what is so now, as a sentence without its end.
func changed(format string, args ...any) error { return &changedError{fmt.Sprintf(format, args...)} }

var actionDefs = map[ActionKind]actionDef{
	ActionRevoke: {"lock", "Ask to release", "The holder \"%s\" is asked to release the lock. Programs that do not " +
		"listen (Lease.Revoked) go on to hold it.", "The holder was asked to release the lock.", false, revokeLock},
	ActionEvict: {"lock", "Take the lock away", "The node \"%s\" is deleted, so the holder's lease ends and the next in " +
		"line holds at once. What the former holder has under way may still reach what the lock protects, unless " +
		"that checks tokens.", "The lock was taken away.", true, evictLock},
	ActionTransfer: {"election", "Transfer the lead", "The leader is asked to end its term and hand over to %s.",
		"The leader was asked to hand over.", false, transferLead},
	ActionTriggerJob: {"job", "Run now", "The member that owns the job runs it once, beside its schedule.",
		"A run was asked for.", false, triggerJob},
	ActionPauseJob: {"job", "Pause", "No tick is run until the job is resumed; missed ticks are recorded.",
		"The job is paused.", false, pauseJob},
	ActionResumeJob: {"job", "Resume", "Ticks are run again from now on.", "The job is resumed.", false, resumeJob},
	ActionPauseQueue: {"queue", "Pause", "Consumers get no further items until the queue is resumed. Items can still " +
		"be put.", "The queue is paused.", false, pauseQueue},
	ActionResumeQueue: {"queue", "Resume", "Consumers get items again.", "The queue is resumed.", false, resumeQueue},
	ActionCancelRun: {"workflow", "Cancel the run", "The run \"%s\" is cancelled: its context ends, and no later step " +
		"begins.", "The run was cancelled.", true, cancelRun},
	ActionRequeue: {"queue", "Put back", "Dead letters go into the queue again, behind the items of the same priority " +
		"and without their attempts: %s.", "The dead letters were put back.", false, requeueDead},
	ActionPurgeDead: {"queue", "Delete", "Dead letters are deleted, and nothing brings them back: %s.",
		"The dead letters were deleted.", true, purgeDead},
	ActionRetryRun: {"workflow", "Retry the run", "The run \"%s\" becomes active again, with all its attempts. " +
		"Steps that have a record are not run again.", "The run is active again.", false, retryRun},
	ActionSignalRun: {"workflow", "Send a signal", "The run \"%s\" gets a signal. It gets a signal of this name once, " +
		"with this data.", "The run has the signal.", false, signalRun},
	ActionCordon: {"group", "Cordon", "The member \"%s\" is asked to take no new work, until it is uncordoned. " +
		"It goes on with the work that it has.", "The member was cordoned.", false, cordonMember},
	ActionUncordon: {"group", "Uncordon", "The member \"%s\" may take work again, and a drain of it is withdrawn.",
		"The member was uncordoned.", false, uncordonMember},
	ActionDrain: {"group", "Drain", "The member \"%s\" is asked to take no new work and to finish what it has. It stays " +
		"out of service until it is uncordoned.", "The member was asked to drain. Its state says when it has.", true,
		drainMember},
	ActionRollback: {"value", "Roll back", "The value of version %s is written again, as a new version. Programs that " +
		"follow the value get it at once.", "The former value was written again.", true, rollBack},
}

func revokeLock(ctx context.Context, u *UI, a Action) error {
	if err := u.checkHolder(ctx, a); err != nil {
		return err
	}
	return locks.Revoke(ctx, u.client, a.Node)
}

// checkHolder checks that a node holds a lock with the token that was seen.
func (u *UI) checkHolder(ctx context.Context, a Action) error {
	if err := u.sync(ctx, a.Path); err != nil {
		return err
	}
	report, err := locks.Inspect(ctx, u.client, a.Path)
	if err != nil {
		return err
	}
	var holders []string
	for _, e := range report.Holders {
		if e.Node == a.Node && strconv.FormatInt(e.Token, 10) == a.Seen {
			return nil
		}
		holders = append(holders, fmt.Sprintf("%s with token %d", owner(e), e.Token))
	}
	if len(holders) == 0 {
		return changed("nobody holds the lock")
	}
	return changed("the lock is held by %s", strings.Join(holders[:min(len(holders), 5)], ", "))
}

// sync brings the server that the client reads from up to date.
func (u *UI) sync(ctx context.Context, path string) error {
	s, err := u.client.Session(ctx)
	if err != nil {
		return err
	}
	return s.Sync(ctx, path)
}

func evictLock(ctx context.Context, u *UI, a Action) error {
	if err := u.checkHolder(ctx, a); err != nil {
		return err
	}
	token, _ := strconv.ParseInt(a.Seen, 10, 64)
	return locks.Evict(ctx, u.client, a.Node, token)
}

func transferLead(ctx context.Context, u *UI, a Action) error {
	if err := u.sync(ctx, a.Path); err != nil {
		return err
	}
	e := election.New(u.client, a.Path)
	leader, err := e.Leader(ctx)
	if err != nil {
		return err
	}
	if strconv.FormatInt(leader.Token, 10) != a.Seen {
		return changed("%s leads with token %d", leader.ID, leader.Token)
	}
	u.hub.mu.Lock()
	u.hub.memory.asked[a.Path] = a.Node // it hands over while this waits
	u.hub.mu.Unlock()
	err = e.RequestTransfer(ctx, a.Node)
	if err != nil && ctx.Err() == nil { // else the leader may have seen the request
		u.hub.mu.Lock()
		delete(u.hub.memory.asked, a.Path)
		u.hub.mu.Unlock()
	}
	return err
}

// jobOf is a job's scheduler, with what the scheduler knows of the job.
func (u *UI) jobOf(ctx context.Context, a Action) (*scheduler.Scheduler, scheduler.Report, error) {
	var none scheduler.Report
	s := u.hub.latest()
	i := slices.IndexFunc(s.Jobs, func(r scheduler.Report) bool { return r.JobPath() == a.Path })
	if i < 0 {
		return nil, none, changed("there is no such job")
	}
	jobs := scheduler.New(u.client, s.Jobs[i].Path)
	report, err := jobs.Inspect(ctx, s.Jobs[i].Name)
	if err == nil && a.Seen != seenOfJob(report) {
		err = changed("the job %s; it was registered at %s", pausedText(!report.Paused.IsZero()),
			report.Registered.UTC().Format(time.RFC3339))
	}
	return jobs, report, err
}

// seenOfJob is what a page has seen of a job. A job that was removed and registered again is
// another.
func seenOfJob(r scheduler.Report) string {
	return fmt.Sprintf("%s since %d", pausedText(!r.Paused.IsZero()), r.Registered.UnixMilli())
}

// pausedText is what a page has seen of a job or a queue.
func pausedText(paused bool) string {
	if paused {
		return "is paused"
	}
	return "goes on"
}

func triggerJob(ctx context.Context, u *UI, a Action) error {
	jobs, report, err := u.jobOf(ctx, a)
	if err != nil {
		return err
	}
	return jobs.Trigger(ctx, report.Name)
}

func pauseJob(ctx context.Context, u *UI, a Action) error {
	jobs, report, err := u.jobOf(ctx, a)
	if err != nil {
		return err
	}
	return jobs.Pause(ctx, report.Name)
}

func resumeJob(ctx context.Context, u *UI, a Action) error {
	jobs, report, err := u.jobOf(ctx, a)
	if err != nil {
		return err
	}
	return jobs.Resume(ctx, report.Name)
}

// withQueue calls f with the queue if it is paused as was seen. It makes no queue.
func (u *UI) withQueue(ctx context.Context, a Action, f func(*queue.Queue[[]byte]) error) error {
	if err := u.sync(ctx, a.Path); err != nil {
		return err
	}
	report, err := queue.Inspect(ctx, u.client, a.Path)
	switch {
	case err != nil:
		return err
	case report.Missing:
		return changed("there is no such queue")
	case pausedText(report.Paused) != a.Seen:
		return changed("the queue %s", pausedText(report.Paused))
	}
	q := queue.New(u.client, a.Path, codec.Bytes())
	defer q.Close(ctx) //nolint:errcheck // it has taken nothing
	return f(q)
}

func pauseQueue(ctx context.Context, u *UI, a Action) error {
	return u.withQueue(ctx, a, func(q *queue.Queue[[]byte]) error { return q.Pause(ctx) })
}

func resumeQueue(ctx context.Context, u *UI, a Action) error {
	return u.withQueue(ctx, a, func(q *queue.Queue[[]byte]) error { return q.Resume(ctx) })
}

// withRun calls f with the workflows at the path if the run is the one that was seen, and in a
// state in which f makes sense.
func (u *UI) withRun(ctx context.Context, a Action, fits func(workflow.State) bool,
	f func(*workflow.Workflows) error) error {
	w := workflow.New(u.client, a.Path)
	defer w.Close(ctx) //nolint:errcheck // it has put nothing
	info, err := w.Inspect(ctx, a.Node)
	switch {
	case err != nil:
		return err
	case info.UUID != a.Seen:
		return changed("another run has this id, which is %s", info.State)
	case !fits(info.State):
		return changed("the run is %s", info.State)
	}
	return f(w)
}

func isUnfinished(s workflow.State) bool { return !s.IsFinished() }

// mayRetry reports whether a run in a state can be retried without naming a step.
func mayRetry(s workflow.State) bool { return s == workflow.Failed || s == workflow.Cancelled }

func cancelRun(ctx context.Context, u *UI, a Action) error {
	return u.withRun(ctx, a, isUnfinished, func(w *workflow.Workflows) error {
		return w.Cancel(ctx, a.Node, "cancelled on the web page")
	})
}

func retryRun(ctx context.Context, u *UI, a Action) error {
	return u.withRun(ctx, a, mayRetry, func(w *workflow.Workflows) error { return w.Retry(ctx, a.Node, "") })
}

func signalRun(ctx context.Context, u *UI, a Action) error {
	return u.withRun(ctx, a, isUnfinished, func(w *workflow.Workflows) error {
		return w.Signal(ctx, a.Node, a.Signal, json.RawMessage(cmp.Or(a.Data, "null")))
	})
}

// withDead calls some for the dead letter at the action's node, or for all letters if they are
// those that were seen. It calls all instead if the page has not shown each of them. A letter that
// was buried again has another node.
func (u *UI) withDead(ctx context.Context, a Action, all func(*queue.Queue[[]byte], context.Context) (int, error),
	some func(*queue.Queue[[]byte], context.Context, ...string) (int, error)) error {
	q := queue.New(u.client, a.Path, codec.Bytes())
	defer q.Close(ctx) //nolint:errcheck // it has taken nothing
	if err := u.sync(ctx, a.Path); err != nil {
		return err
	}
	if a.Node == "" {
		counts, err := q.Counts(ctx)
		if err != nil {
			return err
		}
		letters, err := readDead(ctx, q, maxLetters)
		if err != nil {
			return err
		}
		if seenOfDead(counts.Dead, letters) != a.Seen {
			return changed("the queue has %s, which are not those of the page",
				counted(counts.Dead, "dead letter", "dead letters"))
		}
		if len(letters) > maxLetters {
			_, err = all(q, ctx)
			return err
		}
		var nodes []string // not those of letters that are buried meanwhile
		for _, letter := range letters {
			nodes = append(nodes, letter.Node)
		}
		_, err = some(q, ctx, nodes...)
		return err
	}
	n, err := some(q, ctx, a.Node)
	if err == nil && n == 0 {
		return changed("the queue has no such dead letter")
	}
	return err
}

func purgeDead(ctx context.Context, u *UI, a Action) error {
	return u.withDead(ctx, a, (*queue.Queue[[]byte]).PurgeDead, (*queue.Queue[[]byte]).PurgeLetters)
}

func requeueDead(ctx context.Context, u *UI, a Action) error {
	return u.withDead(ctx, a, (*queue.Queue[[]byte]).Requeue, (*queue.Queue[[]byte]).RequeueLetters)
}

// withMember calls f with the group if the member is in the state that was seen.
func (u *UI) withMember(ctx context.Context, a Action, f func(*members.Group) error) error {
	g := members.New(u.client, a.Path)
	view, err := g.Inspect(ctx)
	if err != nil {
		return err
	}
	if now := stateOf(view, a.Node); now != a.Seen {
		return changed("the member is %s", now)
	}
	return f(g)
}

// stateOf returns the state of a member, in the words of the pages.
func stateOf(view members.View, id string) string {
	for _, m := range view.Members {
		if m.ID == id {
			return string(m.State)
		}
	}
	if slices.ContainsFunc(view.Cordons, func(c members.Cordon) bool { return c.ID == id }) {
		return stateAbsent
	}
	return "not there"
}

func cordonMember(ctx context.Context, u *UI, a Action) error {
	return u.withMember(ctx, a, func(g *members.Group) error {
		return g.Cordon(ctx, a.Node, members.WithReason("on the web page"))
	})
}

func uncordonMember(ctx context.Context, u *UI, a Action) error {
	return u.withMember(ctx, a, func(g *members.Group) error { return g.Uncordon(ctx, a.Node) })
}

// drainTime is how long an action waits for a member to drain. A longer drain goes on in the
// background.
const drainTime = 3 * time.Second

func drainMember(ctx context.Context, u *UI, a Action) error {
	return u.withMember(ctx, a, func(g *members.Group) error {
		waiting, cancel := context.WithTimeout(ctx, drainTime)
		defer cancel()
		err := g.Drain(waiting, a.Node, members.WithReason("on the web page"))
		if err == nil || waiting.Err() == nil {
			return err
		}
		view, inspectErr := g.Inspect(ctx)
		if inspectErr != nil {
			return inspectErr
		}
		for _, c := range view.Cordons {
			if c.ID == a.Node && c.Drain {
				return nil
			}
		}
		return err
	})
}

func rollBack(ctx context.Context, u *UI, a Action) error {
	seen, err := strconv.ParseInt(a.Seen, 10, 64)
	if err != nil {
		return changed("%q is no version", a.Seen)
	}
	version, err := strconv.ParseInt(a.Node, 10, 64)
	if err != nil {
		return changed("%q is no version", a.Node)
	}
	err = config.New(u.client, a.Path, codec.Bytes()).Rollback(ctx, version, config.WithExpectedVersion(seen))
	var conflict *config.ConflictError
	switch {
	case errors.As(err, &conflict):
		return changed("the value has version %d", conflict.Version)
	case errors.Is(err, config.ErrNoValue):
		return changed("the history does not have version %d any more", version)
	}
	return err
}

type confirmView struct {
	Title  string
	What   string
	Button string
	Danger bool
	Act    string // where the form is sent
	Back   string
	Link   link
	Ask    bool // for a signal's name and data
}

// buildConfirm asks whether an action is meant.
func buildConfirm(u *UI, q request, _ *snapshot) (built, error) {
	a := actionOf(q.query)
	def, err := u.checkAction(a)
	if err != nil {
		return built{}, err
	}
	v := confirmView{Act: "act?" + url.Values{"do": {string(a.Kind)}, "path": {a.Path}, "node": {a.Node},
		"seen": {a.Seen}}.Encode(), Title: def.button, What: def.what,
		Button: def.button, Danger: def.danger, Back: backTo(def, a), Link: linkTo(def.page, a.Path, u.root)}
	v.Link.Href = v.Back // a run's page needs the id, too
	v.Ask = a.Kind == ActionSignalRun
	node := plain(strings.TrimPrefix(a.Node, a.Path+"/"))
	if a.Kind == ActionRequeue || a.Kind == ActionPurgeDead {
		number, _, _ := strings.Cut(a.Seen, " ")
		node = cmp.Or(strings.TrimPrefix(node, "dead/"), "all "+plain(number)+" of them")
	}
	if strings.Contains(def.what, "%s") {
		v.What = fmt.Sprintf(def.what, node)
	}
	return built{def.button, v, a}, nil
}

func actionOf(q url.Values) Action {
	return Action{ActionKind(q.Get("do")), q.Get("path"), q.Get("node"), q.Get("seen"), q.Get("signal"), q.Get("data")}
}

// backTo is the page from which an action was asked for.
func backTo(def actionDef, a Action) string {
	to := def.page + "?path=" + urlQuery(a.Path)
	if def.page == "workflow" {
		to += "&id=" + urlQuery(a.Node)
	}
	return to
}

// checkAction refuses unknown actions, and all of them without WithActions.
func (u *UI) checkAction(a Action) (actionDef, error) {
	def, known := actionDefs[a.Kind]
	switch {
	case !known:
		return def, newPageError(http.StatusNotFound, "There is no such action",
			"The pages have a button for each action.")
	case !u.canAct():
		return def, newPageError(http.StatusForbidden, "Actions are off", "This page only shows. Start it with "+
			"--allow-actions, or with WithActions, or use the command that the page names.")
	}
	if err := u.checkPath(a.Path); err != nil {
		return def, err
	}
	return def, nil
}

// servePost does an action, or changes the colours.
func (u *UI) servePost(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
	if err := r.ParseForm(); err != nil {
		u.refuse(w, r, newPageError(http.StatusBadRequest, "This form cannot be read", err.Error()))
		return
	}
	switch path.Base(r.URL.Path) {
	case "theme":
		http.SetCookie(w, &http.Cookie{Name: "theme", Value: r.PostForm.Get("theme"), Path: path.Dir(r.URL.Path),
			MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, "./", http.StatusSeeOther)
		return
	case "examine":
		u.serveExamine(w, r)
		return
	case "act":
	default:
		u.refuse(w, r, newPageError(http.StatusNotFound, "There is no such page", "Forms are sent to act."))
		return
	}
	a := actionOf(r.Form)
	def, err := u.checkAction(a)
	if err == nil && a.Kind == ActionSignalRun {
		err = checkSignal(a)
	}
	if err == nil {
		if denied := u.mayDo(r, a); denied != nil {
			err = newPageError(http.StatusForbidden, "This action is not for you", denied.Error())
		}
	}
	if err != nil {
		var failed *pageError
		errors.As(err, &failed)
		u.refuse(w, r, failed)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), actionTime)
	defer cancel()
	err = def.do(ctx, u, a)
	u.client.Logger().Info("action on the web page", "action", string(a.Kind), "path", a.Path, "node", a.Node,
		"seen", a.Seen, "signal", a.Signal, "who", u.userOf(r), "from", r.RemoteAddr, "error", err)
	u.hub.expire() // also after an error: the reply may have been lost
	var now *changedError
	isGone := errors.Is(err, framework.ErrNotFound) || errors.Is(err, election.ErrNoLeader)
	switch {
	case errors.As(err, &now):
		u.refuse(w, r, newPageError(http.StatusConflict,
			"It has changed since the page was shown, so nothing was done", "Now "+now.now+".").withBack(backTo(def, a)))
	case isGone && !errors.Is(err, framework.ErrOutcomeUnknown):
		u.refuse(w, r, newPageError(http.StatusConflict, "It is gone since the page was shown",
			err.Error()).withBack(backTo(def, a)))
	case err != nil:
		u.refuse(w, r, newPageError(http.StatusBadGateway, "It was not done, or it is not known whether",
			unreadText(u.client, err)).withBack(backTo(def, a)))
	default:
		http.Redirect(w, r, backTo(def, a)+"&did="+string(a.Kind), http.StatusSeeOther)
	}
}

// checkSignal checks what a visitor has written into the form of a signal.
func checkSignal(a Action) error {
	switch {
	case a.Signal == "":
		return newPageError(http.StatusBadRequest, "The signal has no name",
			"Go back and give the name that the run awaits.")
	case a.Data != "" && !json.Valid([]byte(a.Data)):
		return newPageError(http.StatusBadRequest, "The signal's data is no JSON",
			`Go back and give JSON, such as "text", 7 or {"approved": true}.`)
	}
	return nil
}

// userOf names the sender of a request, for the record of an action.
func (u *UI) userOf(r *http.Request) string {
	if u.user != nil {
		if name := u.user(r); name != "" {
			return name
		}
	}
	return r.RemoteAddr
}

// doneText says what the action before this page has done.
func doneText(q url.Values) string { return actionDefs[ActionKind(q.Get("did"))].done }

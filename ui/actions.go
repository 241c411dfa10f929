package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/election"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/queue"
	"github.com/lockstep-go/lockstep/scheduler"
	"github.com/lockstep-go/lockstep/workflow"
)

// ActionKind says what a request does.
type ActionKind string

// The kinds.
const (
	ActionLook        ActionKind = "look" // at a page
	ActionRevoke      ActionKind = "revoke"
	ActionEvict       ActionKind = "evict"
	ActionTransfer    ActionKind = "transfer"
	ActionRunJob      ActionKind = "run"
	ActionPauseJob    ActionKind = "pause-job"
	ActionResumeJob   ActionKind = "resume-job"
	ActionPauseQueue  ActionKind = "pause-queue"
	ActionResumeQueue ActionKind = "resume-queue"
	ActionCancelRun   ActionKind = "cancel"
)

const (
	maxFormBytes = 16 << 10
	actionTime   = 15 * time.Second // an action may take
)

// Action is what a request does, and to what.
type Action struct {
	Kind ActionKind
	Path string // "" for ActionLook
	// Node is the holder's node, the candidate's id, or the run's id that the action is about, or "".
	Node string
	// Seen is what the page has shown of it: the fencing token of the lease or the term, the state of a
	// job or a queue, or the UUID of a run. The action is refused if that is not so any more.
	Seen string
}

// actionDef is what the pages know of a kind of action.
type actionDef struct {
	page   string // that has its button
	button string
	what   string // what happens, for the confirmation; %s is the node
	done   string
	danger bool
	// do does it. It returns errChanged if what was seen is not so any more.
	do func(ctx context.Context, u *UI, a Action) error
}

// errChanged is returned when what the page has shown is not so any more.
var errChanged = errors.New("changed meanwhile")

var actionDefs = map[ActionKind]actionDef{
	ActionRevoke: {"lock", "Ask to release", "The holder %s is asked to release the lock. Programs that do not " +
		"listen (Lease.Revoked) go on to hold it.", "The holder was asked to release the lock.", false, revokeLock},
	ActionEvict: {"lock", "Take the lock away", "The node %s is deleted, so the holder's lease ends and the next in " +
		"line holds at once. What the former holder has under way may still reach what the lock protects, unless " +
		"that checks tokens.", "The lock was taken away.", true, evictLock},
	ActionTransfer: {"election", "Transfer the lead", "The leader is asked to end its term and hand over to %s.",
		"The leader was asked to hand over.", false, transferLead},
	ActionRunJob: {"job", "Run now", "The member that owns the job runs it once, beside its schedule.",
		"A run was asked for.", false, runJob},
	ActionPauseJob: {"job", "Pause", "No tick is run until the job is resumed; missed ticks are recorded.",
		"The job is paused.", false, pauseJob},
	ActionResumeJob: {"job", "Resume", "Ticks are run again from now on.", "The job is resumed.", false, resumeJob},
	ActionPauseQueue: {"queue", "Pause", "Consumers get no further items until the queue is resumed. Items can still " +
		"be put.", "The queue is paused.", false, pauseQueue},
	ActionResumeQueue: {"queue", "Resume", "Consumers get items again.", "The queue is resumed.", false, resumeQueue},
	ActionCancelRun: {"workflow", "Cancel the run", "The run %s is cancelled: its context ends, and no later step " +
		"begins.", "The run was cancelled.", true, cancelRun},
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
	if !slices.ContainsFunc(report.Holders, func(e locks.Entry) bool {
		return e.Node == a.Node && strconv.FormatInt(e.Token, 10) == a.Seen
	}) {
		return errChanged
	}
	return nil
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
		return errChanged
	}
	return e.RequestTransfer(ctx, a.Node)
}

// jobOf is a job's scheduler, with what the scheduler knows of the job.
func (u *UI) jobOf(ctx context.Context, a Action) (*scheduler.Scheduler, scheduler.JobReport, error) {
	var none scheduler.JobReport
	s := u.hub.latest()
	i := slices.IndexFunc(s.Jobs, func(r scheduler.JobReport) bool { return r.JobPath() == a.Path })
	if i < 0 {
		return nil, none, errChanged
	}
	jobs := scheduler.New(u.client, s.Jobs[i].Path)
	report, err := jobs.Inspect(ctx, s.Jobs[i].Name)
	if err == nil && a.Seen != seenOfJob(report) {
		err = errChanged
	}
	return jobs, report, err
}

// seenOfJob is what a page has seen of a job. A job that was removed and registered again is another.
func seenOfJob(r scheduler.JobReport) string {
	return fmt.Sprintf("%s since %d", pausedText(!r.Paused.IsZero()), r.Registered.UnixMilli())
}

// pausedText is what a page has seen of a job or a queue.
func pausedText(paused bool) string {
	if paused {
		return "paused"
	}
	return "goes on"
}

func runJob(ctx context.Context, u *UI, a Action) error {
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

// withQueue calls f with the queue if it is paused as was seen.
func (u *UI) withQueue(ctx context.Context, a Action, f func(*queue.Queue[[]byte]) error) error {
	q := queue.New(u.client, a.Path, queue.Bytes())
	defer q.Close(ctx) //nolint:errcheck // it has taken nothing
	paused, err := q.Paused(ctx)
	switch {
	case err != nil:
		return err
	case pausedText(paused) != a.Seen:
		return errChanged
	}
	return f(q)
}

func pauseQueue(ctx context.Context, u *UI, a Action) error {
	return u.withQueue(ctx, a, func(q *queue.Queue[[]byte]) error { return q.Pause(ctx) })
}

func resumeQueue(ctx context.Context, u *UI, a Action) error {
	return u.withQueue(ctx, a, func(q *queue.Queue[[]byte]) error { return q.Resume(ctx) })
}

func cancelRun(ctx context.Context, u *UI, a Action) error {
	w := workflow.New(u.client, a.Path)
	defer w.Close(ctx) //nolint:errcheck // it has put nothing
	info, err := w.Inspect(ctx, a.Node)
	switch {
	case err != nil:
		return err
	case info.UUID != a.Seen || info.State.IsFinished():
		return errChanged
	}
	return w.Cancel(ctx, a.Node, "cancelled on the web page")
}

type confirmView struct {
	Title  string
	What   string
	Button string
	Danger bool
	Act    string // where the form is sent
	Back   string
	Link   link
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
	if strings.Contains(def.what, "%s") {
		v.What = fmt.Sprintf(def.what, plain(strings.TrimPrefix(a.Node, a.Path+"/")))
	}
	return built{def.button, v, a}, nil
}

func actionOf(q url.Values) Action {
	return Action{ActionKind(q.Get("do")), q.Get("path"), q.Get("node"), q.Get("seen")}
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
		return def, &pageError{http.StatusNotFound, "There is no such action",
			"The pages have a button for each action."}
	case !u.canAct():
		return def, &pageError{http.StatusForbidden, "Actions are off", "This page only shows. Start it with " +
			"--allow-actions, or with WithActions, or use the command that the page names."}
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
		u.refuse(w, r, http.StatusBadRequest, "This form cannot be read", err.Error())
		return
	}
	switch path.Base(r.URL.Path) {
	case "theme":
		http.SetCookie(w, &http.Cookie{Name: "theme", Value: r.PostForm.Get("theme"), Path: path.Dir(r.URL.Path),
			MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, "./", http.StatusSeeOther)
		return
	case "act":
	default:
		u.refuse(w, r, http.StatusNotFound, "There is no such page", "Forms are sent to act.")
		return
	}
	a := actionOf(r.Form)
	def, err := u.checkAction(a)
	if err == nil {
		if denied := u.mayDo(r, a); denied != nil {
			err = &pageError{http.StatusForbidden, "This action is not for you", denied.Error()}
		}
	}
	if err != nil {
		var failed *pageError
		errors.As(err, &failed)
		u.refuse(w, r, failed.status, failed.title, failed.text)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), actionTime)
	defer cancel()
	err = def.do(ctx, u, a)
	u.client.Logger().Info("action on the web page", "action", string(a.Kind), "path", a.Path, "node", a.Node,
		"seen", a.Seen, "from", r.RemoteAddr, "error", err)
	switch {
	case errors.Is(err, errChanged):
		u.refuse(w, r, http.StatusConflict, "It has changed since the page was shown, so nothing was done",
			"Go back to the page to see what is there now.")
	case err != nil:
		u.refuse(w, r, http.StatusBadGateway, "It was not done, or it is not known whether", err.Error())
	default:
		u.hub.expire()
		http.Redirect(w, r, backTo(def, a)+"&did="+string(a.Kind), http.StatusSeeOther)
	}
}

// doneText says what the action before this page has done.
func doneText(q url.Values) string { return actionDefs[ActionKind(q.Get("did"))].done }

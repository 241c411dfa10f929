package ui

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/members"
)

// found is what a list page has read of one recipe. The hub does not read it: only these pages do.
type found[T any] struct {
	all    []T
	unread []string
}

// findAll inspects all that a recipe finds below the root, once for each snapshot. What cannot be
// read is named in unread; the error is that of the whole search.
func findAll[T any](u *UI, q request, s *snapshot, key string,
	find func(context.Context, *framework.Client, string) iter.Seq2[string, error],
	inspect func(ctx context.Context, path string) (T, error)) (found[T], error) {
	return read(q.ctx, u.hub, s, key, func(ctx context.Context) (out found[T], err error) {
		for path, err := range find(ctx, u.client, u.root) {
			var one T
			if err == nil {
				one, err = inspect(ctx, path)
			}
			switch {
			case err == nil:
				out.all = append(out.all, one)
			case ctx.Err() != nil && len(out.all) == 0:
				return out, err
			case ctx.Err() != nil:
				out.unread = append(out.unread, "The rest was not read: "+unreadText(u.client, err))
				return out, nil
			default:
				out.unread = append(out.unread, unreadText(u.client, err))
			}
		}
		return out, nil
	})
}

// stateAbsent is the state of an ID that is cordoned and has no member now.
const stateAbsent = "absent"

func (u *UI) readGroup(ctx context.Context, path string) (sharedreport.Group, error) {
	view, err := members.New(u.client, path).Inspect(ctx)
	if err != nil {
		return sharedreport.Group{}, err
	}
	r := sharedreport.NewGroup(path, view)
	if u.hideData {
		hideGroup(&r)
	}
	return r, nil
}

// groupRow is a group in a list.
type groupRow struct {
	Link                     link
	Report                   sharedreport.Group
	Active, Cordoned, Failed int
	Latest                   time.Time // when the newest member joined
}

func (u *UI) groupRowOf(r sharedreport.Group) groupRow {
	row := groupRow{Link: linkTo("group", r.Path, u.root), Report: r}
	for _, m := range r.Members {
		switch m.State {
		case members.Active:
			row.Active++
		case members.Failed:
			row.Failed++
		default:
			row.Cordoned++
		}
		if m.Joined.After(row.Latest) {
			row.Latest = m.Joined
		}
	}
	return row
}

func (r groupRow) matches(wanted string) bool {
	texts := []string{r.Report.Path}
	for _, m := range r.Report.Members {
		texts = append(texts, m.ID, m.Session.String())
	}
	return containsAny(wanted, texts...)
}

type membersView struct {
	List             list[groupRow]
	Active, Cordoned int
	Unread           []string
}

func buildMembers(u *UI, q request, s *snapshot) (built, error) {
	groups, err := findAll(u, q, s, "groups", members.Find, u.readGroup)
	if err != nil {
		return built{}, err
	}
	v := membersView{Unread: groups.unread}
	var rows []groupRow
	for _, r := range groups.all {
		row := u.groupRowOf(r)
		rows = append(rows, row)
		v.Active, v.Cordoned = v.Active+row.Active, v.Cordoned+row.Cordoned+row.Failed
	}
	slices.SortStableFunc(rows, func(a, b groupRow) int {
		return cmp.Or(b.Failed-a.Failed, b.Cordoned-a.Cordoned, strings.Compare(a.Report.Path, b.Report.Path))
	})
	v.List = listOf(q.query, rows, map[string]func(a, b groupRow) int{
		"group":   func(a, b groupRow) int { return strings.Compare(a.Report.Path, b.Report.Path) },
		"active":  func(a, b groupRow) int { return a.Active - b.Active },
		"changed": func(a, b groupRow) int { return b.Latest.Compare(a.Latest) },
	}, groupRow.matches)
	return built{"Members", v, listJSON(groups.all)}, nil
}

// memberRow is a member, or an id that is cordoned without a member.
type memberRow struct {
	ID, State   string
	Mark        severity
	Info        members.Info
	Session     framework.SessionID
	Joined      time.Time
	Others      int
	Cordon      *members.Cordon
	Errors      []string // of failed drains
	MayUncordon bool
	MayCordon   bool
	MayDrain    bool
}

func memberRowOf(m members.Member) memberRow {
	row := memberRow{ID: m.ID, State: string(m.State), Mark: wait, Info: m.Info, Session: m.Session,
		Joined: m.Joined, Others: m.Others, Cordon: m.Cordon, MayUncordon: m.Cordon != nil, MayCordon: m.Cordon == nil,
		MayDrain: m.State != members.Draining && m.State != members.Drained}
	switch m.State {
	case members.Active:
		row.Mark = good
	case members.Failed:
		row.Mark = bad
	case members.Cordoned, members.Drained:
		row.Mark = off
	}
	row.addErrors()
	return row
}

// addErrors adds what the members have answered about failed drains.
func (r *memberRow) addErrors() {
	if r.Cordon == nil {
		return
	}
	for _, a := range r.Cordon.Answers {
		if a.Error != "" {
			r.Errors = append(r.Errors, a.Error)
		}
	}
	slices.Sort(r.Errors)
}

type groupView struct {
	Path     string
	Link     link
	Row      groupRow
	Rows     []memberRow
	More     int // rows that are left out
	Commands []string
	Done     string
	HideData bool
}

func buildGroup(u *UI, q request, s *snapshot) (built, error) {
	path := q.query.Get("path")
	if err := u.checkPath(path); err != nil {
		return built{}, err
	}
	r, err := read(q.ctx, u.hub, s, "group "+path, func(ctx context.Context) (sharedreport.Group, error) {
		return u.readGroup(ctx, path)
	})
	switch {
	case err != nil:
		return built{}, err
	case len(r.Members)+len(r.Absent) == 0:
		return built{}, missing[string]("group", path, nil, nil)
	}
	v := groupView{Path: path, Link: linkTo("", path, u.root), Row: u.groupRowOf(r), Done: doneText(q.query),
		HideData: u.hideData, Commands: []string{"lockstep members " + shellWord(path) + " --watch"}}
	for _, m := range r.Members {
		v.Rows = append(v.Rows, memberRowOf(m))
	}
	for _, c := range r.Absent {
		row := memberRow{ID: c.ID, State: stateAbsent, Mark: wait, Cordon: &c, MayUncordon: true}
		row.addErrors()
		v.Rows = append(v.Rows, row)
	}
	slices.SortStableFunc(v.Rows, func(a, b memberRow) int { return rankOf(a) - rankOf(b) })
	if n := len(v.Rows); n > maxMembers {
		v.Rows, v.More = v.Rows[:maxMembers], n-maxMembers
	}
	return built{path, v, r}, nil
}

// rankOf orders members: those whose drain has failed first, then others out of service.
func rankOf(r memberRow) int {
	switch {
	case r.Mark == bad:
		return 0
	case r.Cordon != nil:
		return 1
	}
	return 2
}

// maxMembers is how many members or instances a page shows; its JSON has all.
const maxMembers = 500

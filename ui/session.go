package ui

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-go/lockstep/barrier"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/recipenode"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/scheduler"
)

// holding is something that a session holds, waits for or takes part in.
type holding struct {
	What  string    `json:"what"`
	Path  string    `json:"path"`
	Run   string    `json:"run,omitempty"`  // of a workflow, at the path
	Node  string    `json:"node,omitempty"` // of the session
	Since time.Time `json:"since,omitzero"`
	sort  holdingSort
	page  string // about the path, or ""
	owner string
	host  string
}

// holdingSort is how a holding counts in the list of sessions.
type holdingSort int

const (
	waitsInLine holdingSort = iota
	holdsLock               // or leads
	holdsItem
	takesPart
)

// recipeNode is what package recipenode knows of a report on a lock.
type recipeNode struct {
	recipe recipenode.Recipe
	path   string
}

// holdingsOf are the holdings of all sessions that a scan has seen. ofRecipe has the paths of
// reports on locks that are nodes of other recipes.
func holdingsOf(s *snapshot, ofRecipe map[string]recipeNode) map[framework.SessionID][]holding {
	all := map[framework.SessionID][]holding{}
	add := func(id framework.SessionID, h holding) {
		if id != 0 {
			all[id] = append(all[id], h)
		}
	}
	queues := map[string]bool{}
	for _, q := range s.Queues {
		queues[q.Path] = true
	}
	type restOf struct {
		id framework.SessionID
		h  holding
	}
	var rest []restOf // nodes of recipes that have told who takes part in them, if they could be read
	for _, r := range s.Locks {
		if of, known := ofRecipe[r.Path]; known {
			for _, e := range slices.Concat(r.Holders, r.Others) {
				switch h := holdingOfNode(e, of, queues); {
				case h.page == "":
					rest = append(rest, restOf{e.Session, h})
				case of.recipe == recipenode.Queue && slices.ContainsFunc(all[e.Session],
					func(o holding) bool { return o.What == h.What && o.Path == h.Path }): // it has several tickets
				default:
					add(e.Session, h)
				}
			}
			continue
		}
		page, holds, waits := "lock", "holds", "waits for"
		if r.Kind == locks.ElectionLock {
			page, holds, waits = "election", "leads", "stands by at"
		}
		for _, e := range r.Holders {
			add(e.Session, holding{holds, r.Path, "", e.Node, e.Since, holdsLock, page, e.Owner, e.Host})
		}
		for _, e := range r.Waiters {
			add(e.Session, holding{waits, r.Path, "", e.Node, e.Since, waitsInLine, page, e.Owner, e.Host})
		}
	}
	for _, q := range s.Queues {
		add(q.Held.Session, holding{"has an item of", q.Path, "", q.Held.Node, q.Held.Since, holdsItem, "queue",
			q.Held.Owner, q.Held.Host})
	}
	addJobs(s.Jobs, add)
	for _, r := range s.Runs {
		if r.Taken != nil {
			add(r.Taken.Session, holding{"executes", r.Path, r.ID, "", r.Taken.Since, takesPart, "workflow",
				r.Taken.Member, ""})
		}
	}
	for _, b := range s.barriers {
		at := func(what string, members ...barrier.Member) {
			for _, m := range members {
				add(m.Session, holding{what, b.Path, "", m.Node, m.Since, takesPart, "barriers", m.Owner, m.Host})
			}
		}
		at("is inside", b.Inside...)
		at("waits at", b.Waiting...)
		at("has raised", b.RaisedBy)
	}
	for _, r := range rest {
		if len(all[r.id]) == 0 {
			add(r.id, r.h)
		}
	}
	for _, of := range all {
		slices.SortStableFunc(of, func(a, b holding) int { return int(a.sort - b.sort) })
	}
	return all
}

// addJobs adds the jobs that sessions have.
func addJobs(jobs []scheduler.Report, add func(framework.SessionID, holding)) {
	for _, j := range jobs {
		for _, m := range j.Members {
			what := "has the job"
			if j.Owner != nil && j.Owner.Session == m.Session {
				what = "starts the runs of"
			}
			runs := func(r scheduler.RunRecord) bool { return r.Runner == m.ID }
			if slices.ContainsFunc(j.Running, runs) {
				what = "runs"
			}
			add(m.Session, holding{what, j.JobPath(), "", "", m.Since, takesPart, "job", m.ID, ""})
		}
	}
}

// holdingOfNode is the holding of an ephemeral node of another recipe than locks.
func holdingOfNode(e locks.Entry, of recipeNode, queues map[string]bool) holding {
	dir, _ := znode.Split(e.Node)
	h := holding{What: "has a node in", Path: dir, Node: e.Node, Since: e.Since, sort: takesPart, owner: e.Owner,
		host: e.Host}
	switch {
	case of.recipe == recipenode.Queue && queues[of.path]:
		h.What, h.Path, h.page = "takes items of", of.path, "queue"
	case of.recipe == recipenode.Writer && queues[of.path]:
		h.What, h.Path, h.page = "puts items into", of.path, "queue"
	case of.recipe == recipenode.Service:
		h.What, h.Path, h.page = "is an instance of", of.path, "service"
	}
	return h
}

// holdings are those of all sessions, with memberships of groups, which scans do not read. unread
// is what could not be read of these.
func (u *UI) holdings(q request, s *snapshot) (all map[framework.SessionID][]holding, unread []string) {
	groups, err := findAll(u, q, s, "groups", members.Find, u.readGroup)
	if unread = groups.unread; err != nil {
		unread = append(unread, unreadText(u.client, err))
	}
	all = maps.Clone(s.holdings())
	for _, r := range groups.all {
		for _, m := range r.Members {
			if m.Session != 0 {
				all[m.Session] = append(slices.Clip(all[m.Session]), holding{"is a member of", r.Path, "", m.Node,
					m.Joined, takesPart, "group", m.ID, ""})
			}
		}
	}
	return all, unread
}

// linkOf is the page about what a session holds.
func (u *UI) linkOf(h holding) link {
	l := linkTo(h.page, h.Path, u.root)
	if h.Run != "" {
		l.Leaf, l.Href = h.Run, l.Href+"&id="+urlQuery(h.Run)
	}
	return l
}

// nameOf is how a session's holdings name it: by the client's identity, or else by the id that it
// has as a candidate or a member.
func nameOf(all []holding) (owner, host string) {
	id := ""
	for _, h := range all {
		if h.page == "election" || h.page == "group" {
			id = cmp.Or(id, h.owner)
		} else {
			owner = cmp.Or(owner, h.owner)
		}
		host = cmp.Or(host, h.host)
	}
	return cmp.Or(owner, id), host
}

type sessionView struct {
	ID    string
	Rows  []sessionRow
	More  int // rows that are left out
	Owner string
	Host  string
	// Unread is what could not be read.
	Unread []string
}

type sessionRow struct {
	Link link
	holding
}

// maxHoldings is how many holdings a session's page shows; its JSON has all.
const maxHoldings = 500

func buildSession(u *UI, q request, s *snapshot) (built, error) {
	var id framework.SessionID
	if err := id.UnmarshalText([]byte(q.query.Get("id"))); err != nil {
		return built{}, newPageError(404, "That is no session", "A session is a number such as 0x10000c2f6d20031.")
	}
	of, unread := u.holdings(q, s)
	all := of[id]
	v := sessionView{ID: id.String(), Unread: unread}
	v.Owner, v.Host = nameOf(all)
	for _, h := range all[:min(len(all), maxHoldings)] {
		v.Rows = append(v.Rows, sessionRow{u.linkOf(h), h})
	}
	v.More = len(all) - len(v.Rows)
	return built{"Session " + id.String(), v, listJSON(all)}, nil
}

// sessionsRow is a session in the list of those that hold something, wait or take part.
type sessionsRow struct {
	Session framework.SessionID `json:"session"`
	Owner   string              `json:"owner,omitempty"`
	Host    string              `json:"host,omitempty"`
	Holds   int                 `json:"holds"` // locks and terms
	Waits   int                 `json:"waits"`
	Items   int                 `json:"items"`          // queues whose longest held item it has
	Other   int                 `json:"other"`          // such as groups, services and jobs that it is in
	Since   time.Time           `json:"since,omitzero"` // of the oldest of all these
}

func sessionsOf(holdings map[framework.SessionID][]holding) (rows []sessionsRow) {
	for id, all := range holdings {
		r := sessionsRow{Session: id}
		r.Owner, r.Host = nameOf(all)
		var counts [4]int
		for _, h := range all {
			counts[h.sort]++
			if r.Since.IsZero() || !h.Since.IsZero() && h.Since.Before(r.Since) {
				r.Since = h.Since
			}
		}
		r.Holds, r.Waits = counts[holdsLock], counts[waitsInLine]
		r.Items, r.Other = counts[holdsItem], counts[takesPart]
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b sessionsRow) int {
		return cmp.Or((b.Holds+b.Items)-(a.Holds+a.Items), b.Waits-a.Waits, b.Other-a.Other,
			cmp.Compare(a.Session, b.Session))
	})
	return rows
}

type sessionsView struct {
	List   list[sessionsRow]
	Unread []string
}

func buildSessions(u *UI, q request, s *snapshot) (built, error) {
	all, unread := u.holdings(q, s)
	rows := sessionsOf(all)
	v := sessionsView{Unread: unread, List: listOf(q.query, rows, map[string]func(a, b sessionsRow) int{
		"holds": func(a, b sessionsRow) int { return b.Holds - a.Holds },
		"waits": func(a, b sessionsRow) int { return b.Waits - a.Waits },
		"items": func(a, b sessionsRow) int { return b.Items - a.Items },
		"other": func(a, b sessionsRow) int { return b.Other - a.Other },
		"since": func(a, b sessionsRow) int { return compareSince(a.Since, b.Since) },
	}, func(r sessionsRow, wanted string) bool {
		return containsAny(wanted, r.Session.String(), r.Owner, r.Host)
	})}
	return built{"Sessions", v, listJSON(rows)}, nil
}

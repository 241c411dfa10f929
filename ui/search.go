package ui

import (
	"slices"
	"strings"

	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/internal/znode"
	"github.com/lockstep-go/lockstep/members"
	"github.com/lockstep-go/lockstep/registry"
)

type searchView struct {
	Query  string
	Rows   []searchRow
	More   bool
	Unread []string
}

type searchRow struct {
	Link link   `json:"-"`
	Name string `json:"name"` // a path, or a session
	Kind string `json:"kind"`
	Why  string `json:"found_in,omitempty"`
}

// buildSearch searches paths, owners, hosts and sessions. Unlike lists it is not followed: it reads
// what only its own pages show. What has the text in its path comes first.
func buildSearch(u *UI, q request, s *snapshot) (built, error) {
	wanted := strings.ToLower(strings.TrimSpace(q.query.Get("q")))
	v := searchView{Query: q.query.Get("q")}
	add := func(l link, name, kind, why string) { v.Rows = append(v.Rows, searchRow{l, name, kind, why}) }
	if wanted != "" {
		for _, r := range sessionsOf(s.holdings()) {
			id := r.Session.String()
			l := link{Href: "session?id=" + id, Full: id, Leaf: id}
			switch {
			case strings.Contains(id, wanted):
				add(l, id, "session", "")
			case containsAny(wanted, r.Owner, r.Host):
				add(l, id, "session", strings.Join([]string{"its owner or host:", r.Owner, r.Host}, " "))
			}
		}
		for _, r := range s.locks {
			row := u.lockRowOf(s, r)
			if strings.Contains(strings.ToLower(r.Path), wanted) {
				add(row.Link, r.Path, row.Kind, "")
			} else if row.matches(wanted) {
				add(row.Link, r.Path, row.Kind, "an owner, a host or a session there")
			}
		}
		for _, r := range s.Jobs {
			if row := u.jobRowOf(s, r); containsAny(wanted, r.JobPath()) {
				add(row.Link, r.JobPath(), "job", "")
			} else if row.matches(wanted) {
				add(row.Link, r.JobPath(), "job", "its members, schedule, state or description")
			}
		}
		for _, r := range s.Queues {
			if l := linkTo("queue", r.Path, u.root); containsAny(wanted, r.Path) {
				add(l, r.Path, "queue", "")
			} else if containsAny(wanted, r.Held.Owner, r.Held.Host) {
				add(l, r.Path, "queue", "a consumer there")
			}
		}
		for _, r := range s.barriers {
			if l := linkTo("barriers", r.Path, u.root); containsAny(wanted, r.Path, string(r.Kind)) {
				add(l, r.Path, string(r.Kind), "")
			} else if u.barrierRowOf(r).matches(wanted) {
				add(l, r.Path, string(r.Kind), "who is there, or its state")
			}
		}
		for _, r := range s.Runs {
			if row := workflowRowOf(r); row.matches(wanted) {
				l := u.linkOf(holding{page: "workflow", Path: r.Path, Run: r.ID})
				add(l, znode.Join(r.Path, r.ID), "workflow", "")
			}
		}
		v.Unread = u.searchPlaces(q, s, wanted, add)
	}
	slices.SortStableFunc(v.Rows, func(a, b searchRow) int { return min(len(a.Why), 1) - min(len(b.Why), 1) })
	if len(v.Rows) > pageRows {
		v.Rows, v.More = v.Rows[:pageRows], true
	}
	return built{"Search", v, listJSON(v.Rows)}, nil
}

// searchPlaces searches members, services and configuration values. It returns what could not be
// read.
func (u *UI) searchPlaces(q request, s *snapshot, wanted string, add func(l link, name, kind, why string)) []string {
	groups, groupsErr := findAll(u, q, s, "groups", members.Find, u.readGroup)
	for _, r := range groups.all {
		if row := u.groupRowOf(r); containsAny(wanted, r.Path) {
			add(row.Link, r.Path, "group", "")
		} else if row.matches(wanted) {
			add(row.Link, r.Path, "group", "a member or a session there")
		}
	}
	services, servicesErr := findAll(u, q, s, "services", registry.Find, u.readService)
	for _, r := range services.all {
		if row := u.serviceRowOf(r); containsAny(wanted, r.Path) {
			add(row.Link, r.Path, "service", "")
		} else if row.matches(wanted) {
			add(row.Link, r.Path, "service", "an instance or an address there")
		}
	}
	values, valuesErr := findAll(u, q, s, "values", config.Find, u.readValue)
	for _, r := range values.all {
		if containsAny(wanted, r.Path) {
			add(linkTo("value", r.Path, u.root), r.Path, "value", "")
		}
	}
	unread := slices.Concat(groups.unread, services.unread, values.unread)
	for _, err := range []error{groupsErr, servicesErr, valuesErr} {
		if err != nil {
			unread = append(unread, unreadText(u.client, err))
		}
	}
	return unread
}

package ui

import "strings"

type searchView struct {
	Query string
	Rows  []searchRow
	More  bool
}

type searchRow struct {
	Link link
	Kind string
	Why  string
}

// buildSearch searches paths, owners, hosts and sessions.
func buildSearch(u *UI, q request, s *snapshot) (built, error) {
	wanted := strings.ToLower(strings.TrimSpace(q.query.Get("q")))
	v := searchView{Query: q.query.Get("q")}
	add := func(l link, kind, why string) {
		if len(v.Rows) < pageRows {
			v.Rows = append(v.Rows, searchRow{l, kind, why})
		} else {
			v.More = true
		}
	}
	if wanted != "" {
		for _, r := range s.Locks {
			row := u.lockRowOf(s, r)
			if strings.Contains(strings.ToLower(r.Path), wanted) {
				add(row.Link, row.Kind, "")
			} else if row.matches(wanted) {
				add(row.Link, row.Kind, "an owner, a host or a session there")
			}
		}
		for _, r := range s.Jobs {
			if row := u.jobRowOf(s, r); row.matches(wanted) {
				add(row.Link, "job", "")
			}
		}
		for _, r := range s.Queues {
			if containsAny(wanted, r.Path, r.Held.Owner, r.Held.Host) {
				add(linkTo("queue", r.Path, u.root), "queue", "")
			}
		}
		for _, r := range s.barriers {
			if containsAny(wanted, r.Path) {
				add(linkTo("", r.Path, u.root), string(r.Kind), "")
			}
		}
		for _, r := range s.runs {
			if row := workflowRowOf(r); row.matches(wanted) {
				l := linkTo("workflow", r.Path, u.root)
				l.Leaf, l.Href = r.ID, l.Href+"&id="+urlQuery(r.ID)
				add(l, "workflow", "")
			}
		}
	}
	return built{"Search", v, v.Rows}, nil
}

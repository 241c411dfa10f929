package ui

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/registry"
)

func (u *UI) readService(ctx context.Context, at string) (sharedreport.Service, error) {
	all, err := registry.New(u.client, path.Dir(at)).Instances(ctx, path.Base(at))
	r := sharedreport.NewService(at, all)
	if u.hideData {
		hideInstances(r.Instances)
	}
	return r, err
}

// serviceRow is a service in a list.
type serviceRow struct {
	Link     link
	Report   sharedreport.Service
	Disabled int
	Latest   time.Time // when the newest instance was registered
}

func (u *UI) serviceRowOf(r sharedreport.Service) serviceRow {
	row := serviceRow{Link: linkTo("service", r.Path, u.root), Report: r, Disabled: len(r.Instances) - r.Enabled}
	for _, i := range r.Instances {
		if i.Registered.After(row.Latest) {
			row.Latest = i.Registered
		}
	}
	return row
}

func (r serviceRow) matches(wanted string) bool {
	texts := []string{r.Report.Path}
	for _, i := range r.Report.Instances {
		texts = append(texts, i.ID, i.Address)
	}
	return containsAny(wanted, texts...)
}

type servicesView struct {
	List              list[serviceRow]
	Enabled, Disabled int
	Unread            []string
}

func buildServices(u *UI, q request, s *snapshot) (built, error) {
	services, err := findAll(u, q, s, "services", registry.Find, u.readService)
	if err != nil {
		return built{}, err
	}
	v := servicesView{Unread: services.unread}
	var rows []serviceRow
	for _, r := range services.all {
		row := u.serviceRowOf(r)
		rows = append(rows, row)
		v.Enabled, v.Disabled = v.Enabled+r.Enabled, v.Disabled+row.Disabled
	}
	slices.SortStableFunc(rows, func(a, b serviceRow) int {
		return cmp.Or(min(a.Report.Enabled, 1)-min(b.Report.Enabled, 1), b.Disabled-a.Disabled,
			strings.Compare(a.Report.Path, b.Report.Path))
	})
	v.List = listOf(q.query, rows, map[string]func(a, b serviceRow) int{
		"service": func(a, b serviceRow) int { return strings.Compare(a.Report.Path, b.Report.Path) },
		"enabled": func(a, b serviceRow) int { return a.Report.Enabled - b.Report.Enabled },
		"changed": func(a, b serviceRow) int { return b.Latest.Compare(a.Latest) },
	}, serviceRow.matches)
	return built{"Services", v, listJSON(services.all)}, nil
}

// instanceRow is an instance with the session whose end removes it, or 0.
type instanceRow struct {
	registry.Instance
	Session framework.SessionID
}

type serviceView struct {
	Path     string
	Link     link
	Row      serviceRow
	Rows     []instanceRow
	More     int // rows that are left out
	Weights  int // of enabled instances
	Commands []string
	HideData bool
}

func buildService(u *UI, q request, s *snapshot) (built, error) {
	at := q.query.Get("path")
	if err := u.checkPath(at); err != nil {
		return built{}, err
	}
	if path.Dir(at) == "/" { // a registry has a directory
		return built{}, missing[string]("service", at, nil, nil)
	}
	r, err := read(q.ctx, u.hub, s, "service "+at, func(ctx context.Context) (sharedreport.Service, error) {
		return u.readService(ctx, at)
	})
	switch {
	case err != nil:
		return built{}, err
	case len(r.Instances) == 0:
		return built{}, missing[string]("service", at, nil, nil)
	}
	v := serviceView{Path: at, Link: linkTo("", at, u.root), Row: u.serviceRowOf(r), HideData: u.hideData,
		Commands: []string{"lockstep services " + shellWord(at)}}
	for _, i := range r.Instances {
		if i.Disabled == "" {
			v.Weights += i.Weight
		}
	}
	disabledFirst := slices.SortedStableFunc(slices.Values(r.Instances), func(a, b registry.Instance) int {
		return min(len(b.Disabled), 1) - min(len(a.Disabled), 1)
	})
	for _, i := range disabledFirst[:min(len(disabledFirst), maxMembers)] {
		row := instanceRow{Instance: i}
		if node := s.locksAt[path.Join(at, i.ID)]; len(node.Holders) > 0 { // what is ephemeral is listed there, too
			row.Session = node.Holders[0].Session
		}
		v.Rows = append(v.Rows, row)
	}
	v.More = len(r.Instances) - len(v.Rows)
	return built{at, v, r}, nil
}

// Share is the share of calls that an enabled instance gets by weight, in percent.
func (v serviceView) Share(weight int) int { return 100 * weight / max(1, v.Weights) }

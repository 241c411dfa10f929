package ui

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/locks"
	"github.com/lockstep-go/lockstep/monitor"
)

// To add a page: write a view, which is what its template shows; a function that builds it from a
// snapshot and, if need be, from what it reads by read; a template with "body" and one "f-…" for
// each part that changes while the page is open; and a line in pages. Tests go through all pages.

// request is what a page was asked for.
type request struct {
	ctx   context.Context
	query url.Values
}

// pageDef is a page.
type pageDef struct {
	section   string // of the menu
	fragments []string
	build     func(u *UI, q request, s *snapshot) (built, error)
	template  *template.Template
}

// built is what a page shows.
type built struct {
	title string
	data  any // for the template
	json  any // of the page with .json; it may be laterJSON
}

// listJSON is a list whose JSON is [] if it is empty.
func listJSON[T any](all []T) []T { return append([]T{}, all...) }

// laterJSON reads what only the JSON of a page has.
type laterJSON func(ctx context.Context) (any, error)

// page is what templates get.
type page struct {
	chrome
	Data any
	json any
}

// chrome is the part that all pages share.
type chrome struct {
	Title, Section, Root, Theme, Zone string
	Nav                               []navItem
	Stopped, AtRisk                   int
	Actions                           bool
	Now, At, Since                    time.Time // of the page, of the scan, of the first failed scan
	Took                              time.Duration
	Sent, Number                      int64
	Failed                            string   // why there is no newer scan, or ""
	Unread                            []string // what the scan has not read; the overview has it as findings
	Servers                           []serverLine
	Events                            string // the stream of the page's changes
	JSON                              string

	zone *time.Location
}

// navItem is a line of the menu.
type navItem struct {
	Name, Href, Icon string
	Current          bool
	Count            string
	Worst            severity
}

// serverLine is a server of the ensemble, in the state that the client saw last.
type serverLine struct{ Name, Err string }

// pages are all pages by name. The overview has none.
var pages map[string]*pageDef

// refusal is the page that says why there is none.
var refusal = &pageDef{template: parse("refusal")}

func init() {
	pages = map[string]*pageDef{}
	for _, p := range []struct {
		name, section string
		build         func(u *UI, q request, s *snapshot) (built, error)
	}{
		{"", "", buildOverview},
		{"locks", "locks", buildLocks}, {"lock", "locks", buildLock},
		{"elections", "elections", buildElections}, {"election", "elections", buildElection},
		{"jobs", "jobs", buildJobs}, {"job", "jobs", buildJob},
		{"queues", "queues", buildQueues}, {"queue", "queues", buildQueue},
		{"barriers", "barriers", buildBarriers},
		{"workflows", "workflows", buildWorkflows}, {"workflow", "workflows", buildWorkflow},
		{"members", "members", buildMembers}, {"group", "members", buildGroup},
		{"services", "services", buildServices}, {"service", "services", buildService},
		{"configuration", "configuration", buildConfiguration}, {"value", "configuration", buildValue},
		{"doctor", "doctor", buildDoctor},
		{"sessions", "sessions", buildSessions}, {"session", "sessions", buildSession},
		{"search", "", buildSearch}, {"confirm", "", buildConfirm},
	} {
		pages[p.name] = newPageDef(cmp.Or(p.name, "overview"), p.section, p.build)
	}
}

// newPageDef parses a page's template, whose parts that change have names that begin with "f-".
func newPageDef(name, section string, build func(u *UI, q request, s *snapshot) (built, error)) *pageDef {
	def := &pageDef{section: section, build: build, template: parse(name)}
	for _, t := range def.template.Templates() {
		if strings.HasPrefix(t.Name(), "f-") {
			def.fragments = append(def.fragments, t.Name())
		}
	}
	slices.Sort(def.fragments)
	return def
}

// parse parses the template of a page, with what all pages share.
func parse(name string) *template.Template {
	t := template.New("page").Funcs(template.FuncMap{"shown": shown, "plain": plain, "count": count[int],
		"counted": counted[int],
		"count64": count[int64], "age": age, "lower": strings.ToLower,
		"list": func(v ...any) []any { return v }})
	return template.Must(t.ParseFS(files, "templates/layout.html", "templates/"+name+".html"))
}

// build builds a page of a fresh snapshot.
func (u *UI) build(q request, def *pageDef, r *http.Request) (page, error) {
	return u.buildFrom(q, def, u.hub.fresh(q.ctx), r)
}

func (u *UI) buildFrom(q request, def *pageDef, s *snapshot, r *http.Request) (page, error) {
	p := page{chrome: u.chromeOf(s, r, def)}
	b, err := def.build(u, q, s)
	p.Title, p.Data, p.json = b.title, b.data, b.json
	return p, err
}

func (u *UI) chromeOf(s *snapshot, r *http.Request, def *pageDef) chrome {
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	c := chrome{Root: u.root, Section: def.section, Zone: zoneName(u.zone), zone: u.zone, Actions: u.canAct(),
		Now: time.Now(), At: s.at, Took: s.took.Round(time.Millisecond), Sent: s.sent, Number: s.number,
		Since: s.since}
	if cookie, err := r.Cookie("theme"); err == nil && (cookie.Value == "light" || cookie.Value == "dark") {
		c.Theme = cookie.Value
	}
	self := strings.TrimSuffix(name, ".json")
	c.JSON = cmp.Or(self, "index") + ".json"
	if r.URL.RawQuery != "" {
		self += "?" + r.URL.RawQuery
		c.JSON += "?" + r.URL.RawQuery
	}
	c.Events = "events?page=" + urlQuery(self) + "&seen=" + strconv.FormatInt(s.number, 10)
	for _, f := range s.findings {
		if f.Severity == bad {
			c.Stopped++
		} else {
			c.AtRisk++
		}
	}
	status := u.client.Status()
	for _, server := range status.Servers {
		line := serverLine{Name: server.Server}
		if server.Err != nil {
			line.Err = server.Err.Error()
		}
		c.Servers = append(c.Servers, line)
	}
	switch {
	case s.failed != nil:
		c.Failed = asSentence(s.failed.Error())
	case status.State != framework.Connected && s.at.IsZero():
		c.Failed = "No server can be reached"
	case status.State != framework.Connected:
		c.Failed, c.Since = "No server can be reached", s.at
	}
	switch def.section {
	case "locks", "elections", "jobs", "queues", "workflows":
		for _, f := range allFindings(s.findings) {
			if f.Problem == monitor.ProblemUnread || f.Problem == monitor.ProblemLeftOut {
				c.Unread = append(c.Unread, f.Text+". "+f.Advice)
			}
		}
	case "barriers":
		c.Unread = s.unread
	}
	c.Nav = navOf(s, def.section, def == pages[""])
	return c
}

// asSentence begins a text with a capital letter.
func asSentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// zoneName names a zone for people: that of the machine has no name of its own.
func zoneName(zone *time.Location) string {
	if zone != time.Local {
		return zone.String()
	}
	name, _ := time.Now().In(zone).Zone()
	return name
}

func navOf(s *snapshot, section string, overview bool) []navItem {
	locksOnly, elections := 0, 0
	for _, r := range s.locks {
		if r.Kind == locks.ElectionLock {
			elections++
		} else {
			locksOnly++
		}
	}
	counts := func(n int) string {
		if n < 0 || s.places.at.IsZero() {
			return ""
		}
		return count(n)
	}
	byPage := map[string][]finding{}
	for _, f := range s.findings {
		byPage[f.Page] = append(byPage[f.Page], f)
	}
	items := []navItem{
		{Name: "Overview", Href: "./", Icon: "overview", Current: overview},
		{Name: "Locks", Href: "locks", Icon: "locks", Count: count(locksOnly), Worst: worst(byPage["lock"])},
		{Name: "Elections", Href: "elections", Icon: "elections", Count: count(elections)},
		{Name: "Jobs", Href: "jobs", Icon: "jobs", Count: count(len(s.Jobs)), Worst: worst(byPage["job"])},
		{Name: "Queues", Href: "queues", Icon: "queues", Count: count(len(s.Queues)), Worst: worst(byPage["queue"])},
		{Name: "Barriers", Href: "barriers", Icon: "barriers", Count: count(len(s.barriers))},
		{Name: "Workflows", Href: "workflows", Icon: "workflows", Count: count(len(s.Runs)),
			Worst: worst(byPage["workflows"])},
		{Name: "Members", Href: "members", Icon: "members", Count: counts(s.places.groups)},
		{Name: "Services", Href: "services", Icon: "services", Count: counts(s.places.services)},
		{Name: "Configuration", Href: "configuration", Icon: "configuration", Count: counts(s.places.values)},
		{Name: "Sessions", Href: "sessions", Icon: "sessions"},
		{Name: "Examination", Href: "doctor", Icon: "doctor"},
	}
	for i := range items {
		items[i].Current = items[i].Current || section != "" && items[i].Href == section
	}
	return items
}

// pageRows is how many rows a list shows at once.
const pageRows = 100

// list is a part of the rows of a list, filtered and sorted on the server.
type list[T any] struct {
	Rows                []T
	Total, Matching     int
	First, Last         int
	Page, Pages         int
	Filter, Sort        string
	Previous, Following string // links, or ""
	query               url.Values
}

// listOf filters rows by the query's q and takes its page. matches searches a lower-case text in a
// row.
func listOf[T any](q url.Values, rows []T, sorts map[string]func(a, b T) int,
	matches func(T, string) bool) list[T] {
	l := list[T]{Total: len(rows), Filter: strings.TrimSpace(q.Get("q")), Sort: q.Get("sort"), query: q}
	if l.Filter != "" {
		wanted := strings.ToLower(l.Filter)
		rows = slices.DeleteFunc(slices.Clone(rows), func(r T) bool { return !matches(r, wanted) })
	}
	if compare, known := sorts[l.Sort]; known {
		rows = slices.Clone(rows)
		slices.SortStableFunc(rows, compare)
	} else {
		l.Sort = ""
	}
	l.Matching = len(rows)
	l.Pages = max(1, (len(rows)+pageRows-1)/pageRows)
	l.Page, _ = strconv.Atoi(q.Get("page"))
	l.Page = min(max(1, l.Page), l.Pages)
	from := (l.Page - 1) * pageRows
	l.Rows = rows[from:min(len(rows), from+pageRows)]
	l.First, l.Last = from+1, from+len(l.Rows)
	if l.Page > 1 {
		l.Previous = l.link("page", strconv.Itoa(l.Page-1))
	}
	if l.Page < l.Pages {
		l.Following = l.link("page", strconv.Itoa(l.Page+1))
	}
	return l
}

// link is the list's query with another value.
func (l list[T]) link(key, value string) string {
	q := url.Values{}
	for k, v := range l.query {
		q[k] = v
	}
	if q.Set(key, value); value == "" {
		q.Del(key)
	}
	if key != "page" {
		q.Del("page")
	}
	return "?" + q.Encode()
}

// SortLink is the link of a column's head. That of the column by which the list is sorted leads
// back to the list's own order.
func (l list[T]) SortLink(by string) string {
	if l.Sort == by {
		by = ""
	}
	return l.link("sort", by)
}

// checkPath refuses paths that are no paths, or not below the root.
func (u *UI) checkPath(path string) error {
	if err := framework.ValidatePath(path); err != nil {
		return newPageError(404, "That is no path", err.Error())
	}
	if u.root != "/" && path != u.root && !strings.HasPrefix(path, u.root+"/") {
		return newPageError(404, "This page does not show that", "It shows what is below "+plain(u.root)+".")
	}
	return nil
}

// severityRank orders severities, the worst first.
func severityRank(s severity) int { return slices.Index([]severity{bad, warn}, s) & 3 } // others are 3

func containsAny(wanted string, texts ...string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(strings.ToLower(t), wanted) })
}

// missing is the error of a page about a path without such a thing. It names those that there are,
// as far as the scan knows them.
func missing[T any](what, path string, there []T, about func(T) link) error {
	e := newPageError(http.StatusNotFound, "There is no such "+what,
		"Nothing is at "+plain(path)+", or it has gone meanwhile.")
	for _, one := range there[:min(len(there), maxNamed)] {
		e.there = append(e.there, about(one))
	}
	if e.more = len(there) - len(e.there); len(e.there) == 0 {
		e.text += " The menu lists what there is."
	}
	return e
}

const maxNamed = 10 // things that missing names

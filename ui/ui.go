package ui

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
	"github.com/lockstep-go/lockstep/monitor"
)

//go:embed assets templates
var files embed.FS

// UI is the handler of all pages. It serves them at any prefix: it looks at the last part of
// the request's path only, and its links are relative.
type UI struct {
	settings
	client  *framework.Client
	hub     *hub
	origins *http.CrossOriginProtection

	examined examination
}

// New returns the pages of what the client can see. The error wraps framework.ErrInvalid. Close it
// when the server has stopped.
func New(client *framework.Client, opts ...Option) (*UI, error) {
	u := &UI{client: client, origins: http.NewCrossOriginProtection(),
		settings: settings{root: "/", interval: time.Second, zone: time.Local}}
	if client == nil {
		return nil, fmt.Errorf("ui: %w: the client is nil", errInvalid)
	}
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt(&u.settings); err != nil {
			return nil, fmt.Errorf("ui: %w: %w", errInvalid, err)
		}
	}
	scanner, err := monitor.NewScanner(client, u.root)
	if err != nil {
		return nil, fmt.Errorf("ui: %w: %w", errInvalid, err)
	}
	u.hub = newHub(client, u.settings, scanner)
	return u, nil
}

// Close ends the streams of open pages and the scan that is under way, and waits for both.
func (u *UI) Close() { u.hub.close() }

// contentSecurity permits what the pages consist of, and nothing else.
const contentSecurity = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// ServeHTTP serves a page, its JSON, its stream of changes, an asset or an action.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", contentSecurity)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cache-Control", "no-store")
	switch {
	case !u.answersTo(r.Host):
		http.Error(w, "This page does not answer to this host name. Its operator can name it: WithHosts of package "+
			"ui, or --host of lockstep ui.", http.StatusMisdirectedRequest)
	case r.Method == http.MethodPost:
		u.origins.Handler(http.HandlerFunc(u.servePost)).ServeHTTP(w, r)
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		u.serveGet(w, r)
	default:
		head.Set("Allow", "GET, HEAD, POST")
		http.Error(w, "Use GET.", http.StatusMethodNotAllowed)
	}
}

// answersTo reports whether the request's host is an address, localhost or a name of WithHosts.
func (u *UI) answersTo(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || slices.Contains(u.hosts, host)
}

func (u *UI) serveGet(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	if strings.HasSuffix(r.URL.Path, "/") || r.URL.Path == "" {
		name = ""
	}
	switch name {
	case "lockstep.css", "live.js", "icon.svg":
		serveAsset(w, name)
		return
	}
	if err := u.mayDo(r, Action{Kind: ActionView}); err != nil {
		u.refuse(w, r, newPageError(http.StatusForbidden, "This page is not for you", err.Error()))
		return
	}
	if name == "events" {
		u.serveEvents(w, r)
		return
	}
	name, asJSON := strings.CutSuffix(name, ".json")
	if name == "confirm" {
		if err := u.mayDo(r, actionOf(r.URL.Query())); err != nil {
			u.refuse(w, r, newPageError(http.StatusForbidden, "This action is not for you", err.Error()))
			return
		}
	}
	if name == "index" {
		name = ""
	}
	def, known := pages[name]
	if !known {
		u.refuse(w, r, newPageError(http.StatusNotFound, "There is no such page", "The menu lists all pages."))
		return
	}
	request := request{r.Context(), r.URL.Query()}
	p, err := u.build(request, def, r)
	var failed *pageError
	switch {
	case errors.As(err, &failed):
		u.refuse(w, r, failed)
	case err != nil:
		u.refuse(w, r, unreadError(u.client, err))
	case asJSON:
		u.serveJSON(w, r, p.json)
	default:
		u.render(w, http.StatusOK, def.template, "page", p)
	}
}

// serveJSON writes what the command line prints with --json, as one value.
func (u *UI) serveJSON(w http.ResponseWriter, r *http.Request, value any) {
	if later, is := value.(laterJSON); is {
		var err error
		if value, err = later(r.Context()); err != nil {
			u.refuse(w, r, unreadError(u.client, err))
			return
		}
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		u.client.Logger().Error("a web page has no JSON", "error", err)
		http.Error(w, "This page has no JSON.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(reportjson.EscapeUnprintable(text), '\n'))
}

func unreadError(client *framework.Client, err error) *pageError {
	return newPageError(http.StatusServiceUnavailable, "This could not be read",
		asSentence(unreadText(client, err))+".")
}

// unreadText is the text of an error of a read or an action. It names the page's credentials if
// these do not suffice.
func unreadText(client *framework.Client, err error) string {
	if !errors.Is(err, framework.ErrNoAuth) {
		return err.Error()
	}
	return err.Error() + "; this page connected " + sharedreport.Credentials(client.Config())
}

// mayDo asks the function of WithAuthorize.
func (u *UI) mayDo(r *http.Request, a Action) error {
	if u.authorize == nil {
		return nil
	}
	return u.authorize(r, a)
}

func serveAsset(w http.ResponseWriter, name string) {
	kind := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".svg": "image/svg+xml"}[path.Ext(name)]
	content, err := files.ReadFile("assets/" + name)
	if err != nil {
		http.Error(w, "missing", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(content)
}

// render writes a template. It renders to memory first, so that no half of a page is sent.
func (u *UI) render(w http.ResponseWriter, status int, t *template.Template, name string, data any) {
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, name, data); err != nil {
		u.client.Logger().Error("a web page cannot be rendered", "error", err)
		http.Error(w, "This page cannot be rendered.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes())
}

// pageError is a page that cannot be shown.
type pageError struct {
	status      int
	title, text string
	back        string // where a link leads back to, or ""
	there       []link // what there is instead, and how many more
	more        int
}

func newPageError(status int, title, text string) *pageError {
	return &pageError{status: status, title: title, text: text}
}

// withBack adds a link back to a page.
func (e *pageError) withBack(page string) *pageError {
	e.back = page
	return e
}

func (e *pageError) Error() string { return e.title + ": " + e.text }

// refuse shows why there is no page.
func (u *UI) refuse(w http.ResponseWriter, r *http.Request, e *pageError) {
	if strings.HasSuffix(r.URL.Path, ".json") {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(e.status)
		refused, _ := json.Marshal(map[string]string{"error": e.Error()})
		_, _ = w.Write(append(reportjson.EscapeUnprintable(refused), '\n'))
		return
	}
	p := page{chrome: u.chromeOf(u.hub.latest(), r, refusal),
		Data: refusalView{e.title, e.text, e.back, e.there, e.more}}
	if p.Title = e.title; p.Failed != "" {
		p.At = time.Time{} // nothing of it is shown
	}
	u.render(w, e.status, refusal.template, "page", p)
}

type refusalView struct {
	Title, Text, Back string
	There             []link
	More              int
}

package ui

import (
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/lockstep-go/lockstep/locks"
)

// age formats a duration for people: 8s, 4m12s, 5h04m, 3d02h.
func age(d time.Duration) string {
	d = max(0, d.Round(time.Second))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// count is a number with separators of thousands.
func count[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// counted is a number with its noun.
func counted[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// maxShown is how many bytes of a text that others have written a page shows.
const maxShown = 600

// shown escapes a text that others have written. Runes that would change how the rest is shown, or
// that nobody sees, are shown by their numbers.
func shown(text string) template.HTML {
	var out strings.Builder
	plainTo(&out, text, func(r rune) {
		fmt.Fprintf(&out, `<span class="esc">%s</span>`, strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}, true)
	return template.HTML(out.String()) //nolint:gosec // escaped here
}

// plain is shown for attributes and titles, as text.
func plain(text string) string {
	var out strings.Builder
	plainTo(&out, text, func(r rune) { out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'")) }, false)
	return out.String()
}

func plainTo(out *strings.Builder, text string, hidden func(rune), escape bool) {
	for i, r := range text {
		if i > maxShown {
			out.WriteString("…")
			return
		}
		switch {
		case !unicode.IsPrint(r) || r == unicode.ReplacementChar:
			hidden(r)
		case escape:
			template.HTMLEscape(writer{out}, []byte(string(r)))
		default:
			out.WriteRune(r)
		}
	}
}

type writer struct{ *strings.Builder }

// shellWord quotes a text for a shell, if need be.
func shellWord(text string) string {
	safe := text != ""
	for _, r := range text {
		if !unicode.IsPrint(r) { // not to be pasted
			return "'" + plain(text) + "'"
		}
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@+,", r) {
			safe = false
		}
	}
	if safe && !strings.HasPrefix(text, "-") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// link is a path with the page about it.
type link struct {
	Href, Full, Dir, Leaf string
}

// linkTo links to a page about a path, or to the list of the runs or the barriers there. It leaves
// out the section's prefix.
func linkTo(page, path, prefix string) link {
	l := link{Full: plain(path)}
	switch page {
	case "":
	case "workflows", "barriers":
		l.Href = page + "?q=" + url.QueryEscape(path)
	default:
		l.Href = page + "?path=" + url.QueryEscape(path)
	}
	rest := strings.TrimPrefix(path, prefix)
	if i := strings.LastIndexByte(rest, '/'); i >= 0 && i < len(rest)-1 {
		l.Dir, l.Leaf = strings.TrimPrefix(rest[:i+1], "/"), rest[i+1:]
		return l
	}
	l.Leaf = rest
	if l.Leaf == "" {
		l.Leaf = path
	}
	return l
}

// owner is how an entry names itself, or else its session or node.
func owner(e locks.Entry) string {
	switch {
	case e.Owner != "":
		return e.Owner
	case e.Data != "" && len(e.Data) < 64:
		return e.Data
	case e.Session != 0:
		return e.Session.String()
	}
	return e.Node[strings.LastIndexByte(e.Node, '/')+1:]
}

func (p page) funcMoment(t time.Time, class severity) template.HTML {
	if t.IsZero() || t.Year() > 9999 || t.Year() < 1 {
		return `<span class="zero">–</span>`
	}
	text := age(p.Now.Sub(t))
	if t.After(p.Now) {
		text = "in " + age(t.Sub(p.Now))
	}
	class = severity(strings.TrimSpace("age " + string(class)))
	return template.HTML(fmt.Sprintf(`<time class="%s" datetime="%s" title="%s">%s</time>`, class,
		t.UTC().Format(time.RFC3339), t.In(p.zone).Format("2006-01-02 15:04:05 MST"), text)) //nolint:gosec // no foreign text
}

// Age is the age of a moment.
func (p page) Age(t time.Time) template.HTML { return p.funcMoment(t, "") }

// AgeOf is Age in the colour of a severity.
func (p page) AgeOf(t time.Time, class severity) template.HTML { return p.funcMoment(t, class) }

// Clock is the time of a moment on its day, with the day if it is another than today.
func (p page) Clock(t time.Time) template.HTML {
	if t.IsZero() || t.Year() > 9999 || t.Year() < 1 {
		return `<span class="zero">–</span>`
	}
	t = t.In(p.zone)
	layout := "15:04:05"
	if t.Format("20060102") != p.Now.In(p.zone).Format("20060102") {
		layout = "2006-01-02 15:04"
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, t.UTC().Format(time.RFC3339),
		t.Format("2006-01-02 15:04:05 MST"), t.Format(layout))) //nolint:gosec // no foreign text
}

// timesInText are the times in the texts of problems.
var timesInText = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// Text is shown with the times in the text as Clock shows them.
func (p page) Text(text string) template.HTML {
	return template.HTML(timesInText.ReplaceAllStringFunc(string(shown(text)), func(found string) string {
		t, err := time.Parse(time.RFC3339, found)
		if err != nil {
			return found
		}
		return string(p.Clock(t))
	})) //nolint:gosec // escaped by shown
}

// PathOf is a path without a page about it.
func (p page) PathOf(path string) link { return linkTo("", path, p.Root) }

// Timestamp is a moment as text.
func (p page) Timestamp(t time.Time) string { return t.In(p.zone).Format("2006-01-02 15:04:05") }

// urlQuery escapes a value of a query.
func urlQuery(text string) string { return url.QueryEscape(text) }

// DocumentTitle is the title of the window.
func (p page) DocumentTitle() string {
	title := plain(p.Title)
	switch {
	case p.Failed != "":
		return "no servers · " + title
	case p.Stopped > 0:
		return fmt.Sprintf("%d stopped · %s", p.Stopped, title)
	case p.AtRisk > 0:
		return fmt.Sprintf("%d at risk · %s", p.AtRisk, title)
	}
	return title
}

package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/internal/cli"
	"github.com/lockstep-go/lockstep/internal/terminal"
)

// topModel is what lockstep top shows: keys and scans go in, frames come out. It knows no terminal
// and no server.
type topModel struct {
	root   string // or "": each list has its own
	title  string // the servers
	style  terminal.Style
	view   *topView
	sort   int // of view.sorts
	filter string

	typing   bool   // the filter
	before   string // the filter before that
	help     bool
	paused   bool
	opened   *topRow // whose detail is shown
	scrolled int     // lines of the detail
	selected string  // the key of a row
	first    int     // the first row on the screen
	page     int     // rows on the screen

	scans map[string]topScan // by list
	shown []topRow           // of the present list, filtered and sorted
	open  topScan            // of the opened row
}

func newTopModel(view *topView, root, title string) *topModel {
	return &topModel{root: root, title: title, view: view, scans: map[string]topScan{}, page: 1}
}

// scannedDir is where the present list scans.
func (m *topModel) scannedDir() string { return cmp.Or(m.root, m.view.dir) }

// topWish is what the screen needs.
type topWish struct {
	view   *topView
	root   string
	opened *topRow
	paused bool
}

func (m *topModel) wish() topWish { return topWish{m.view, m.scannedDir(), m.opened, m.paused} }

// addScan shows what was found. A scan of something else than what is shown by now is kept for
// later, or dropped.
func (m *topModel) addScan(found topScan) {
	switch {
	case found.opened == "":
		m.scans[found.view] = found
		if found.view == m.view.name {
			m.arrange()
		}
	case m.opened != nil && m.opened.key() == found.opened:
		m.open = found
	}
}

// arrange filters and sorts the rows. The selected row stays selected.
func (m *topModel) arrange() {
	wanted := strings.ToLower(m.filter)
	m.shown = nil
	for _, row := range m.scans[m.view.name].rows {
		if strings.Contains(row.words, wanted) {
			m.shown = append(m.shown, row)
		}
	}
	slices.SortFunc(m.shown, func(a, b topRow) int {
		byKey := cmp.Compare(a.key(), b.key())
		switch m.sort {
		case 0:
			return cmp.Or(cmp.Compare(b.weight, a.weight), byKey)
		case 1:
			return cmp.Or(cmp.Compare(a.order, b.order), byKey)
		}
		return byKey
	})
}

// press does what a key stands for. It returns false for the key that ends the program.
func (m *topModel) press(key terminal.Key) bool {
	switch {
	case key == terminal.KeyInterrupt:
		return false
	case m.typing:
		m.typeFilter(key)
	case m.help:
		m.help = false
	case m.opened != nil:
		m.pressInDetail(key)
	case key == "q":
		return false
	default:
		m.pressInList(key)
	}
	return true
}

func (m *topModel) typeFilter(key terminal.Key) {
	switch {
	case key == terminal.KeyEnter:
		m.typing = false
	case key == terminal.KeyEscape:
		m.typing, m.filter = false, m.before
	case key == terminal.KeyBackspace:
		_, size := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-size]
	case utf8.RuneCountInString(string(key)) == 1:
		m.filter += string(key)
	}
	m.first = 0
	m.arrange()
}

func (m *topModel) pressInDetail(key terminal.Key) {
	switch key {
	case "q", terminal.KeyEscape, terminal.KeyBackspace, terminal.KeyLeft:
		m.opened, m.open, m.scrolled = nil, topScan{}, 0
	case "?", "h":
		m.help = true
	case "p":
		m.paused = !m.paused
	case terminal.KeyDown, "j":
		m.scrolled++
	case terminal.KeyUp, "k":
		m.scrolled--
	case terminal.KeyPageDown, " ":
		m.scrolled += m.page
	case terminal.KeyPageUp:
		m.scrolled -= m.page
	case terminal.KeyHome, "g":
		m.scrolled = 0
	case terminal.KeyEnd, "G":
		m.scrolled = len(m.open.detail)
	}
	m.scrolled = max(0, min(m.scrolled, len(m.open.detail)-1))
}

func (m *topModel) pressInList(key terminal.Key) {
	before := m.selectedIndex()
	at := before
	switch key {
	case "?", "h":
		m.help = true
	case "p":
		m.paused = !m.paused
	case "s":
		m.sort = (m.sort + 1) % len(m.view.sorts)
		m.arrange()
		m.selected = ""
		return
	case "/":
		m.typing, m.before = true, m.filter
	case terminal.KeyEscape:
		m.filter = ""
		m.arrange()
	case terminal.KeyTab, terminal.KeyRight:
		m.switchView(1)
		return
	case terminal.KeyBackTab, terminal.KeyLeft:
		m.switchView(len(topViews) - 1)
		return
	case "1", "2", "3", "4", "5":
		m.switchView(int(key[0]-'1') - m.viewIndex() + len(topViews))
		return
	case terminal.KeyEnter:
		if at < len(m.shown) {
			row := m.shown[at]
			m.opened, m.scrolled, m.open = &row, 0, topScan{}
		}
	case terminal.KeyDown, "j":
		at++
	case terminal.KeyUp, "k":
		at--
	case terminal.KeyPageDown, " ":
		at += m.page
	case terminal.KeyPageUp:
		at -= m.page
	case terminal.KeyHome, "g":
		at = 0
	case terminal.KeyEnd, "G":
		at = len(m.shown) - 1
	}
	if at = max(0, min(at, len(m.shown)-1)); at != before {
		// a selected row that a filter leaves out is selected again without the filter
		m.selected = m.shown[at].key()
	}
}

func (m *topModel) viewIndex() int {
	return slices.IndexFunc(topViews, func(v topView) bool { return v.name == m.view.name })
}

// switchView shows the list that is so many steps after the present one.
func (m *topModel) switchView(steps int) {
	m.view = &topViews[(m.viewIndex()+steps)%len(topViews)]
	m.sort, m.first, m.selected = 0, 0, ""
	m.arrange()
}

// selectedIndex is the index of the selected row, or 0 if that row is gone.
func (m *topModel) selectedIndex() int {
	return max(0, slices.IndexFunc(m.shown, func(r topRow) bool { return r.key() == m.selected }))
}

// frame returns the lines of the screen. outage is why no server can be used, or "".
func (m *topModel) frame(width, height int, now time.Time, outage string) []string {
	lines := []string{m.headLine(now), m.tabLine(width), m.statusLine(outage)}
	m.page = max(1, height-len(lines)-2)
	switch {
	case m.help:
		lines = append(lines, topHelp...)
	case m.opened != nil:
		lines = append(lines, m.detailLines()...)
	default:
		lines = append(lines, m.listLines(width)...)
	}
	if len(lines) > height-1 {
		lines = lines[:max(1, height-1)]
	}
	for len(lines) < height-1 {
		lines = append(lines, "")
	}
	return append(lines, m.keyLine())[:height]
}

func (m *topModel) headLine(now time.Time) string {
	found, kind := m.scans[m.view.name], m.view.name
	if m.opened != nil {
		found, kind = m.open, strings.TrimSuffix(kind, "s")
	}
	text := fmt.Sprintf("%s  %s below %s", m.style.Bold("lockstep top"), kind, cli.QuoteName(m.scannedDir()))
	if m.opened != nil {
		text = fmt.Sprintf("%s  %s %s", m.style.Bold("lockstep top"), kind, m.opened.cells[0].Text)
	}
	if m.title != "" {
		text += " on " + cli.InOneLine(m.title)
	}
	if found.at.IsZero() {
		return text + m.style.Dim("  scanning")
	}
	seen := fmt.Sprintf("  seen %s", cli.FormatAge(now.Sub(found.at)))
	if now.Sub(found.at) > 10*time.Second {
		return text + m.style.Yellow(seen)
	}
	return text + m.style.Dim(seen)
}

// tabLine names the lists, with the numbers of their rows as far as there is room, and says how the
// present one is sorted.
func (m *topModel) tabLine(width int) string {
	sorted := "  by " + m.view.sorts[m.sort]
	var tabs []string
	left := width - 1 - len(sorted)
	for i, v := range topViews {
		tabs = append(tabs, fmt.Sprintf("%d %s", i+1, v.name))
		left -= len(tabs[i]) + 2
	}
	for i := range topViews {
		at := (m.viewIndex() + i) % len(topViews)
		if found, ok := m.scans[topViews[at].name]; ok {
			if count := fmt.Sprintf(" (%d)", len(found.rows)); len(count) <= left {
				tabs[at] += count
				left -= len(count)
			}
		}
	}
	tabs[m.viewIndex()] = m.style.Bold("[" + tabs[m.viewIndex()] + "]")
	line := strings.Join(tabs, "  ") + m.style.Dim(sorted)
	if m.filter != "" || m.typing {
		line += fmt.Sprintf("%s%s %s", m.style.Dim("  filter "), cli.QuoteName(m.filter),
			m.style.Dim(fmt.Sprintf("(%d of them)", len(m.shown))))
	}
	if m.paused {
		line += m.style.Yellow("  paused")
	}
	return line
}

func (m *topModel) statusLine(outage string) string {
	found := m.scans[m.view.name]
	if m.opened != nil {
		found = m.open
	}
	switch {
	case outage != "":
		return m.style.Red(outage)
	case m.typing:
		return "filter: " + cli.QuoteUnprintable(m.filter) + "_"
	case len(found.wrong) > 1:
		return m.style.Yellow(fmt.Sprintf("%s; and %d more", found.wrong[0], len(found.wrong)-1))
	case len(found.wrong) == 1:
		return m.style.Yellow(found.wrong[0])
	}
	return ""
}

// listLines are the rows that fit, around the selected one. Long paths are shortened rather than
// the columns behind them cut off, by which the list is sorted.
func (m *topModel) listLines(width int) []string {
	at := m.selectedIndex()
	m.first = max(0, min(m.first, at, len(m.shown)-m.page))
	m.first = max(m.first, at-m.page+1)
	t := cli.NewTable(append([]string{" "}, m.view.head...)...)
	for i, row := range m.shown[m.first:min(len(m.shown), m.first+m.page)] {
		mark := cli.PlainCell(" ")
		if m.first+i == at {
			mark = cli.CyanCell(">")
		}
		t.AddRow(append([]cli.Cell{mark}, row.cells...)...)
	}
	if len(m.shown) == 0 {
		if _, scanned := m.scans[m.view.name]; scanned {
			return []string{m.style.Dim("no " + m.view.name)}
		}
	}
	t.FitColumn(1, width-1) // terminals wrap or hide the last column
	return t.FormatLines(m.style)
}

func (m *topModel) detailLines() []string {
	if len(m.open.detail) == 0 {
		return nil
	}
	m.scrolled = max(0, min(m.scrolled, len(m.open.detail)-1))
	return m.open.detail[m.scrolled:]
}

func (m *topModel) keyLine() string {
	switch {
	case m.typing:
		return m.style.Dim("enter: keep the filter  escape: the filter before")
	case m.help:
		return m.style.Dim("any key: back")
	case m.opened != nil:
		return m.style.Dim("escape back  up down scroll  p pause  ctrl-c quit")
	}
	return m.style.Dim("up down select  enter open  s sort  / filter  tab next list  ? help  q quit")
}

var topHelp = []string{
	"",
	"  1 to 5, tab      locks, elections, jobs, queues, workflows",
	"  up down, j k     select a row; page up, page down, home, end",
	"  enter            open the row: who holds and waits, the latest runs",
	"  escape, q        back to the list; q in the list ends lockstep top",
	"  s                sort by the next of urgency, age or due time, path",
	"  /                show only rows that contain a text: names, owners, hosts, states; escape in the list " +
		"shows all again",
	"  p                pause: the list stays as it is; p again goes on",
	"  ctrl-z, ctrl-l   stop until the shell's fg; draw again",
}

// topFrameJSON is a frame as JSON.
type topFrameJSON struct {
	At     time.Time `json:"at"` // by this machine's clock
	View   string    `json:"view"`
	Below  string    `json:"below"`
	Sort   string    `json:"sort"`
	Filter string    `json:"filter,omitempty"`
	Count  int       `json:"count"` // of all, also those that filter and limit leave out
	Rows   []any     `json:"rows"`
	Wrong  []string  `json:"wrong,omitempty"` // what could not be read or was left out
}

// frameJSON is the list as JSON, at most limit rows, or all for 0.
func (m *topModel) frameJSON(limit int) topFrameJSON {
	found := m.scans[m.view.name]
	v := topFrameJSON{At: found.at, View: m.view.name, Below: m.scannedDir(), Sort: m.view.sorts[m.sort],
		Filter: m.filter, Count: len(found.rows), Rows: []any{}, Wrong: found.wrong}
	for _, row := range m.shown[:rowsWithin(limit, len(m.shown))] {
		v.Rows = append(v.Rows, row.value)
	}
	return v
}

// plainTable is the list as a table, at most limit rows, or all for 0.
func (m *topModel) plainTable(limit int) *cli.Table {
	t := cli.NewTable(m.view.head...)
	for _, row := range m.shown[:rowsWithin(limit, len(m.shown))] {
		t.AddRow(row.cells...)
	}
	return t
}

func rowsWithin(limit, count int) int {
	if limit == 0 {
		return count
	}
	return min(limit, count)
}

package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/queue"
)

// queueRow is a queue in a list.
type queueRow struct {
	Link     link
	Report   queue.Report
	Severity severity
	Problems []finding
	Spark    string // the path of its depth
	Points   int
	Failing  string
}

func (u *UI) queueRowOf(s *snapshot, r queue.Report) queueRow {
	row := queueRow{Link: linkTo("queue", r.Path, u.root), Report: r, Problems: s.problemsAt[r.Path]}
	row.Severity = worst(row.Problems)
	u.hub.mu.Lock()
	depths := slices.Clone(u.hub.memory.depths[r.Path])
	u.hub.mu.Unlock()
	row.Spark, row.Points = curve(depths, itemsOf, 96, 22), len(depths)
	return row
}

func itemsOf(d depth) int   { return d.Items }
func secondsOf(d depth) int { return int(d.Oldest.Seconds()) }

// curve is the path of a curve through a value of depths in a box.
func curve(depths []depth, of func(depth) int, width, height float64) string {
	if len(depths) < 2 {
		return ""
	}
	from, most := depths[0].At, 1
	span := depths[len(depths)-1].At.Sub(from).Seconds()
	for _, d := range depths {
		most = max(most, of(d))
	}
	var out strings.Builder
	for i, d := range depths {
		letter := 'L'
		if i == 0 {
			letter = 'M'
		}
		fmt.Fprintf(&out, "%c%.1f %.1f", letter, width*d.At.Sub(from).Seconds()/max(1, span),
			1+(height-2)*(1-float64(of(d))/float64(most)))
	}
	return out.String()
}

func (r queueRow) matches(wanted string) bool { return containsAny(wanted, r.Report.Path) }

var queueSorts = map[string]func(a, b queueRow) int{
	"queue":  func(a, b queueRow) int { return strings.Compare(a.Report.Path, b.Report.Path) },
	"items":  func(a, b queueRow) int { return b.Report.Items - a.Report.Items },
	"oldest": func(a, b queueRow) int { return compareSince(a.Report.Oldest, b.Report.Oldest) },
	"dead":   func(a, b queueRow) int { return b.Report.Dead - a.Report.Dead },
}

func (u *UI) queueRows(s *snapshot) (rows []queueRow) {
	for _, r := range s.Queues {
		rows = append(rows, u.queueRowOf(s, r))
	}
	slices.SortStableFunc(rows, func(a, b queueRow) int {
		return cmp.Or(severityRank(a.Severity)-severityRank(b.Severity), b.Report.Items-a.Report.Items)
	})
	return rows
}

type queuesView struct {
	List        list[queueRow]
	Items, Dead int
}

func buildQueues(u *UI, q request, s *snapshot) (built, error) {
	rows := u.queueRows(s)
	v := queuesView{List: listOf(q.query, rows, queueSorts, queueRow.matches)}
	for _, r := range rows {
		v.Items, v.Dead = v.Items+r.Report.Items, v.Dead+r.Report.Dead
	}
	return built{"Queues", v, listJSON(s.Queues)}, nil
}

type queueView struct {
	Path     string
	Row      queueRow
	Link     link
	Held     []queue.InFlightItem
	Dead     []queue.DeadLetter
	MoreDead bool
	SeenDead string
	InFlight int // of which Held are the oldest
	Depths   []depth
	Curve    string
	Most     int
	Ages     string // the curve of the oldest item's age
	Longest  time.Duration
	Watched  time.Time
	Commands []string
	Done     string
	HideData bool
	Unread   string
}

// NameOf is a node's path below the queue.
func (v queueView) NameOf(node string) string { return strings.TrimPrefix(node, v.Path+"/") }

// How many dead letters a page shows, and its JSON.
const (
	maxLetters     = 50
	maxLettersJSON = 10_000
)

// queueItems are the items of a queue that consumers have, and dead letters.
type queueItems struct {
	held []queue.InFlightItem // the oldest first
	dead []queue.DeadLetter   // one more than was asked for if there are more
}

func (u *UI) readItems(ctx context.Context, path string, letters int) (items queueItems, err error) {
	opened := queue.New(u.client, path, codec.Bytes())
	defer opened.Close(ctx) //nolint:errcheck // it has taken nothing
	var heldErr, deadErr error
	items.held, heldErr = opened.InFlight(ctx)
	items.dead, deadErr = readDead(ctx, opened, letters)
	slices.SortStableFunc(items.held, func(a, b queue.InFlightItem) int { return compareSince(a.Since, b.Since) })
	if u.hideData {
		hideItems(items.held, items.dead)
	}
	return items, errors.Join(heldErr, deadErr)
}

// queueJSON is the JSON of a queue's page.
type queueJSON struct {
	Queue    queue.Report         `json:"queue"`
	InFlight []queue.InFlightItem `json:"in_flight"`
	Dead     []queue.DeadLetter   `json:"dead_letters"`
	MoreDead bool                 `json:"more_dead_letters,omitempty"` // than these
}

// readDead reads dead letters, and one more if there are more.
func readDead(ctx context.Context, q *queue.Queue[[]byte], most int) (letters []queue.DeadLetter, err error) {
	for letter, err := range q.DeadLetters(ctx) {
		if err != nil {
			return letters, err
		}
		if letters = append(letters, letter); len(letters) > most {
			break
		}
	}
	return letters, nil
}

// seenOfDead is what a page has seen of a queue's dead letters: their number and, if it has shown
// them all, which they are. A letter's name is given once.
func seenOfDead(number int, letters []queue.DeadLetter) string {
	if len(letters) > maxLetters {
		return strconv.Itoa(number)
	}
	names := fnv.New64a()
	for _, letter := range letters {
		_, _ = io.WriteString(names, letter.Node+"\n")
	}
	return fmt.Sprintf("%d %x", len(letters), names.Sum64())
}

func buildQueue(u *UI, q request, s *snapshot) (built, error) {
	path := q.query.Get("path")
	i := slices.IndexFunc(s.Queues, func(r queue.Report) bool { return r.Path == path })
	if i < 0 {
		return built{}, missing("queue", path, s.Queues,
			func(r queue.Report) link { return linkTo("queue", r.Path, u.root) })
	}
	v := queueView{Path: path, Row: u.queueRowOf(s, s.Queues[i]), Link: linkTo("", path, u.root),
		Done: doneText(q.query), HideData: u.hideData}
	found, err := read(q.ctx, u.hub, s, "queue "+path, func(ctx context.Context) (queueItems, error) {
		return u.readItems(ctx, path, maxLetters)
	})
	if err != nil {
		v.Unread = unreadText(u.client, err)
	}
	v.Held, v.InFlight = found.held[:min(len(found.held), pageRows)], len(found.held)
	v.Dead, v.SeenDead = found.dead, seenOfDead(v.Row.Report.Dead, found.dead)
	if len(v.Dead) > maxLetters {
		v.Dead, v.MoreDead = v.Dead[:maxLetters], true
	}
	u.hub.mu.Lock()
	v.Depths, v.Watched = slices.Clone(u.hub.memory.depths[path]), u.hub.memory.since
	u.hub.mu.Unlock()
	v.Curve, v.Ages = curve(v.Depths, itemsOf, 600, 120), curve(v.Depths, secondsOf, 600, 80)
	for _, d := range v.Depths {
		v.Most, v.Longest = max(v.Most, d.Items), max(v.Longest, d.Oldest)
	}
	word := shellWord(path)
	v.Commands = []string{"lockstep queue ls " + word, "lockstep queue inflight " + word,
		"lockstep queue dead " + word}
	return built{path, v, laterJSON(func(ctx context.Context) (any, error) {
		all, err := read(ctx, u.hub, s, "letters "+path, func(ctx context.Context) (queueItems, error) {
			return u.readItems(ctx, path, maxLettersJSON)
		})
		dead := all.dead[:min(len(all.dead), maxLettersJSON)]
		return queueJSON{v.Row.Report, listJSON(all.held), listJSON(dead), len(dead) < len(all.dead)}, err
	})}, nil
}

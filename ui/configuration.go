package ui

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lockstep-go/lockstep/codec"
	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
	"github.com/lockstep-go/lockstep/internal/linediff"
	"github.com/lockstep-go/lockstep/internal/reportjson"
	"github.com/lockstep-go/lockstep/internal/sharedreport"
)

// readValue returns a value of a list. Its version is 0 if the value was deleted.
func (u *UI) readValue(ctx context.Context, path string) (sharedreport.Value, error) {
	stat, err := u.client.Exists(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return sharedreport.Value{Path: path}, nil
	}
	if err != nil {
		return sharedreport.Value{}, err
	}
	return sharedreport.NewValue(path, stat), nil
}

type valueRow struct {
	Link link
	sharedreport.Value
}

type configurationView struct {
	List   list[valueRow]
	Unread []string
}

func buildConfiguration(u *UI, q request, s *snapshot) (built, error) {
	values, err := findAll(u, q, s, "values", config.Find, u.readValue)
	if err != nil {
		return built{}, err
	}
	var rows []valueRow
	for _, r := range values.all {
		rows = append(rows, valueRow{linkTo("value", r.Path, u.root), r})
	}
	slices.SortStableFunc(rows, func(a, b valueRow) int { return b.Written.Compare(a.Written) })
	v := configurationView{Unread: values.unread, List: listOf(q.query, rows, map[string]func(a, b valueRow) int{
		"value": func(a, b valueRow) int { return strings.Compare(a.Path, b.Path) },
		"bytes": func(a, b valueRow) int { return int(b.Bytes) - int(a.Bytes) },
	}, func(r valueRow, wanted string) bool { return containsAny(wanted, r.Path) })}
	return built{"Configuration", v, listJSON(values.all)}, nil
}

// recordRow is a value of the history.
type recordRow struct {
	config.Record
	Current, Shown bool
	Error          string
	MayRollBack    bool
}

type valueView struct {
	Path     string
	Link     link
	Current  *config.Record // nil if the value was deleted
	Seen     string         // the present version, for actions
	Rows     []recordRow
	Lines    []diffLine // the value that is shown, and what it changed
	Shown    int64      // its version
	Before   int64      // the version before it, 0 if the history does not have it
	Binary   int        // bytes of a value that is no text
	More     int        // lines that are left out
	HideData bool
	Done     string
	Commands []string
}

const maxLines = 400 // of a value that a page shows

// valueHistory are the records of a value, the newest first, and its present version.
type valueHistory struct {
	records []config.Record
	version int64 // 0 if there is no node
}

func (u *UI) readHistory(ctx context.Context, path string) (h valueHistory, err error) {
	if h.records, err = config.New(u.client, path, codec.Bytes()).History(ctx); err != nil {
		return h, err
	}
	now, err := u.readValue(ctx, path)
	h.version = now.Version
	if u.hideData {
		hideRecordsOfValue(h.records)
	}
	return h, err
}

func buildValue(u *UI, q request, s *snapshot) (built, error) {
	path := q.query.Get("path")
	if err := u.checkPath(path); err != nil {
		return built{}, err
	}
	h, err := read(q.ctx, u.hub, s, "value "+path, func(ctx context.Context) (valueHistory, error) {
		return u.readHistory(ctx, path)
	})
	switch {
	case err != nil:
		return built{}, err
	case len(h.records) == 0:
		return built{}, missing[string]("value", path, nil, nil)
	}
	word := shellWord(path)
	v := valueView{Path: path, Link: linkTo("", path, u.root), Seen: strconv.FormatInt(h.version, 10),
		HideData: u.hideData, Done: doneText(q.query), Commands: []string{"lockstep config get " + word,
			"lockstep config history " + word, "lockstep config diff " + word}}
	shown := 0
	if wanted := q.query.Get("version"); wanted != "" {
		shown = slices.IndexFunc(h.records, func(r config.Record) bool {
			return strconv.FormatInt(r.Version, 10) == wanted
		})
		if shown < 0 {
			return built{}, newPageError(404, "The history does not have this version",
				"It keeps the last 20 values. The value's page lists them.")
		}
	}
	for i, r := range h.records {
		row := recordRow{Record: r, Current: r.Version == h.version, Shown: i == shown}
		if r.Err != nil {
			row.Error = r.Err.Error()
		}
		if row.Current {
			v.Current = &r
		}
		row.MayRollBack = !row.Current && r.Err == nil
		v.Rows = append(v.Rows, row)
	}
	v.Shown = h.records[shown].Version
	var before []byte
	if shown+1 < len(h.records) && h.records[shown+1].Err == nil {
		v.Before, before = h.records[shown+1].Version, h.records[shown+1].Data
	}
	switch data := h.records[shown].Data; {
	case u.hideData:
	case !utf8.Valid(data) || !utf8.Valid(before):
		v.Binary = len(data)
	default:
		v.Lines = diffOf(before, data, v.Before != 0)
		if n := len(v.Lines); n > maxLines {
			v.Lines, v.More = v.Lines[:maxLines], n-maxLines
		}
	}
	records := []reportjson.Joined{}
	for _, r := range h.records {
		records = append(records, sharedreport.NewRecord(path, r))
	}
	return built{path, v, records}, nil
}

// diffLine is a line of a value, or one that a value has replaced.
type diffLine struct {
	Class  string // "add", "del" or ""
	Sign   string
	Number int // in the value that it belongs to
	Text   string
}

// diffOf are the lines of a value. Lines between those that both values have at the beginning and
// at the end are marked as deleted and added, as "lockstep config diff" does it.
func diffOf(before, data []byte, compare bool) (lines []diffLine) {
	old, now := splitLines(before), splitLines(data)
	if !compare {
		old = now
	}
	head, tail := linediff.Common(old, now)
	add := func(class, sign string, from int, texts []string) {
		for i, text := range texts {
			lines = append(lines, diffLine{class, sign, from + i + 1, text})
		}
	}
	add("", "", 0, now[:head])
	add("del", "−", head, old[head:len(old)-tail])
	add("add", "+", head, now[head:len(now)-tail])
	add("", "", len(now)-tail, now[len(now)-tail:])
	return lines
}

func splitLines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.Split(string(bytes.TrimSuffix(data, []byte("\n"))), "\n")
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/lockstep-go/lockstep/config"
	"github.com/lockstep-go/lockstep/framework"
)

// plainWords make a text for people in place of some messages of the client's log: when an
// interruption begins, with how long holds still last, when it ends, when the session is lost, and
// when the servers grant a shorter session timeout than the configured one. Each text is made of
// the record's attributes.
var plainWords = map[string]func(attributes map[string]string) string{
	outageBegins: func(a map[string]string) string {
		line := "no server can be reached (" + a["servers"] + ")"
		if left := a["holds_stand_for"]; left != "" {
			line += ": holds last for another " + left
		}
		return line
	},
	outageOver: func(a map[string]string) string {
		return fmt.Sprintf("%s can be reached again, after %s", a["server"], a["after"])
	},
	"session lost": func(a map[string]string) string {
		return "the session is lost, and with it all that it held: " + strings.TrimPrefix(a["cause"],
			framework.ErrSessionLost.Error()+": ")
	},
	ShorterTimeout: func(a map[string]string) string {
		return fmt.Sprintf("the servers grant a session timeout of %s instead of %s: holds survive interruptions of "+
			"%s only; raise their maxSessionTimeout, or ask for less with --session-timeout",
			a["granted"], a["asked"], a["survived"])
	},
}

// outageBegins is what the client warns of when it has tried all servers.
const outageBegins = "no server can be used"

// outageOver is what the client logs at the end of an outage, whose beginning it warns of. People
// want to know both.
const outageOver = "a server can be used again"

// pageAction is what package ui logs of each action on the web page: the record of who has done
// what.
const pageAction = "action on the web page"

// ShorterTimeout is what the client warns of when the servers grant less than was asked for.
// lockstep doctor makes it a finding.
const ShorterTimeout = "the servers grant a shorter session timeout"

// findingBegins is what a monitor logs when it reports a finding. lockstep monitor prints it as a
// result.
const findingBegins = "a finding begins"

// registeredDifferently is what a scheduler logs of a job whose stored declaration differs from its
// own. lockstep cron warns of that itself, with the stored schedule and command.
const registeredDifferently = "a job is stored as another release or command has registered it"

// PeopleLogHandler is a log handler for people: it prints warnings, that an outage is over, and
// actions on the web page, as one line, in plain words or with the attributes as name=value.
type PeopleLogHandler struct {
	Streams *Streams
	attrs   []slog.Attr
	Unsaid  string // a message that is not printed: the command reports it itself
	// Connecting says that there was no session yet. Then a warning does not name the servers: if
	// they stay away, the command's error does.
	Connecting *atomic.Bool
}

func (PeopleLogHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

func (p PeopleLogHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn && r.Message != outageOver && r.Message != pageAction || r.Message == findingBegins ||
		r.Message == registeredDifferently ||
		p.Unsaid != "" && r.Message == p.Unsaid {
		return nil
	}
	line, attributes, noValue := r.Message, map[string]string{}, false
	add := func(a slog.Attr) bool {
		line += formatAttribute(a)
		cause, _ := a.Value.Any().(error)
		noValue = noValue || errors.Is(cause, config.ErrNoValue)
		attributes[a.Key] = a.Value.Resolve().String()
		return true
	}
	for _, a := range p.attrs {
		add(a)
	}
	r.Attrs(add)
	if noValue {
		return nil // the command itself says so
	}
	inWords, known := plainWords[r.Message]
	switch {
	case r.Message == outageBegins && p.Connecting != nil && p.Connecting.Load():
		line = "no server can be reached yet; lockstep goes on trying (--connect-timeout)"
	case known:
		line = inWords(attributes)
	}
	if r.Level < slog.LevelWarn {
		p.Streams.PrintNotice("%s", line)
	} else {
		p.Streams.PrintWarning("%s", line)
	}
	return nil
}

func (p PeopleLogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	p.attrs = append(p.attrs[:len(p.attrs):len(p.attrs)], attrs...)
	return p
}

// WithGroup ignores groups: no record here has any.
func (p PeopleLogHandler) WithGroup(string) slog.Handler { return p }

func formatAttribute(a slog.Attr) string {
	value := a.Value.Resolve().String()
	if strings.ContainsAny(value, " \t\n\"") {
		value = strconv.Quote(value)
	}
	return fmt.Sprintf(" %s=%s", a.Key, value)
}
